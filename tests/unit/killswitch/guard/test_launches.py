"""Tickets and confirmations: every reason to refuse one, and what a refusal leaves behind (nothing)."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from console.domain.errors import Conflict, Denied, Killed, NotFound, NotRecorded, Unavailable, UsageProblem
from console.killswitch.guard import launches
from console.killswitch.kernel import processes
from console.killswitch.store import atomic_file
from console.killswitch.store.latch import Latch
from console.killswitch.store.registry import Registry
from tests.fakes.guard_room import INSTANCE, Room, fill

BOX = "ab" * 32


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def ticket(room: Room, agent_id: str = "one", kind: str = "process") -> int:
    return int(room.launches.ticket(agent_id, kind, "managed" if kind == "process" else "contained")["generation"])


def enter(room: Room, agent_id: str, pid: int) -> None:
    """As /proc would say once the process is in the leaf of its ticket."""
    room.lines[pid] = f"/watchfloor-{INSTANCE}/agents/{agent_id}-00000000/below"


# --- tickets ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agent_id", "kind", "level"),
    [
        ("One", "process", "managed"),
        ("../x", "process", "managed"),
        ("a\n", "process", "managed"),
        ("a", "thread", "managed"),
        ("a", "process", "x"),
        ("all", "process", "managed"),
    ],
)
def test_a_ticket_is_for_a_valid_agent(room: Room, agent_id: str, kind: str, level: str) -> None:
    with pytest.raises(UsageProblem):
        room.launches.ticket(agent_id, kind, level)
    assert not room.guard.registry.held


def test_a_ticket_is_on_disk_before_it_is_given(room: Room) -> None:
    given = room.launches.ticket("one", "process", "managed")
    assert Path(given["leaf"]).is_dir() and '"one"' in room.guard.registry.path.read_text() and given["inode"]


def test_no_ticket_while_latched_by_a_press_in_memory_or_on_disk(room: Room) -> None:
    room.guard.press("all", "x", "y")
    with pytest.raises(Killed):
        ticket(room)


def test_no_ticket_when_somebody_else_wrote_the_latch(room: Room) -> None:
    other = Latch(room.config.guard_dir)
    other.load()
    other.press("20250101-000000-abcdef", "without the guard")
    other.save()
    with pytest.raises(Killed):
        ticket(room)
    assert room.guard.latch.state.latched


def test_no_ticket_when_the_latch_is_gone(room: Room) -> None:
    room.guard.latch.path.unlink()
    with pytest.raises(Killed):
        ticket(room)


def test_no_ticket_while_soft_stopped_held_silent_or_without_lease(room: Room) -> None:
    room.freezing.soft_stop(True, "bucket unread")
    with pytest.raises(Denied, match="bucket unread"):
        ticket(room)
    room.freezing.soft_stop(False, "")
    held = room.freezing.hold("ann")
    with pytest.raises(Denied, match="held"):
        ticket(room)
    room.freezing.let_go(held.hold_id, "ann")
    room.now += room.config.heartbeat_s + 1
    room.freezing.check_timers()
    with pytest.raises(Denied, match="heartbeat"):
        ticket(room)
    room.freezing.heartbeat()
    room.freezing.lease(5)
    room.now += 5
    with pytest.raises(Denied, match="lease"):  # at its very end, before any timer looked
        ticket(room)
    room.freezing.lease(5)
    assert ticket(room) == 0


def test_one_id_one_ticket(room: Room) -> None:
    ticket(room)
    with pytest.raises(Conflict):
        ticket(room)


def test_no_ticket_without_spare_descriptors(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launches, "spare_descriptors", lambda: launches.SPARE_DESCRIPTORS - 1)
    with pytest.raises(Unavailable, match="descriptors"):
        ticket(room)
    monkeypatch.setattr(launches, "spare_descriptors", lambda: launches.SPARE_DESCRIPTORS)
    ticket(room)


def test_no_ticket_when_the_kernel_makes_no_leaf(room: Room) -> None:
    assert room.tree is not None
    room.tree.refuses = OSError(errno.EAGAIN, "Resource temporarily unavailable")
    with pytest.raises(Unavailable, match="temporarily"):
        ticket(room)
    assert not room.guard.registry.held


def test_no_ticket_that_is_not_on_disk(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic_file, "_replace", full)
    with pytest.raises(NotRecorded, match="No space"):
        ticket(room)
    assert "one" not in room.guard.registry.held and [h.entry.agent_id for h in room.guard.registry.retired] == ["one"]
    monkeypatch.undo()


@pytest.mark.parametrize("stop", ["press", "soft stop"])
def test_a_stop_while_the_ticket_is_written_wins_and_the_id_is_free_again(room: Room, monkeypatch: pytest.MonkeyPatch, stop: str) -> None:
    save = room.guard.registry.save

    def slow() -> None:
        save()
        if stop == "press":
            room.guard.press("all", "in between", "ann")
        else:
            room.freezing.soft_stop(True, "in between")

    monkeypatch.setattr(room.guard.registry, "save", slow)
    with pytest.raises(Killed if stop == "press" else Denied):
        ticket(room)
    assert "one" not in room.guard.registry.held


def test_without_cgroups_a_ticket_names_no_leaf(make_room: Callable[..., Room], monkeypatch: pytest.MonkeyPatch) -> None:
    room = make_room()
    room.guard.tree = None
    given = room.launches.ticket("one", "process", "managed")
    assert (given["leaf"], given["inode"], given["limit_leaves"]) == ("", 0, [])


# --- confirmations ------------------------------------------------------------------------------------------------------


def test_a_process_in_its_leaf_is_confirmed(room: Room, sleeper: tuple[int, int]) -> None:
    pid, ticks = sleeper
    generation = ticket(room)
    enter(room, "one", pid)
    room.launches.confirm("one", generation, pid, ticks)
    held = room.guard.registry.held["one"]
    assert (
        held.entry.confirmed and held.entry.pid == pid and held.init is not None and f'"pid": {pid}' in room.guard.registry.path.read_text()
    )


def test_without_ticket_no_confirmation(room: Room, sleeper: tuple[int, int]) -> None:
    with pytest.raises(NotFound):
        room.launches.confirm("one", 0, *sleeper)


@pytest.mark.parametrize("where", ["/elsewhere", "/", f"/watchfloor-{INSTANCE}/agents/other-00000000", f"/watchfloor-{INSTANCE}/agents"])
def test_a_process_outside_its_leaf_is_refused(room: Room, sleeper: tuple[int, int], where: str) -> None:
    generation, (pid, ticks) = ticket(room), sleeper
    room.lines[pid] = where
    before = descriptors()
    with pytest.raises(Denied, match="not in the leaf"):
        room.launches.confirm("one", generation, pid, ticks)
    assert not room.guard.registry.held["one"].entry.confirmed and descriptors() == before


@pytest.mark.parametrize(("pid", "add"), [(None, 1), (0, 0), (1, 0), (-5, 0), (2**22 + 1, 0)])
def test_a_process_that_is_not_the_one_described_is_refused(room: Room, sleeper: tuple[int, int], pid: int | None, add: int) -> None:
    generation = ticket(room)
    real = sleeper[0] if pid is None else pid
    enter(room, "one", real)
    before = descriptors()
    with pytest.raises(Denied, match="not there as described"):
        room.launches.confirm("one", generation, real, sleeper[1] + add)
    assert descriptors() == before


def test_a_wrong_generation_and_a_press_in_between_are_refused(room: Room, sleeper: tuple[int, int]) -> None:
    generation = ticket(room)
    enter(room, "one", sleeper[0])
    with pytest.raises(Killed, match="in between"):
        room.launches.confirm("one", generation + 1, *sleeper)
    room.guard.press(["one"], "halt", "budget")  # no latch, and yet this one never runs
    with pytest.raises(Killed):
        room.launches.confirm("one", generation, *sleeper)


def test_a_press_while_it_is_being_confirmed_wins_and_leaves_no_descriptor(
    room: Room, sleeper: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    generation = ticket(room)
    enter(room, "one", sleeper[0])
    identify = room.launches._identify
    before = descriptors()

    def slow(*args: object) -> object:
        found = identify(*args)  # type: ignore[arg-type]
        room.guard.registry.mark_killed(["one"], "k")
        return found

    monkeypatch.setattr(room.launches, "_identify", slow)
    with pytest.raises(Killed):
        room.launches.confirm("one", generation, *sleeper)
    assert not room.guard.registry.held["one"].entry.confirmed and descriptors() == before


def test_a_second_process_cannot_take_the_place_of_the_one_that_is_held(room: Room, sleeper: tuple[int, int]) -> None:
    generation, own = ticket(room), os.getpid()
    enter(room, "one", sleeper[0])
    enter(room, "one", own)
    first = room.launches.confirm("one", generation, *sleeper)
    before = descriptors()
    own_ticks = processes.start_ticks(own)
    assert own_ticks is not None
    with pytest.raises(Conflict):
        room.launches.confirm("one", generation, own, own_ticks)
    assert room.launches.confirm("one", generation, *sleeper) == first  # its answer was lost: asked again
    assert descriptors() == before and room.guard.registry.held["one"].entry.pid == sleeper[0]


def test_a_confirmation_that_is_not_recorded_says_so_and_stays_killable(
    room: Room, sleeper: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    generation = ticket(room)
    enter(room, "one", sleeper[0])
    monkeypatch.setattr(atomic_file, "_replace", full)
    with pytest.raises(NotRecorded):
        room.launches.confirm("one", generation, *sleeper)
    assert room.guard.registry.held["one"].init is not None
    monkeypatch.undo()


def test_what_was_frozen_before_its_confirmation_is_frozen_by_it(room: Room, sleeper: tuple[int, int]) -> None:
    generation = ticket(room)
    room.freezing.freeze(["one"], "operator", "ann")
    leaf = Path(room.guard.registry.held["one"].entry.leaf)
    (leaf / "cgroup.freeze").write_text("0")  # as if the write had been lost
    enter(room, "one", sleeper[0])
    room.launches.confirm("one", generation, *sleeper)
    assert room.is_frozen("one")


@pytest.mark.parametrize("container_id", ["", "abc", "G" * 64, BOX + "0", f"../{BOX}"])
def test_a_container_needs_a_valid_id(room: Room, sleeper: tuple[int, int], container_id: str) -> None:
    generation = ticket(room, "box", "container")
    before = descriptors()
    with pytest.raises(UsageProblem):
        room.launches.confirm("box", generation, *sleeper, container_id)
    assert descriptors() == before


def test_a_container_in_a_cgroup_that_names_it_is_confirmed(room: Room, sleeper: tuple[int, int]) -> None:
    generation = ticket(room, "box", "container")
    folder = fill(room.folder / "cg" / "docker" / BOX, 1)
    room.lines[sleeper[0]] = f"/docker/{BOX}/init"
    assert room.launches.confirm("box", generation, *sleeper, BOX)["container_cgroup"] == str(folder)
    held = room.guard.registry.held["box"]
    assert held.container is not None and held.entry.container_id == BOX and held.is_populated()


@pytest.mark.parametrize("line", ["/", f"/docker/{'cd' * 32}", "/user.slice"])
def test_a_container_elsewhere_is_refused(room: Room, sleeper: tuple[int, int], line: str) -> None:
    generation = ticket(room, "box", "container")
    room.lines[sleeper[0]] = line
    with pytest.raises(Denied, match="not in a cgroup of container"):
        room.launches.confirm("box", generation, *sleeper, BOX)


def test_a_container_whose_cgroup_cannot_be_opened_is_refused(room: Room, sleeper: tuple[int, int]) -> None:
    generation = ticket(room, "box", "container")
    room.lines[sleeper[0]] = f"/docker/{BOX}"
    with pytest.raises(Denied, match="cannot be opened"):
        room.launches.confirm("box", generation, *sleeper, BOX)


def test_a_container_whose_cgroup_holds_this_guard_is_refused_and_closed(room: Room, sleeper: tuple[int, int]) -> None:
    generation = ticket(room, "box", "container")
    fill(room.folder / "cg" / "docker" / BOX, 1)
    room.lines |= {sleeper[0]: f"/docker/{BOX}", "self": f"/docker/{BOX}/guard"}
    before = descriptors()
    with pytest.raises(Denied, match="never signalled"):
        room.launches.confirm("box", generation, *sleeper, BOX)
    assert descriptors() == before


# --- the end ------------------------------------------------------------------------------------------------------------


def test_forget_waits_until_nothing_is_left(room: Room) -> None:
    held = room.agent("one", populated=1)
    room.freezing.freeze(["one"], "operator", "ann")
    with pytest.raises(Conflict, match="still has processes"):
        room.launches.forget("one")
    fill(Path(held.entry.leaf), 0)
    assert room.launches.forget("one") == {"known": True} and room.launches.forget("one") == {"known": False}
    assert not room.guard.causes.of("one") and '"one"' not in room.guard.registry.path.read_text()


def test_forget_removes_no_leaf_while_a_kill_needs_it(room: Room) -> None:
    held = room.agent("one", populated=0)
    room.guard.press("all", "x", "y")
    room.launches.forget("one")
    assert held.leaf is not None and held.leaf.can_kill and Path(held.entry.leaf).exists()
    room.run_threads()
    room.guard.registry.sweep()
    assert not held.leaf.can_kill


def test_procs_of_nobody(room: Room) -> None:
    with pytest.raises(NotFound):
        room.launches.procs("ghost")
    held = room.agent("one")
    Path(held.entry.leaf, "cgroup.procs").write_text("".join(f"{n}\n" for n in range(2, 202)))
    answer = room.launches.procs("one")
    assert answer["count"] == 200 and len(answer["pids"]) == 100
    Path(held.entry.leaf, "cgroup.procs").unlink()
    answer = room.launches.procs("one")
    assert (answer["count"], answer["alive"]) == (0, True), "its list cannot be read, and its cgroup holds somebody"


def test_of_whom_it_cannot_vouch_it_does_not_say_that_he_has_ended(room: Room) -> None:
    held = room.agent("one", populated=0)
    assert room.launches.procs("one")["alive"] is False
    held.doubt = "nobody followed it"
    answer = room.launches.procs("one")
    assert answer["alive"] is True and "nobody followed it" in answer["best_effort"]
    room.guard.registry.incomplete = "The registry is missing."
    with pytest.raises(Unavailable, match="not known: The registry is missing"):
        room.launches.procs("ghost")


def test_agents_that_only_the_supervisor_knows_leave_no_press_proven_and_that_is_on_disk(room: Room) -> None:
    room.agent("one")
    assert room.launches.missed("all") == room.launches.missed(["one"]) == {"unknown": 0}
    assert not room.guard.registry.incomplete
    assert room.launches.missed(["one", "two"]) == {"unknown": 1}
    assert "does not know 1 agent " in room.guard.registry.incomplete and "two" in room.guard.notices["registry"]
    again = Registry(room.guard.config.guard_dir)
    again.load()
    assert again.incomplete == room.guard.registry.incomplete
    kill = room.guard.press("all", "x", "y")
    room.run_threads()
    assert not kill.receipt().verified_zero


def test_spare_descriptors_are_counted() -> None:
    before = launches.spare_descriptors()
    fd = os.open("/dev/null", os.O_RDONLY)
    assert launches.spare_descriptors() == before - 1
    os.close(fd)
