"""Adoption without a kernel that moves: what is refused, what is on disk before anything is touched, and what is undone."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from console.domain.errors import Unavailable
from console.killswitch.guard import adoption
from console.killswitch.helpers import adopt as helper
from console.killswitch.helpers.adopt import ENDED, MOVED
from console.killswitch.kernel import cgroups, processes
from console.killswitch.store.registry import Registry
from tests.fakes.guard_room import InProcess, Room, fill


@pytest.fixture
def here(room: Room, sleeper: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A process that may be moved, and whose moves are written down instead of made."""
    moved: list[int] = []

    def move(pid: int, ticks: int, tree: object, leaf: object) -> str:
        moved.append(pid)
        room.lines[pid] = f"/watchfloor-{room.config.instance_id}/agents/o-1-00000000"
        return MOVED

    assert room.tree is not None
    (room.tree.mount.point / "cgroup.procs").write_text("")
    monkeypatch.setattr(processes, "instance_mark", lambda pid: "")
    monkeypatch.setattr(helper, "move", move)
    monkeypatch.setattr(helper, "beside", lambda *_: ())
    exe = str(processes.describe(sleeper[0])["exe"])
    return {"pid": sleeper[0], "start_ticks": sleeper[1], "exe": exe, "uid": os.geteuid(), "agent_id": "o-1", "moved": moved}


def adopt(room: Room, here: dict[str, Any], **changed: object) -> dict[str, Any]:
    return room.ask("adopt", **({k: v for k, v in here.items() if k != "moved"} | {"spare": [os.getpid()], "by": "me"} | changed))


def test_what_may_be_adopted_is_registered_moved_and_let_go_on(room: Room, here: dict[str, Any]) -> None:
    done = adopt(room, here)
    assert (done["ok"], done["moved"], done["whole"], done["frozen"]) == (True, 1, True, "") and here["moved"] == [here["pid"]]
    entry = room.guard.registry.held["o-1"].entry
    assert (entry.control_level, entry.pid, entry.adopting) == ("adopted", here["pid"], False)
    assert not room.is_frozen("o-1") and room.guard.causes.of("o-1") == set()
    room.clerk.work()
    assert "adopt" in room.journal()


def test_its_leaf_is_on_disk_and_frozen_before_the_first_move(room: Room, here: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[bool, bool, list[str]]] = []

    def move(pid: int, *_: object) -> str:
        [entry] = Registry(room.config.guard_dir).load()
        causes = json.loads((room.config.guard_dir / "causes.json").read_text())["body"]["causes"]["o-1"]
        seen.append((entry.adopting, room.is_frozen("o-1"), causes))
        room.lines[pid] = f"/watchfloor-{room.config.instance_id}/agents/o-1-00000000"
        return MOVED

    monkeypatch.setattr(helper, "move", move)
    adopt(room, here)
    assert seen == [(True, True, ["adoption"])]


def test_a_disk_that_refuses_leaves_it_as_it_was(room: Room, here: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Registry) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Registry, "save", full)
    done = adopt(room, here)
    assert (done["kind"], here["moved"], room.guard.registry.held) == ("NotRecorded", [], {}) and "No space" in done["error"]


