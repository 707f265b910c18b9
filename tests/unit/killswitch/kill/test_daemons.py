"""What a kill does about daemons: frozen until zero, killed with all of its sessions, or named with the reason."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.domain.agent import AgentId
from console.killswitch.kernel import processes
from console.killswitch.kill import daemons
from console.killswitch.kill.daemons import FROZEN_FILE, KNOWN_FILE, Holds, Known, Struck
from console.services.daemons.facts import Asked, look
from console.sources.daemons.processes import Processes
from tests.fakes.claude_stage import Stage
from tests.fakes.instance import until

ONE, TWO, THREE = (f"{n * 8}-aaaa-4bbb-8ccc-dddddddddddd" for n in "123")


class Room:
    """A guard's folder, and what was told to it."""

    def __init__(self, folder: Path, stage: Stage, *sessions: str) -> None:
        self.folder, self.stage, self.lines = folder, stage, list[dict[str, Any]]()
        self.known, self.holds = Known(folder / KNOWN_FILE), Holds(folder, self.journal)
        self.states: list[str] = []
        self.tell(*sessions)

    def journal(self, kind: str, **line: object) -> None:
        self.states.append(processes.state(self.daemon))
        self.lines.append({"kind": kind, **line})

    @property
    def daemon(self) -> int:
        assert self.stage.daemon is not None
        return self.stage.daemon.pid

    def tell(self, *sessions: str, claimed: str = "") -> None:
        """``claimed``: the session that the first of them says it is."""
        asked = []
        for session in sessions:
            process = Processes().identity(self.stage.pid_of(session))
            assert process is not None
            says, claimed = claimed or session, ""
            asked.append(Asked(AgentId(f"agent-{session[0]}"), ("claude_code",), says, process, ""))
        for line in look(asked).messages():
            self.known.hear(json.loads(json.dumps(line)), lambda _, save: save())

    def strike(self, *agents: str, spared: frozenset[int] = frozenset()) -> Struck:
        struck = Struck("kill-1", agents, self.known.told, self.holds, lambda: spared)
        struck.start()
        struck._struck.wait(10)
        return struck


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as it:
        it.start(ONE)
        it.start(TWO)
        yield it


def test_it_is_frozen_until_zero_while_another_session_lives(tmp_path: Path, stage: Stage) -> None:
    room = Room(tmp_path, stage, ONE, TWO)
    struck = room.strike("agent-1")
    until(lambda: processes.state(room.daemon) == "T")
    assert [line["kind"] for line in room.lines] == ["daemon_freeze"] and "T" not in room.states  # the entry first
    assert json.loads((tmp_path / FROZEN_FILE).read_text()) == [[room.daemon, processes.start_ticks(room.daemon)]]
    (row,) = struck.zero()
    assert processes.state(room.daemon) != "T" and room.lines[-1]["kind"] == "daemon_thaw"
    assert (row.action, row.sessions, row.other_sessions) == ("frozen", (ONE,), (TWO,))
    assert row.command == f"{stage.program} stop 11111111" and "other sessions" in row.reason
    assert json.loads((tmp_path / FROZEN_FILE).read_text()) == []


def test_it_is_killed_when_every_session_is_a_target(tmp_path: Path, stage: Stage) -> None:
    room = Room(tmp_path, stage, ONE, TWO)
    (row,) = room.strike("agent-1", "agent-2").zero()
    assert (row.action, row.other_sessions) == ("killed", ())
    until(lambda: not processes.is_alive(room.daemon))


def test_a_session_that_nobody_asked_for_keeps_it_alive(tmp_path: Path, stage: Stage) -> None:
    room = Room(tmp_path, stage, ONE)
    (row,) = room.strike("agent-1").zero()
    assert (row.action, row.other_sessions) == ("frozen", ("22222222",)) and processes.is_alive(room.daemon)


@pytest.mark.parametrize("claimed", [TWO, "11111111", "--all", "/"])
def test_a_session_that_names_another_one_gets_nothing_else_killed_or_dropped(tmp_path: Path, stage: Stage, claimed: str) -> None:
    room = Room(tmp_path, stage, ONE, TWO)
    room.tell(ONE, TWO, claimed=claimed)
    (daemon,) = room.known.told.daemons
    assert daemon.commands == ("", f"{stage.program} stop 22222222") and daemon.agents == ("agent-1", "agent-2")
    (row,) = room.strike("agent-1").zero()
    assert row.action == "frozen" and row.command == "" and processes.is_alive(room.daemon) and stage.pid_of(TWO)
    first, second = room.known.told.sessions
    assert (first.session, second.session) == ("", TWO), "nothing that goes on with the other one is taken for its return"
    assert first.sign.endswith("/rv/11111111.sock"), "its own socket still tells that it runs again"


