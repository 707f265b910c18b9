"""The tutorials as a reader follows them: each command in turn, on an instance of its own, prints the lines that the page shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.in_time import is_done
from tests.fakes.instance import ROOT, until
from tests.fakes.pages import commands_of, printed_by
from tests.fakes.terminal import Terminal, open_terminal
from tests.fakes.verbs import Said

WORDS = "correct horse battery"
OF_THE_MACHINE = ("state directory", "guard: pid", "supervisor: pid", "READY: ")


@pytest.fixture
def terminal(state_dir: Path) -> Iterator[Terminal]:
    with open_terminal(state_dir) as made:
        made.serve_forked(envoy=True)
        yield made


def shape(line: str) -> str:
    """Return the line without what differs from run to run: ids, numbers, units of time, colours, widths of columns.

    A panic may meet the test process of the kill switch as one more agent, and a busy machine lists no connections in time.
    """
    line = re.sub(r"\x1b\[[\d;]*m", "", line)
    line = re.sub(r"\b(a-[0-9a-f]{8}|q-[0-9a-f]{16}|[0-9a-f]{64}|\d{8}-\d{6}-[0-9a-f]{8})\b", "ID", line)
    line = re.sub(r"\S+ \(uid \d+\)", "operator:0", line)
    line = re.sub(r"\b\d[\d.,:T+-]*", "N", line)
    line = re.sub(r"Connections to other programs were not recorded\. |, connections not recorded", "", line)
    line = re.sub(r"\bN (agent|process)(e?s)?\b", r"N \1", line)
    return re.sub(r"\s+", " ", re.sub(r"N ms\b", "N s", line)).strip()


class Reader:
    """Puts an id in the place of each capital word, and remembers everything that was shown."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.agent = ""
        self.kill = ""
        self.decided: list[str] = []
        self.shown: list[str] = []

    def waiting(self) -> str:
        rows = self.terminal("approval", "list", "--json").json["waiting"]
        return next((str(row["id"]) for row in rows if row["id"] not in self.decided), "")

    def follows(self, words: list[str]) -> Said:
        if words[:2] == ["approval", "list"] and "--decided" not in words or "APPROVAL" in words:
            until(lambda: bool(self.waiting()), words="a request waits")
        known = {"AGENT": self.agent, "KILL": self.kill, "APPROVAL": self.waiting() if "APPROVAL" in words else ""}
        said = self._does([known.get(word, word) for word in words])
        if words[0] == "run" and said.code == 0:
            self.agent = said.out.split()[-1]
        if words[0] == "panic":
            self.kill = re.findall(r"\b\d{8}-\d{6}-[0-9a-f]{8}\b", said.out)[0]
        if words[:1] == ["approval"] and words[1] in ("approve", "deny"):
            self.decided.append(re.findall(r"q-[0-9a-f]{16}", said.out)[0])
        self.shown += (said.out + "\n" + said.err).splitlines()
        return said

    def _does(self, argv: list[str]) -> Said:
        if argv[0] == "rearm":
            return self.terminal.person(*argv, answers=[("Type the id", self.kill)])
        if argv[:2] == ["secrets", "passphrase"]:
            return self.terminal(*argv, "--passphrase-fd", "3", lines=[WORDS])
        if argv[0] == "activity":
            until(lambda: " deny " in self.terminal(*argv).out, words="the last answer is in the activity")
        return self.terminal(*argv)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["first-fleet", "first-panic-and-rearm", "first-approval"])
def test_every_command_of_a_tutorial_works_and_prints_what_the_page_shows(terminal: Terminal, name: str) -> None:
    page = (ROOT / "docs" / "tutorial" / f"{name}.md").read_text()
    reader, blocked = Reader(terminal), False
    for words in commands_of(page):
        said = reader.follows(words)
        refused = blocked and words[0] == "run"
        assert said.code == 4 if refused else is_done(said.code, said.out + said.err), (words, said)
        blocked = words[0] == "panic" or blocked and words[0] != "rearm"
    seen = {shape(line) for line in reader.shown}
    missing = [line for line in printed_by(page) if shape(line) not in seen and not line.startswith(OF_THE_MACHINE)]
    assert missing == [], "\n".join([*missing, "SEEN", *sorted(seen)])