def test_a_thaw_that_cannot_be_recorded_leaves_it_frozen_and_says_so(
    room: Room, here: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(room.guard.journal, "append", full)
    done = adopt(room, here)
    assert done["moved"] == 1 and "recorded" in done["frozen"] and room.is_frozen("o-1")


def test_without_a_cgroup_it_is_not_available_and_why(room: Room, here: dict[str, Any]) -> None:
    room.guard.tree, room.guard.tree_why = None, "No cgroup v2 is mounted here."
    seen = room.ask("adoptable", pid=here["pid"], start_ticks=here["start_ticks"], spare=[])
    assert seen["why_not"].startswith("not available, because") and "No cgroup v2" in seen["why_not"]
    assert adopt(room, here)["kind"] == "Denied" and here["moved"] == []
    room.guard.tree = room.tree


def test_what_cannot_be_moved_is_let_go_as_it_was(room: Room, here: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helper, "move", lambda *_: "failed: Device or resource busy")
    done = adopt(room, here)
    assert done["kind"] == "Unavailable" and "busy" in done["error"] and room.guard.registry.held == {}
    assert room.guard.registry.retired == [] or room.guard.registry.retired[0].entry.adopting, "no kill may call it zero"


def test_what_ends_meanwhile_is_not_adopted(room: Room, here: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helper, "move", lambda *_: ENDED)
    monkeypatch.setattr(helper, "MOVE_S", 0.1)
    assert adopt(room, here)["kind"] == "Unavailable" and room.guard.registry.held == {}


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({"start_ticks": 1}, "Conflict"),
        ({"exe": "/bin/other"}, "Conflict"),
        ({"uid": 99}, "Conflict"),
        ({"agent_id": "../x"}, "UsageProblem"),
        ({"agent_id": "all"}, "UsageProblem"),
        ({"also": [1]}, "ValueError"),
        ({"also": "x"}, "UsageProblem"),
        ({"spare": ["x"]}, "UsageProblem"),
        ({"exe": 5}, "UsageProblem"),
    ],
)
def test_what_is_not_as_it_was_shown_or_is_no_request_moves_nobody(
    room: Room, here: dict[str, Any], changed: dict[str, object], kind: str
) -> None:
    try:
        assert adopt(room, here, **changed)["kind"] == kind
    except ValueError:
        assert kind == "ValueError"
    assert here["moved"] == [] and room.guard.registry.held == {}


def test_nothing_is_adopted_while_anything_is_stopped(room: Room, here: dict[str, Any]) -> None:
    room.guard.press("all", "r", "me")
    assert adopt(room, here)["kind"] == "Killed" and here["moved"] == []


def test_an_agent_that_is_held_is_not_adopted_again(room: Room, here: dict[str, Any]) -> None:
    adopt(room, here)
    assert adopt(room, here)["kind"] == "Conflict" and adopt(room, here, agent_id="o-2")["kind"] == "Denied"