def test_a_session_that_began_since_keeps_it_alive(tmp_path: Path, stage: Stage) -> None:
    room = Room(tmp_path, stage, ONE, TWO)
    stage.start(THREE)
    (row,) = room.strike("agent-1", "agent-2").zero()
    assert row.action == "frozen" and "no target's" in row.reason and processes.is_alive(room.daemon)


def test_a_spare_that_got_its_session_since_keeps_it_alive(tmp_path: Path, stage: Stage) -> None:
    room = Room(tmp_path, stage, ONE, TWO)
    (idle,) = room.known.told.daemons[0].idle
    os.kill(stage.pid_of("idle"), 9)
    until(lambda: idle[2] not in daemons.bound_sockets())
    until(lambda: processes.state(idle[0]) in ("Z", ""))
    assert room.strike("agent-1", "agent-2").zero()[0].action == "killed"  # that child is gone
    known = daemons._left(room.known.told.daemons[0], frozenset({"agent-1", "agent-2"}))
    assert known == ""


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"refused": "its socket is not its own"}, "its socket is not its own"),
        ({"exe": "/usr/bin/other"}, "another program"),
        ({"uid": 12345}, "another account"),
        ({"start_ticks": 1}, "it has ended"),
    ],
)
def test_a_mark_that_is_missing_only_names_it(tmp_path: Path, stage: Stage, change: dict[str, Any], why: str) -> None:
    room = Room(tmp_path, stage, ONE, TWO)
    message = {"daemons": [{**json.loads((tmp_path / KNOWN_FILE).read_text())["daemons"][0], **change}], "last": True}
    room.known.hear(message, lambda _, save: save())
    for agents in (("agent-1",), ("agent-1", "agent-2")):
        (row,) = room.strike(*agents).zero()
        assert row.action == "named" and why in row.reason and processes.state(room.daemon) == "S"
    assert room.lines == []


def test_an_ancestor_of_the_caller_is_only_named(tmp_path: Path, stage: Stage) -> None:
    room = Room(tmp_path, stage, ONE, TWO)
    (row,) = room.strike("agent-1", "agent-2", spared=frozenset({room.daemon})).zero()
    assert row.action == "named" and "caller" in row.reason and processes.is_alive(room.daemon)


def test_without_its_record_nothing_is_frozen(tmp_path: Path, stage: Stage) -> None:
    room = Room(tmp_path, stage, ONE, TWO)

    def full(kind: str, **line: object) -> None:
        raise OSError(28, "No space left on device")

    room.holds = Holds(tmp_path, full)
    (row,) = room.strike("agent-1").zero()
    assert row.action == "named" and "No space left" in row.reason and processes.state(room.daemon) in ("S", "R")


def test_it_is_thawed_after_its_time_and_by_the_next_guard(tmp_path: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room(tmp_path, stage, ONE, TWO)
    assert room.holds.freeze(room.daemon, processes.start_ticks(room.daemon) or 0, "kill-1") == ""
    until(lambda: processes.state(room.daemon) == "T")
    after = Holds(tmp_path, room.journal)
    assert after.recover() == 1 and after.recover() == 0
    until(lambda: processes.state(room.daemon) != "T")
    monkeypatch.setattr(daemons, "FREEZE_S", 0.2)
    room.strike("agent-1")
    until(lambda: [line["kind"] for line in room.lines][-1] == "daemon_thaw" and processes.state(room.daemon) != "T")


def test_two_kills_hold_it_until_both_are_over(tmp_path: Path, stage: Stage) -> None:
    room = Room(tmp_path, stage, ONE, TWO)
    ticks = processes.start_ticks(room.daemon) or 0
    assert room.holds.freeze(room.daemon, ticks, "kill-1") == room.holds.freeze(room.daemon, ticks, "kill-2") == ""
    room.holds.thaw(room.daemon, ticks, "kill-1")
    until(lambda: processes.state(room.daemon) == "T")
    room.holds.thaw(room.daemon, ticks, "kill-2")
    until(lambda: processes.state(room.daemon) != "T")


def test_what_was_told_is_there_for_the_next_guard(tmp_path: Path, stage: Stage) -> None:
    room = Room(tmp_path, stage, ONE, TWO)
    after = Known(tmp_path / KNOWN_FILE)
    after.load()
    assert after.told == room.known.told and [s.session for s in after.sessions_of({"agent-2"})] == [TWO]
    (tmp_path / KNOWN_FILE).write_text("{]")
    after.load()
    assert after.told.daemons == ()
