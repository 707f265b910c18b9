"""Groups of executed calls: below the agent's own leaf or not at all, and nothing starts in one that a stop has reached."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from console.killswitch.guard.launches import MOST
from tests.fakes.guard_room import INSTANCE, Room

CALL = "c0ffee0123456789"


def agent(room: Room, agent_id: str = "one") -> None:
    held = room.agent(agent_id)
    held.entry = replace(held.entry, confirmed=True)


def test_it_lies_below_the_leaf_and_goes_when_it_is_over(room: Room, sleeper: tuple[int, int]) -> None:
    agent(room)
    made = room.ask("call", agent_id="one", call=CALL, pids_max=64, memory_max=1 << 28)
    leaf = room.guard.registry.held["one"].leaf
    assert leaf is not None and made["ok"] and Path(made["leaf"]).parent == leaf.path and Path(made["leaf"]).is_dir()
    room.lines[sleeper[0]] = f"/watchfloor-{INSTANCE}/agents/one-00000000/call-{CALL}"
    asked = {"agent_id": "one", "call": CALL, "generation": made["generation"]}
    assert room.ask("call_go", **asked, pid=sleeper[0], start_ticks=sleeper[1])["ok"]
    assert room.ask("call_over", agent_id="one", call=CALL) == {"ok": True, "known": True}
    assert not Path(made["leaf"]).exists() and room.ask("call_over", agent_id="one", call=CALL)["ok"]


def test_what_bounds_the_agent_elsewhere_bounds_its_call_there(room: Room, tmp_path: Path) -> None:
    agent(room)
    beside = tmp_path / "v1"
    beside.mkdir()
    held = room.guard.registry.held["one"]
    held.entry = replace(held.entry, limit_leaves=(str(beside),))
    made = room.ask("call", agent_id="one", call=CALL, pids_max=64)
    assert made["limit_leaves"] == [str(beside / f"call-{CALL}")] and Path(made["limit_leaves"][0]).is_dir()


def test_an_agent_that_is_not_known_killed_or_without_a_leaf_gets_none(room: Room) -> None:
    assert room.ask("call", agent_id="nobody", call=CALL)["kind"] == "NotFound"
    room.agent("young")
    assert room.ask("call", agent_id="young", call=CALL)["kind"] == "NotFound"
    agent(room)
    held = room.guard.registry.held["one"]
    leaf, held.leaf = held.leaf, None
    refused = room.ask("call", agent_id="one", call=CALL)
    assert refused["kind"] == "Unavailable" and "could not be stopped" in refused["error"]
    held.leaf = leaf
    room.guard.registry.mark_killed(["one"], "some-kill")
    assert room.ask("call", agent_id="one", call=CALL)["kind"] == "Killed"


def test_nothing_starts_while_latched_and_a_press_in_between_wins(room: Room, sleeper: tuple[int, int]) -> None:
    agent(room)
    made = room.ask("call", agent_id="one", call=CALL)
    room.lines[sleeper[0]] = f"/watchfloor-{INSTANCE}/agents/one-00000000/call-{CALL}"
    room.guard.registry.mark_killed(["one"], "of this agent alone")
    asked = {"agent_id": "one", "call": CALL, "generation": made["generation"], "pid": sleeper[0], "start_ticks": sleeper[1]}
    assert room.ask("call_go", **asked)["kind"] == "Killed"
    agent(room, "two")
    room.guard.press("all", "x", "y")
    assert room.ask("call", agent_id="two", call=CALL)["kind"] == "Killed"


def test_only_a_process_that_is_in_the_group_starts(room: Room, sleeper: tuple[int, int]) -> None:
    agent(room)
    made = room.ask("call", agent_id="one", call=CALL)
    asked = {"agent_id": "one", "call": CALL, "generation": made["generation"]}
    for line in ("/", f"/watchfloor-{INSTANCE}/agents/one-00000000", f"/watchfloor-{INSTANCE}/agents/one-00000000/call-ffffffff"):
        room.lines[sleeper[0]] = line
        assert room.ask("call_go", **asked, pid=sleeper[0], start_ticks=sleeper[1])["kind"] == "Denied"
    room.lines[sleeper[0]] = f"/watchfloor-{INSTANCE}/agents/one-00000000/call-{CALL}"
    assert room.ask("call_go", **asked, pid=sleeper[0], start_ticks=sleeper[1] + 1)["kind"] == "Denied"
    assert room.ask("call_go", **asked, pid=sleeper[0], start_ticks=sleeper[1])["ok"]


def test_a_frozen_agent_starts_nothing(room: Room, sleeper: tuple[int, int]) -> None:
    agent(room)
    made = room.ask("call", agent_id="one", call=CALL)
    room.lines[sleeper[0]] = f"/watchfloor-{INSTANCE}/agents/one-00000000/call-{CALL}"
    room.freezing.freeze(["one"], "operator", "ann")
    asked = {"agent_id": "one", "call": CALL, "generation": made["generation"], "pid": sleeper[0], "start_ticks": sleeper[1]}
    assert "frozen" in room.ask("call_go", **asked)["error"]


def test_one_that_is_frozen_already_gets_no_group_either(room: Room) -> None:
    agent(room)
    room.freezing.freeze(["one"], "operator", "ann")
    assert "frozen" in room.ask("call", agent_id="one", call=CALL)["error"]


def test_a_group_that_could_not_be_made_everywhere_is_left_nowhere(room: Room, tmp_path: Path) -> None:
    agent(room)
    good = tmp_path / "memory"
    good.mkdir()
    held = room.guard.registry.held["one"]
    held.entry = replace(held.entry, limit_leaves=(str(good), str(tmp_path / "missing")))
    assert room.ask("call", agent_id="one", call=CALL)["kind"] == "Unavailable"
    assert held.leaf is not None and not list(held.leaf.path.glob("call-*")) and not list(good.iterdir())
    # Somebody else's group of that name stays.
    (good / f"call-{CALL}").mkdir()
    assert room.ask("call", agent_id="one", call=CALL)["kind"] == "Conflict"
    assert not list(held.leaf.path.glob("call-*")) and (good / f"call-{CALL}").is_dir()


def test_its_name_is_no_path_and_there_are_not_too_many(room: Room) -> None:
    agent(room)
    for bad in ("../x", "", "c0ffee0123456789/..", "C0FFEE01", "x" * 16):
        assert room.ask("call", agent_id="one", call=bad)["kind"] == "UsageProblem"
    for number in range(MOST):
        assert room.ask("call", agent_id="one", call=f"{number:08x}")["ok"]
    assert room.ask("call", agent_id="one", call=CALL)["kind"] == "Conflict"
    assert room.ask("call_over", agent_id="one", call="00000000")["ok"]
    assert room.ask("call", agent_id="one", call="00000001")["kind"] == "Conflict"


def test_what_still_has_something_in_it_stays(room: Room) -> None:
    agent(room)
    made = room.ask("call", agent_id="one", call=CALL)
    (Path(made["leaf"]) / "below").mkdir()
    assert room.ask("call_over", agent_id="one", call=CALL)["kind"] == "Conflict" and os.path.isdir(made["leaf"])  # noqa: PTH112


def test_no_operator_has_these_operations(room: Room) -> None:
    assert not {"call", "call_go", "call_over"} & set(room.desk.ops)