def test_a_guard_that_takes_over_finishes_what_was_begun_and_never_calls_it_whole(
    room: Room, here: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Died(BaseException):
        """The guard ends here."""

    def die(*_: object) -> str:
        raise Died

    monkeypatch.setattr(helper, "move", die)
    with pytest.raises(Died):
        adopt(room, here)
    room.start()
    assert room.is_frozen("o-1") and not room.guard.registry.held["o-1"].entry.loose
    monkeypatch.setattr(helper, "move", lambda *_: MOVED)
    room.lines[here["pid"]] = f"/watchfloor-{room.config.instance_id}/agents/o-1-00000000"
    room.desk.adoption.resume()
    entry = room.guard.registry.held["o-1"].entry
    assert not entry.adopting and "ended while" in entry.why_best_effort and not room.is_frozen("o-1")


@pytest.fixture
def other(room: Room, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """One more process of it, found below it."""
    process = subprocess.Popen(["/bin/sleep", "60"])
    below = (process.pid, processes.start_ticks(process.pid))
    monkeypatch.setattr(helper, "_look", lambda closures: [*closures, below])
    yield process.pid
    process.kill()
    process.wait()


real_move = helper.move


def test_a_cgroup_that_only_bears_an_instances_name_holds_nobody(
    room: Room, here: dict[str, Any], other: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody who may make a cgroup may call it so: whoever is in there is outside, and no kill of the rest is a proof."""

    def move(pid: int, *rest: Any) -> str:
        if (said := real_move(pid, *rest)) == MOVED:
            room.lines[pid] = f"/watchfloor-{room.config.instance_id}/agents/o-1-00000000"
        return said

    monkeypatch.setattr(helper, "move", move)
    room.lines[other] = "/user.slice/watchfloor-0badcafe/agents/a-00000000"
    done = adopt(room, here)
    assert list(done["left"]) == [str(other)]
    assert "could not be moved" in done["best_effort"] and room.guard.registry.held["o-1"].entry.loose


def test_another_agents_leaf_of_ours_holds_whoever_is_in_it(room: Room, here: dict[str, Any], other: int) -> None:
    room.lines[other] = f"/watchfloor-{room.config.instance_id}/agents/a-1-00000000"
    done = adopt(room, here)
    assert (done["left"], done["whole"], here["moved"]) == ({}, True, [here["pid"]])


def test_one_of_its_processes_that_may_leave_makes_it_best_effort(
    room: Room, here: dict[str, Any], other: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adoption, "can_leave", lambda pid, leaf: pid == other)
    monkeypatch.setattr(cgroups.Leaf, "pids", lambda self: [here["pid"], other])
    done = adopt(room, here)
    assert done["whole"] and "may move itself out" in done["best_effort"]


def test_what_opened_a_line_while_it_was_moved_is_given_back_and_listed(
    room: Room, here: dict[str, Any], other: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A console is never held: the helper knows only the lines that were open when it was asked."""
    assert room.tree is not None
    home = fill(room.tree.mount.point / "session")
    room.lines[here["pid"]] = "/session"

    def move(pid: int, *_: object) -> str:
        room.lines[pid] = f"/watchfloor-{room.config.instance_id}/agents/o-1-00000000"
        room.guard.connected = lambda: frozenset({other})
        return MOVED

    monkeypatch.setattr(helper, "move", move)
    monkeypatch.setattr(cgroups.Leaf, "pids", lambda self: [here["pid"], other])
    done = adopt(room, here)
    assert done["ok"] and "line to the guard" in done["left"][str(other)] and (home / "cgroup.procs").read_text() == str(other)
    assert "could not be moved" in done["best_effort"]


@pytest.mark.parametrize("moved", [0, 1])
def test_a_helper_that_dies_in_the_middle_leaves_nothing_that_counts_as_whole(
    room: Room, here: dict[str, Any], monkeypatch: pytest.MonkeyPatch, moved: int
) -> None:
    it = helper.Adoption()

    def dies(request: dict[str, Any]) -> dict[str, Any]:
        if request["op"] == "bring":
            raise Unavailable("The guard's helper for this (adopt) gave no answer in time.", "")
        return it.answer(request)

    made = InProcess(dies)
    monkeypatch.setattr(adoption, "Helper", lambda *_: made)
    # Before the helper is dead it may still move one: what is counted then is not what stays there.
    monkeypatch.setattr(cgroups.Leaf, "pids", lambda self: [here["pid"]][: moved if made.is_over else 1 - moved])
    done = adopt(room, here)
    if moved:
        assert "not finished" in done["best_effort"] and not done["whole"] and not room.is_frozen("o-1")
        assert room.guard.registry.held["o-1"].entry.loose
    else:
        assert done["kind"] == "Unavailable" and "no answer" in done["error"] and room.guard.registry.held == {}


@pytest.mark.parametrize("found", [{}, {"exe": 1, "cmdline": "", "cgroup": "", "why_not": ""}])
def test_what_a_helper_does_not_describe_is_no_candidate(
    room: Room, here: dict[str, Any], monkeypatch: pytest.MonkeyPatch, found: dict[str, object]
) -> None:
    monkeypatch.setattr(adoption, "Helper", lambda *_: InProcess(lambda _: {"found": found}))
    assert room.ask("adoptable", pid=here["pid"], start_ticks=here["start_ticks"], spare=[])["kind"] == "Unavailable"


@pytest.mark.parametrize(
    "lie",
    [{}, {"changed": "", "refused": []}, {"changed": 1, "refused": [], "origin": []}, {"changed": "", "refused": [], "origin": [], "x": 1}],
)
def test_an_answer_of_another_shape_adopts_no_process(
    room: Room, here: dict[str, Any], monkeypatch: pytest.MonkeyPatch, lie: dict[str, object]
) -> None:
    monkeypatch.setattr(adoption, "Helper", lambda *_: InProcess(lambda _: lie))
    assert adopt(room, here)["kind"] == "Unavailable" and here["moved"] == [] and room.guard.registry.held == {}
