"""A return amends the receipt: zero is not verified until the process is dead again."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.domain.kill import Outcome, Receipt, Return, Step, StepName, StepStatus, Target
from console.domain.verdict import judged
from console.killswitch.kill.receipt import read_receipt, write_receipt
from console.killswitch.kill.respawners import Respawners, words
from console.killswitch.kill.return_watch import Watched
from console.killswitch.kill.scan import Registered

ROW = Return("agent-1", "s", 77, 5, 1, "init", "x\x1b[31m", 9.8, "session id", certain=True, killed=True, proven=True, why="")


def room(folder: Path, lines: list[dict[str, object]]) -> Respawners:
    def journal(kind: str, **line: object) -> None:
        lines.append({"kind": kind, **line})

    return Respawners("00c0ffee", folder, 60.0, journal, lambda kill, said: None, {}, frozenset, lambda: [Registered(0, 0)])


def test_a_return_of_an_older_guard_s_kill_is_written_into_its_file(tmp_path: Path) -> None:
    lines: list[dict[str, object]] = []
    steps = tuple(Step(name, StepStatus.OK, 1.0) for name in StepName)
    target = Target("agent-1", "managed", Outcome.PROVEN_ZERO, 1.0)
    (tmp_path / "receipts").mkdir()
    write_receipt(tmp_path, judged(Receipt("kill-1", "00c0ffee", "agent-1", "r", "b", 1.0, steps=steps, targets=(target,), complete=True)))
    it = room(tmp_path, lines)
    it._returned("kill-1", ROW)
    first = read_receipt(tmp_path, "kill-1")
    assert first is not None and first.returns == (ROW,) and first.verified_zero  # it is dead again
    it._returned("kill-1", Return(**{**{f: getattr(ROW, f) for f in Return.__slots__}, "proven": False}))
    second = read_receipt(tmp_path, "kill-1")
    assert second is not None and not second.verified_zero and len(second.returns) == 2
    assert [line["kind"] for line in lines] == ["receipt_amended"] * 2 and lines[1]["verified_zero"] is False
    it._returned("kill-unknown", ROW)
    assert len(lines) == 2


def test_nothing_that_a_program_wrote_is_in_its_words() -> None:
    assert words(ROW) == "agent-1 ran again: process 77 (parent 1), 9.8 s after the kill, by session id; killed, confirmed dead"


def test_a_kill_watches_the_sessions_that_were_told_when_it_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A moment later the supervisor tells of the living alone."""
    it = room(tmp_path, [])
    followed: list[Watched] = []
    monkeypatch.setattr(it.watch, "follow", lambda one, *, run: followed.append(one))
    one = {"agent_id": "agent-1", "kind": "claude", "session": "s-1", "uid": 5, "words": ["--resume"], "variables": []}
    it.known.hear({"sessions": [one], "last": True}, lambda _, save: save())
    kill: Any = SimpleNamespace(
        order=SimpleNamespace(kill_id="k"), is_canary=False, pressed_at=1.0, aims=[SimpleNamespace(agent_id="agent-1")]
    )
    it.begin(kill, ["agent-1"])
    it.known.hear({"sessions": [], "last": True}, lambda _, save: save())
    it.follow(kill)
    assert [session.session for session in followed[0].sessions] == ["s-1"] and followed[0].until == 61.0


def test_an_agent_that_is_killed_again_is_watched_by_the_session_it_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget halted it; a person kills it a minute later, when the supervisor tells of the living alone."""
    it = room(tmp_path, [])
    followed: list[Watched] = []
    monkeypatch.setattr(it.watch, "follow", lambda one, *, run: followed.append(one))
    one = {"agent_id": "agent-1", "kind": "claude", "session": "s-1", "uid": 5, "words": ["--resume"], "variables": []}
    it.known.hear({"sessions": [one], "last": True}, lambda _, save: save())
    for n, sessions in enumerate(([], [], [one | {"session": "s-2"}])):
        kill: Any = SimpleNamespace(
            order=SimpleNamespace(kill_id=f"k-{n}"), is_canary=False, pressed_at=1.0, aims=[SimpleNamespace(agent_id="agent-1")]
        )
        it.begin(kill, ["agent-1"])
        it.follow(kill)
        it.known.hear({"sessions": sessions, "last": True}, lambda _, save: save())
    it.begin(kill, ["agent-1"])
    it.follow(kill)
    assert [[session.session for session in one.sessions] for one in followed] == [["s-1"], ["s-1"], ["s-1"], ["s-2"]]
    it.launched("agent-1")
    it.known.hear({"sessions": [], "last": True}, lambda _, save: save())
    it.begin(kill, ["agent-1"])
    it.follow(kill)
    assert followed[-1].sessions == (), "what runs under its name since was started here"
