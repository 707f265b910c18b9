"""Every agent kind: one list, each capability a value or a reason; histories of real programs read as ccusage reads them."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.domain.activity import Entry
from console.sources import kinds
from console.sources.activity.files import Whereabouts
from console.sources.kind import Kind, Lacks
from console.sources.kinds import ACTIVITIES, HOOKS, KINDS, TRANSCRIPTS, VENDORS
from console.sources.opencode.kind import OWED, sessions
from console.sources.spend.rates import RateBook
from console.sources.spend.reader import SpendReader
from console.sources.spend.store import SpendStore
from console.wording.agent_kinds import PLACES

DATA = Path(__file__).parents[2] / "data"
PEERS = Path(sys.prefix) / "peers" / "node_modules"
SESSIONS = {
    "gemini": "a6e25978-7ff6-4818-a9e3-f79fdc0e8709",
    "qwen": "55ccf024-8201-4184-85c4-9eeb9a2ce2e1",
    "opencode": "ses_df44c4b06ffe18vqmhPOQfTHjg",
    "pi": "01a20bb4-0140-736d-96d0-9f5d5bddfcd7",
}
"""Written by the real programs (0.61.0, 0.24.4, 1.18.33, 0.73.1), driven against a model on loopback; names of folders scrubbed."""


class History:
    """A home with histories, and what is read of them."""

    def __init__(self, tmp_path: Path) -> None:
        self.home = tmp_path / "home"
        self.store = SpendStore(tmp_path / "cost.db")
        self.reader = SpendReader(self.store, RateBook(VENDORS), TRANSCRIPTS, self.home)

    def put(self, source: Path, *place: str) -> Path:
        made = self.home.joinpath(*place)
        made.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(source, made))

    def write(self, text: str, *place: str) -> Path:
        made = self.home.joinpath(*place)
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(text)
        return made

    def database(self, name: str = "opencode", recording: str = "opencode.sql") -> Path:
        made = self.home / ".local" / "share" / name / f"{name}.db"
        made.parent.mkdir(parents=True, exist_ok=True)
        with sqlite3.connect(made) as made_of:
            made_of.executescript((DATA / "opencode" / recording).read_text())
        made_of.close()
        return made

    def real(self) -> None:
        """What each real program wrote for one prompt with one tool call."""
        self.put(next((DATA / "gemini").iterdir()), ".gemini", "tmp", "proj", "chats")
        self.write(json.dumps({"projects": {"/home/dev/proj": "proj"}}), ".gemini", "projects.json")
        self.put(next((DATA / "qwen").iterdir()), ".qwen", "projects", "-home-dev-proj", "chats")
        self.put(next((DATA / "pi").iterdir()), ".pi", "agent", "sessions", "--home-dev-proj--")
        self.put(next((DATA / "pi").iterdir()), ".openclaw", "agents", "main", "sessions")
        self.database()
        self.database("kilo")

    def sums(self) -> dict[str, tuple[float, int, int]]:
        """(USD, tokens, unpriced answers) by source."""
        return {one.key: (round(one.cost_usd, 9), one.tokens, one.unpriced) for one in self.store.sums("source")}


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    made = History(tmp_path)
    yield made
    made.store.close()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_capability_that_a_kind_lacks_has_its_reason(kind: Kind) -> None:
    for name in ("look", "transcripts", "activity", "sub_agents", "hook", "start", "daemons", "quota"):
        value = getattr(kind, name)
        assert value and (not isinstance(value, Lacks) or (len(value.why) > 20 and not value.why.endswith("."))), (kind.name, name)


def test_lists_that_must_say_the_same_do() -> None:
    assert {name: hook.place for name, hook in HOOKS.items()} == PLACES, "the command line knows the places without the kinds"
    assert len({kind.name for kind in KINDS}) == len({kind.program for kind in KINDS}) == len(KINDS)
    assert kinds.daemons_of("claude_code") is not kinds.daemons_of("codex") and kinds.daemons_of("pi") is None
    assert VENDORS["gemini"] == "google"


def test_histories_of_real_programs_come_to_what_ccusage_says(history: History) -> None:
    history.real()
    found = history.reader.read()
    assert found.troubles == [] and found.reading.odd == 0
    ours = history.sums()
    for name in ("gemini", "opencode", "kilo", "pi", "openclaw"):
        totals = ccusage(history.home, name)
        assert ours[name] == (round(totals["totalCost"], 9), totals["totalTokens"], 0), name
    # ccusage bills what came from the cache at the full price and again at the cache's: Qwen's prompt holds it already.
    totals = ccusage(history.home, "qwen")
    assert ours["qwen"][1] == totals["totalTokens"] - totals["cacheReadTokens"]
    assert ours["qwen"][0] == 0 and ours["qwen"][2] == 2, "no price is known: unknown, and never $0.00"
    assert history.reader.read().read == 0, "what did not change is not opened again"


def test_what_agents_did_is_read_too(history: History) -> None:
    history.real()
    for name in ("gemini", "qwen", "pi"):
        activity = ACTIVITIES[name]
        folders = [history.home / activity.folder.home / activity.folder.below]
        path = activity.find(folders, Whereabouts(name, os.geteuid(), SESSIONS[name], "/home/dev/proj"), True)
        assert path is not None, name
        lines = activity.lines(lambda _answer: 7)
        found = [entry for line in path.read_bytes().splitlines() for entry in lines.take(line)]
        told = list(dict.fromkeys((e.kind.value, e.text if e.kind.value == "message" else e.tool or e.pair != "") for e in kept(found)))
        assert [one for one in told if one[0] == "message"] == [("message", "say hello"), ("message", "All done.")], name
        assert any(e.kind.value == "tool_call" and "echo hello-from-tool" in e.text for e in found), name
        assert any(e.kind.value == "tool_result" and "hello-from-tool" in e.text and not e.failed for e in found), name
        assert sum(e.tokens for e in kept(found) if e.kind.value == "spend") > 2000 and not any(e.kind.value == "error" for e in found), (
            name
        )
        assert activity.find(folders, Whereabouts(name, 0, "../../etc", "/home/dev/proj"), True) is None


def kept(entries: list[Entry]) -> list[Entry]:
    """As they are kept: read twice, once."""
    return list({entry.source_id: entry for entry in entries}.values())


def test_sub_agents_are_counted_by_themselves_and_with_their_session(history: History) -> None:
    history.real()
    tokens = {"input": 10, "output": 5, "cached": 0, "thoughts": 0, "tool": 0, "total": 15}
    line = {"id": "sub-1", "timestamp": "2026-11-24T03:58:00Z", "type": "gemini", "tokens": tokens, "model": "gemini-2.5-pro"}
    history.write(json.dumps(line) + "\n", ".gemini", "tmp", "proj", "chats", SESSIONS["gemini"], "helper-1.jsonl")
    with sqlite3.connect(history.home / ".local" / "share" / "opencode" / "opencode.db") as db:
        db.execute("create temp table s as select * from session")
        db.execute("update s set id = 'ses_child', parent_id = ?", (SESSIONS["opencode"],))
        db.execute("insert into session select * from s")
        db.execute("create temp table m as select * from message limit 2")
        db.execute("update m set id = id || 'c', session_id = 'ses_child'")
        db.execute("insert into message select * from m")
    db.close()
    history.reader.read()
    found = history.store.by_agents([(os.geteuid(), name, SESSIONS[name]) for name in ("gemini", "opencode")])
    assert [[row[0] for row in rows] for rows in found] == [["", "helper-1"], ["", "ses_child"]]


def test_a_sub_agent_of_the_real_opencode_counts_with_its_session(history: History) -> None:
    history.database(recording="sub-agent.sql")
    found = history.reader.read()
    assert found.troubles == [] and found.reading.odd == 0
    session, child = "ses_de5b57a2effedTHFZ5eiBajhL7", "ses_de5b56e52ffe0GwC43Pni8Z1nq"
    (whole,) = history.store.sums("session")
    assert (whole.key, whole.answers, round(whole.cost_usd, 9)) == (session, 4, 0.018), "one row, for what both used"
    (rows,) = history.store.by_agents([(os.geteuid(), "opencode", session)])
    assert [(row[0], row[3], round(row[1], 9)) for row in rows] == [("", 2, 0.009), (child, 2, 0.009)]
    assert round(ccusage(history.home, "opencode")["totalCost"], 9) == 0.018


def test_an_answer_of_the_real_opencode_that_is_not_over_owes_what_it_used(history: History) -> None:
    made = history.database(recording="sub-agent.sql")

    def owed() -> list[str]:
        return [one.owed for one in sessions("opencode", history.home, "/home/dev/proj", os.geteuid())]

    assert owed() == [""]
    last = "id = 'msg_21a4a9500001xf6ROoNlL78vs6'"
    with sqlite3.connect(made) as database:  # as it stands while a tool call of that answer runs
        database.execute(
            f"update message set data = json_set(json_remove(data, '$.time.completed', '$.tokens.total'), '$.tokens.input', 0) where {last}"
        )
    assert owed() == [OWED]
    with sqlite3.connect(made) as database:
        database.execute(f"update message set data = '{{\"assistant\"' where {last}")
    assert owed() == [""], "what cannot be read owes nothing"
    database.close()


HOSTILE = "\x00\x1b[31m" + "[" * 100_000


def test_what_cannot_be_read_is_left_out_with_a_reason_and_the_others_are_read(history: History) -> None:
    history.real()
    chats = history.home / ".gemini" / "tmp" / "proj" / "chats"
    (chats / "session-2026-11-24T04-00-bad.jsonl").write_text(
        f'{{"tokens": {HOSTILE}\n{{"id": "x", "type": "gemini", "tokens": {{"input": -1}}}}\n'
    )
    os.mkfifo(chats / "session-fifo.jsonl")
    (chats / "session-link.jsonl").symlink_to("/etc/shadow")
    history.write(
        '{"type":"assistant","usageMetadata":{"promptTokenCount":1e300},"uuid":"u"}\n{"type":"assi', ".qwen/projects/x/chats/s.jsonl"
    )
    history.write('{"type":"message","message":{"role":"assistant","usage":7}}\n', ".pi/agent/sessions/--x--/a_b.jsonl")
    broken = history.home / ".local" / "share" / "kilo" / "kilo.db"
    broken.write_bytes(b"SQLite format 3\0" + bytes(200) + os.urandom(4000))
    found = history.reader.read()
    assert [trouble for trouble in found.troubles if "kilo.db" in trouble] and len(found.troubles) == 1
    assert found.reading.odd == 3
    assert set(history.sums()) == {"gemini", "qwen", "opencode", "pi", "openclaw"}


def test_a_database_that_is_locked_or_of_another_layout_is_said_and_read_when_it_can_be(history: History) -> None:
    file = history.database()
    other = sqlite3.connect(file)
    other.execute("begin exclusive")
    found = history.reader.read()
    assert found.troubles and "locked" in found.troubles[0] and history.sums() == {}
    other.rollback()
    assert history.reader.read().troubles == [] and history.sums()["opencode"][0] == 0.00666
    other.execute("alter table message rename column data to body")
    other.commit()
    other.close()
    newer = history.reader.read()
    assert "no such column" in newer.troubles[0] and history.sums()["opencode"][0] == 0.00666, "what was read stays"


def test_a_database_with_an_endless_id_is_left_out_and_takes_no_memory(history: History) -> None:
    history.real()
    with sqlite3.connect(history.home / ".local" / "share" / "opencode" / "opencode.db") as db:
        db.execute("create temp table s as select * from session")
        db.execute("update s set id = hex(zeroblob(40000000))")
        db.execute("insert into session select * from s")
    db.close()
    found = history.reader.read()
    assert [trouble for trouble in found.troubles if "opencode.db" in trouble and "too big" in trouble]
    assert "opencode" not in history.sums() and "gemini" in history.sums()


def test_a_database_with_a_log_beside_it_is_read_without_writing_to_it(history: History) -> None:
    file = history.database()
    other = sqlite3.connect(file)
    other.execute("pragma journal_mode = wal")
    other.execute("update message set data = replace(data, '0.00333', '0.5'), time_updated = time_updated + 1")
    other.commit()
    assert file.with_name("opencode.db-wal").stat().st_size > 0
    before = {one.name: one.stat().st_mtime_ns for one in file.parent.iterdir()}
    found = history.reader.read()
    assert found.troubles == [] and history.sums()["opencode"][0] == 1.0
    assert {one.name: one.stat().st_mtime_ns for one in file.parent.iterdir()} == before
    other.close()


def ccusage(home: Path, kind: str) -> dict[str, Any]:
    programs = list(PEERS.glob("@ccusage/ccusage-linux-*/bin/ccusage"))
    assert programs, "ccusage is not there: packaging/test installs it"
    command = [str(programs[0]), kind, "daily", "--json", "--offline"]
    done = subprocess.run(command, env={"HOME": str(home), "TZ": "UTC"}, capture_output=True, text=True, timeout=120, check=True)
    said = json.loads(done.stdout)["totals"]
    assert isinstance(said, dict)
    return said
