"""Agents that were only seen: nobody until told, each looked at again when it is signalled, never an ancestor of whoever presses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.domain.errors import UsageProblem
from console.killswitch.kernel import processes
from console.killswitch.kill import observed
from console.killswitch.kill.observed import MOST_SEEN, SEEN_FILE, SeenAgent, SeenAgents
from tests.fakes.guard_room import Room

UID = os.geteuid()


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[SeenAgents]:
    made = SeenAgents("00c0ffee", tmp_path / "seen.json")
    yield made
    made.sweep(lambda _: False)


def one(sleeper: tuple[int, int], agent_id: str = "o-1", **changed: Any) -> SeenAgent:
    fields: dict[str, Any] = {"pid": sleeper[0], "start_ticks": sleeper[1], "exe": str(processes.describe(sleeper[0])["exe"]), "uid": UID}
    return SeenAgent(agent_id, **(fields | changed))


def test_nobody_is_meant_until_the_supervisor_says_so(agents: SeenAgents) -> None:
    assert agents.aims(agents.agents, frozenset()) == ([], [])


def test_who_is_meant_is_a_best_effort_of_its_own_level(agents: SeenAgents, sleeper: tuple[int, int]) -> None:
    agents.tell([one(sleeper)], more=False)
    [aim], left = agents.aims(agents.agents, frozenset())
    assert (aim.control_level, aim.is_best_effort, left) == ("observed", True, [])


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"start_ticks": 1}, "ended"),
        ({"exe": "/bin/other"}, "another program"),
        ({"uid": UID + 1}, "another account"),
        ({"pid": 2**22 + 9}, "ended"),
    ],
)
def test_what_is_not_what_was_seen_is_left_alone_and_named(
    agents: SeenAgents, sleeper: tuple[int, int], changed: dict[str, Any], word: str
) -> None:
    agents.tell([one(sleeper, **changed)], more=False)
    aims, [left] = agents.aims(agents.agents, frozenset())
    assert aims == [] and word in left and left.startswith("o-1")


def test_an_ancestor_of_whoever_presses_and_an_instances_own_are_left_alone(
    agents: SeenAgents, sleeper: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    agents.tell([one(sleeper)], more=False)
    assert "ancestor" in agents.aims(agents.agents, frozenset({sleeper[0]}))[1][0]
    monkeypatch.setattr(observed, "in_an_instance", lambda pid, own: "it belongs to another")
    assert "belongs" in agents.aims(agents.agents, frozenset())[1][0]


def test_lines_add_up_the_first_forgets_and_there_is_a_bound(agents: SeenAgents, sleeper: tuple[int, int]) -> None:
    agents.tell([one(sleeper, "o-old")], more=False)
    agents.tell([one(sleeper, f"o-{n}") for n in range(MOST_SEEN)], more=False)
    agents.tell([one(sleeper, "o-late")], more=True)
    aims, left = agents.aims(agents.agents, frozenset())
    assert len(aims) == MOST_SEEN and len(left) == 1 and "o-late" in left[0] and "o-old" not in str(left)


def test_what_a_kill_looks_at_stays_open(agents: SeenAgents, sleeper: tuple[int, int]) -> None:
    agents.tell([one(sleeper)], more=False)
    [aim], _ = agents.aims(agents.agents, frozenset())
    agents.sweep(lambda held: held is aim.held)
    assert aim.held is not None and aim.held.init is not None and aim.held.init.is_alive()
    agents.sweep(lambda _: False)
    assert aim.held.init.fd == -1


@pytest.mark.parametrize("told", [None, "all", [1], [{"id": "o-1"}], [{"id": "../x", "pid": 5, "start_ticks": 1, "exe": "/x", "uid": 0}]])
def test_a_line_that_names_no_agent_is_refused_and_changes_nothing(room: Room, told: object) -> None:
    assert not room.ask("seen", agents=told)["ok"] and room.guard.seen.agents == ()
    with pytest.raises(UsageProblem):
        room.desk.find("seen", "operator")  # it is the supervisor's to decide


def test_a_press_of_everything_names_them_after_those_who_are_held_and_one_of_agents_does_not(room: Room, sleeper: tuple[int, int]) -> None:
    room.agent("held")
    answer = room.ask("seen", agents=[{"id": "o-1", "pid": sleeper[0], "start_ticks": sleeper[1], "exe": one(sleeper).exe, "uid": UID}])
    assert answer["n"] == 1
    assert [a.agent_id for a in room.guard.press(["held"], "r", "me").aims] == ["held"]
    kill = room.guard.press("all", "r", "me")
    assert [a.agent_id for a in kill.aims] == ["held"], "looked at, and struck, by the kill's own thread"
    kill.add_aims()
    assert [a.agent_id for a in kill.aims] == ["held", "o-1"]
    room.guard.seen.sweep(lambda _: False)


def test_one_that_only_a_kill_by_name_signals_is_no_target_of_a_panic_and_of_its_own_kill_the_only_one(
    room: Room, sleeper: tuple[int, int]
) -> None:
    room.agent("held")
    row = {"id": "o-1", "pid": sleeper[0], "start_ticks": sleeper[1], "exe": one(sleeper).exe, "uid": UID}
    assert room.ask("seen", agents=[], named=[row])["n"] == 1
    panic = room.guard.press("all", "r", "me")
    panic.add_aims()
    assert [a.agent_id for a in panic.aims] == ["held"]
    kill = room.guard.press(["o-1"], "r", "me")
    kill.add_aims()
    assert [(a.agent_id, a.is_best_effort) for a in kill.aims] == [("o-1", True)]
    room.guard.seen.sweep(lambda _: False)


def test_an_agent_that_lets_nobody_read_its_memory_holds_up_neither_press_nor_loop(
    room: Room, sleeper: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    room.guard.seen.tell([one(sleeper)], more=False)
    readers: list[int] = []

    def slow(pid: int) -> str:
        readers.append(pid)
        return ""

    monkeypatch.setattr(processes, "instance_mark", slow)
    monkeypatch.setattr(processes, "command_line", slow)
    kill = room.guard.press("all", "r", "me")
    assert readers == [], "the kill's own thread looks, and nobody else waits"
    kill.add_aims()
    assert readers and [a.agent_id for a in kill.aims] == ["o-1"]
    room.guard.seen.sweep(lambda _: False)


def test_the_next_guard_and_a_kill_without_one_find_the_list(room: Room, sleeper: tuple[int, int]) -> None:
    told = [{"id": "o-1", "pid": sleeper[0], "start_ticks": sleeper[1], "exe": one(sleeper).exe, "uid": UID}]
    room.ask("seen", agents=told)
    assert not (room.config.guard_dir / SEEN_FILE).exists(), "half of a list is not kept"
    room.ask("seen", agents=told, last=True)
    room.start()
    assert [a.agent_id for a in room.guard.seen.agents] == ["o-1"]
    other = SeenAgents("00c0ffee", room.config.guard_dir / SEEN_FILE)
    assert other.load() == "" and other.agents == room.guard.seen.agents
    room.ask("seen", agents=[], last=True)
    assert other.load() == "" and other.agents == ()


@pytest.mark.parametrize("left", [b"", b"{", b"[]", b'{"sha256": "x", "body": {"agents": []}}'])
def test_a_list_that_cannot_be_read_is_no_list_and_says_so(tmp_path: Path, left: bytes) -> None:
    agents = SeenAgents("00c0ffee", tmp_path / "seen.json")
    assert agents.load() == "" and agents.agents == ()
    (tmp_path / "seen.json").write_bytes(left)
    assert "cannot be read" in agents.load() and agents.agents == ()
