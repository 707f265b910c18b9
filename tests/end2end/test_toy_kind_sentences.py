"""An agent kind that is added by one folder and its name in one list is found, named, priced, adopted and killed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from console.api.agents.adopt import AdoptBody
from console.domain.kill import Outcome
from tests.fakes.instance import ROOT, Instance, until

UID = 61_237
"""An account that nothing else runs under here."""
KIND = '''"""Toy as an agent kind."""

import msgspec

from console.domain.spend import Answer, Tokens
from console.sources.kind import Kind, Lacks
from console.sources.programs import Program
from console.sources.reading import at_of, count, records
from console.sources.session_files import SessionFiles, Written, newest
from console.sources.spend.transcript_files import Folder, Transcripts

PROGRAM = Program("toy", "Toy")
LINES = msgspec.json.Decoder(dict)
NONE = Lacks("a toy does not have it")


class Lines:
    def __init__(self, opened):
        self._of = opened

    def take(self, data):
        for one in records(data, b'"answer"', of=LINES, seen=self._of.seen):
            tokens = Tokens(plain=count(one, "in"), output=count(one, "out"))
            session = self._of.path.rpartition("/")[2].removesuffix(".jsonl")
            at, of = at_of(one["at"]), self._of
            yield Answer("toy", one["answer"], at, one["model"], "", session, "", "", tokens, None, of.uid, of.ours)

    def state(self):
        return ""


def sessions(home, cwd, uid):
    for path, changed in newest(home / ".toy", uid, lambda file: file.endswith(".jsonl")):
        yield Written(path.stem, 0.0, changed, path.parent)


TOY = Kind(
    name="toy",
    program=PROGRAM,
    look=lambda given: SessionFiles("toy", PROGRAM, sessions, given),
    transcripts=Transcripts("toy", "anthropic", (Folder("", ".toy"),), Lines),
    activity=NONE,
    sub_agents=NONE,
    hook=NONE,
    start=NONE,
    daemons=NONE,
    quota=NONE,
)
'''


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """The product with one more folder of sources, and its name in the list."""
    console = tmp_path / "console"
    console.mkdir()
    for one in (ROOT / "console").iterdir():
        if one.name != "sources":
            (console / one.name).symlink_to(one)
    sources = shutil.copytree(ROOT / "console" / "sources", console / "sources", ignore=shutil.ignore_patterns("__pycache__"))
    (sources / "toy").mkdir()
    (sources / "toy" / "__init__.py").write_text("")
    (sources / "toy" / "kind.py").write_text(KIND)
    kinds = (sources / "kinds.py").read_text()
    imported = kinds.replace("\nKINDS: ", "from console.sources.toy.kind import TOY\n\nKINDS: ", 1)
    named = imported.replace("*PROCESSES_ONLY)", "TOY, *PROCESSES_ONLY)", 1)
    assert kinds != imported != named
    (sources / "kinds.py").write_text(named)
    return tmp_path


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    shutil.copy("/bin/sleep", folder / "toy")
    (folder / ".toy").mkdir()
    yield folder
    shutil.rmtree(folder)


def answers(home: Path, *models: str) -> None:
    """A session of the toy's with an answer of each model."""
    now = datetime.now(UTC).isoformat()
    lines = [json.dumps({"answer": f"m{n}", "model": model, "in": 1000, "out": 100, "at": now}) for n, model in enumerate(models)]
    file = home / ".toy" / "t-1.jsonl"
    file.write_text("".join(f"{line}\n" for line in lines))
    os.chown(file, UID, UID)


@pytest.fixture
def toy(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", str(home / "toy"), "600"]
    made = subprocess.Popen(command, cwd=home)
    yield made
    made.kill()
    made.wait()


def test_a_toy_kind_is_found_named_priced_adopted_and_killed(code: Path, state_dir: Path, home: Path, toy: subprocess.Popen[bytes]) -> None:
    with Instance(state_dir, "--discover-root", str(home), code=code) as it:
        [agent] = until(lambda: [one for one in it.api.fleet().agents if one.pid == toy.pid], words="it is found")
        answers(home, "claude-sonnet-4-5")
        until(lambda: it.agent(agent.id).cost_usd == pytest.approx(0.0045), words="an answer of a known model has its price")
        answers(home, "claude-sonnet-4-5", "toy-1")
        until(lambda: it.agent(agent.id).unpriced == 1, words="an answer of an unknown model is unpriced, and never free")
        seen = it.agent(agent.id)
        assert seen.name.startswith("Toy") and seen.cost_usd == pytest.approx(0.0045)
        first = it.api.adopt_candidates(agent.id).candidates[0]
        shown = {"pid": first.pid, "start_ticks": first.start_ticks, "exe": first.exe, "uid": first.uid}
        assert it.api.adopt(AdoptBody.read({"agent": agent.id, **shown, "reason": "the test"})).control_level == "adopted"
        receipt = it.api.kill(agent.id, reason="the test")
        assert [target.outcome for target in receipt.targets] == [Outcome.PROVEN_ZERO] and toy.wait(60) < 0
