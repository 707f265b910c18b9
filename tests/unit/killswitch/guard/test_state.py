"""The guard's own logic: the press and what it never waits for, taking over, what is owed to the disk, the status."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from console.domain.errors import UsageProblem
from console.domain.guard import LINE_LIMIT, encode
from console.domain.kill import Outcome, StepName, StepStatus
from console.domain.verdict import verdict
from console.killswitch.client.kill import press_without_guard
from console.killswitch.guard import state as guard
from console.killswitch.guard.state import KILLS_KEPT, Clerk
from console.killswitch.kernel import processes
from console.killswitch.kernel.engine import Engine, Running
from console.killswitch.kernel.faults import note_fault
from console.killswitch.kill.receipt import new_kill_id, read_receipt
from console.killswitch.store import atomic_file
from console.killswitch.store.registry import Entry, Held
from tests.fakes.engine_stub import EngineStub
from tests.fakes.guard_room import INSTANCE, Room, fill

BOX = "ab" * 32


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def disk() -> Iterator[pytest.MonkeyPatch]:
    """``fail`` fills it; ``undo`` makes room."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch


def fail(disk: pytest.MonkeyPatch) -> None:
    disk.setattr(atomic_file, "_replace", full)
    disk.setattr("console.killswitch.store.journal.write_all", full)


# --- the press ------------------------------------------------------------------------------------------------------------


def test_sigkill_is_out_before_anything_is_written(room: Room, disk: pytest.MonkeyPatch) -> None:
    leaf = room.agent("one").leaf
    fail(disk)
    room.guard.press("all", "why", "who")
    assert leaf is not None and not leaf.is_populated() and room.guard.latch.state.latched
    assert [name for name, _ in room.threads] == ["press-record", "kill"] and room.clerk.waiting == []


def test_an_unwritable_disk_costs_the_record_never_the_kill(room: Room, disk: pytest.MonkeyPatch) -> None:
    room.agent("one")
    fail(disk)
    kill = room.guard.press("all", "why", "who")
    room.run_threads()
    receipt = kill.receipt()
    latch = next(s for s in receipt.steps if s.name is StepName.LATCH)
    assert receipt.verified_zero and receipt.complete and latch.status is StepStatus.FAILED and "No space" in latch.detail
    assert {f"disk-{w}" for w in ("latch", "journal", "registry", "receipt")} <= set(room.guard.notices)


def test_what_the_disk_refused_is_written_once_there_is_room(room: Room, disk: pytest.MonkeyPatch) -> None:
    room.agent("one")
    fail(disk)
    kill = room.guard.press("all", "why", "who")
    room.run_threads()
    room.guard.write_what_is_owed()
    assert room.guard.owed and room.guard.notices
    disk.undo()
    room.guard.write_what_is_owed()
    assert not room.guard.owed and not [n for n in room.guard.notices if n.startswith("disk-")]
    found = read_receipt(room.config.guard_dir, kill.order.kill_id)
    assert found is not None and found.complete and found.verified_zero and room.journal() == ["press"]
    room.start()
    assert room.guard.latch.state.kills == (kill.order.kill_id,)


def test_what_is_owed_stays_bounded(room: Room, disk: pytest.MonkeyPatch) -> None:
    fail(disk)
    for n in range(guard.MOST_OWED + 50):
        room.guard.record("journal", lambda n=n: room.guard.journal.append("freeze", n=n))  # type: ignore[misc]
        room.guard.record("latch", room.guard.latch.save)
    assert len(room.guard.owed) == guard.MOST_OWED and [w for w, _ in room.guard.owed].count("latch") == 1


def test_a_press_names_each_agent_once_and_the_unknown_too(room: Room) -> None:
    room.agent("one")
    kill = room.guard.press(["one", "ghost", "one"], "why", "who")
    assert [a.agent_id for a in kill.aims] == ["one", "ghost"] and not room.guard.latch.state.latched
    room.run_threads()
    receipt = kill.receipt()
    assert [t.outcome for t in receipt.targets] == [Outcome.PROVEN_ZERO, Outcome.NOT_PROVEN] and not receipt.verified_zero
    assert next(s for s in receipt.steps if s.name is StepName.LATCH).status is StepStatus.SKIPPED


def test_a_list_that_names_only_all_means_everything_and_latches(room: Room) -> None:
    room.agent("one")
    kill = room.guard.press(["all"], "why", "who")
    assert room.guard.latch.state.latched and [a.agent_id for a in kill.aims] == ["one"]


def test_an_agent_that_was_killed_stays_so_for_the_next_guard(room: Room) -> None:
    room.agent("one")
    kill = room.guard.press(["one"], "why", "who")
    room.run_threads()
    room.start()
    assert room.guard.registry.held["one"].entry.killed == kill.order.kill_id


def test_texts_of_a_press_are_cut(room: Room) -> None:
    order = room.guard.press("all", "r" * 9000, "b" * 9000, "o" * 9000).order
    assert (len(order.reason), len(order.by), len(order.remote_order)) == (500, 100, 200)


def test_the_last_kills_are_kept(room: Room) -> None:
    ids = [room.guard.press(["ghost"], "", "").order.kill_id for _ in range(KILLS_KEPT + 5)]
    room.run_threads()
    ids.append(room.guard.press(["ghost"], "", "").order.kill_id)
    assert list(room.guard.kills) == ids[6:]


def test_a_receipt_before_the_disk_has_answered_says_so(room: Room) -> None:
    kill = room.guard.press("all", "", "")
    del room.threads[0]  # the recorder hangs
    room.run_threads()
    assert next(s for s in kill.receipt().steps if s.name is StepName.LATCH).status is StepStatus.UNKNOWN


# --- taking over ----------------------------------------------------------------------------------------------------------


def test_without_cgroups_it_says_why(make_room: Callable[..., Room]) -> None:
    room = make_room()
    assert room.tree is not None
    tree, room.tree = room.tree, None
    room.start()
    caps = room.guard.caps()
    assert caps["cgroup"] == "" and "No cgroup v2" in caps["why"]
    room.tree = tree


def test_a_damaged_registry_latches_even_when_the_latch_is_whole(room: Room) -> None:
    room.guard.registry.path.write_text("{}")
    room.start()
    assert room.guard.latch.state.latched and "registry" in room.guard.notices


def test_damaged_causes_read_as_the_strictest_they_may_have_been(room: Room) -> None:
    room.agent("one")
    room.guard.causes.path.write_text("{}")
    room.start()
    assert room.is_frozen("one") and room.guard.causes.of("one") == {"operator", "soft_stop"} and "causes" in room.guard.notices


def test_a_kill_is_finished_under_its_own_id(room: Room) -> None:
    room.agent("one")
    kill_id = new_kill_id()
    room.guard.latch.press(kill_id, "half done")
    room.guard.latch.save()
    room.start()
    room.guard.finish_kills()
    room.run_threads()
    found = read_receipt(room.config.guard_dir, kill_id)
    assert found is not None and found.complete and room.guard.latch.state.generation == 1
    room.start()
    room.guard.finish_kills()
    assert not room.guard.kills  # and once done it is not pressed again


def test_a_kill_of_one_agent_is_finished_without_a_latch(room: Room) -> None:
    held = room.agent("one")
    room.guard.registry.mark_killed(["one"], new_kill_id())
    room.guard.registry.save()
    room.start()
    room.guard.finish_kills()
    assert held.leaf is not None and not held.leaf.is_populated() and not room.guard.latch.state.latched
    assert [k.order.scope for k in room.guard.kills.values()] == ["one"]


def test_a_latch_that_could_not_be_read_is_pressed_under_an_id_of_its_own(room: Room) -> None:
    held = room.agent("one")
    room.guard.latch.path.write_bytes(b"\0")
    room.start()
    room.guard.finish_kills()
    assert held.leaf is not None and not held.leaf.is_populated()
    (kill_id,) = room.guard.kills
    assert set(room.guard.latch.state.kills) == {"latch-unreadable", kill_id}


# --- afterwards -----------------------------------------------------------------------------------------------------------


def test_what_rises_among_the_killed_is_struck_and_said(room: Room) -> None:
    held, other = room.agent("one"), room.agent("two")
    room.guard.press(["one"], "", "")
    room.guard.strike_the_risen()
    assert "risen" not in room.guard.notices  # while the kill goes on it strikes by itself
    room.run_threads()
    fill(Path(held.entry.leaf), 1)
    room.guard.strike_the_risen()
    assert not held.is_populated() and "one" in room.guard.notices["risen"] and other.is_populated()


def test_while_latched_a_group_nobody_registered_is_struck_too(room: Room) -> None:
    room.guard.press("all", "", "")
    room.run_threads()
    assert room.tree is not None
    fill(room.tree.agents.path, 1)
    room.guard.strike_the_risen()
    assert not room.tree.agents.is_populated()


@pytest.mark.parametrize(("state", "struck"), [("free", False), ("latched", True), ("killed", True), ("other killed", False)])
def test_a_container_that_starts_is_killed_only_when_it_must(
    room: Room, tmp_path: Path, sleeper: tuple[int, int], monkeypatch: pytest.MonkeyPatch, state: str, struck: bool
) -> None:
    stub = EngineStub(tmp_path / "e.sock", "lies")
    try:
        room.guard.engine = Engine(tmp_path / "e.sock", INSTANCE, call_s=0.5)
        stub.containers[BOX] = {"pid": sleeper[0], "agent": "one", "instance": INSTANCE}
        room.guard.registry.held |= {i: Held(Entry(i, "container", "contained", 0)) for i in ("one", "two")}
        if state == "latched":
            room.guard.latch.press("k", "")
        room.guard.registry.mark_killed({"killed": ["one"], "other killed": ["two"]}.get(state, []), "k")
        asked: list[str] = []
        monkeypatch.setattr(room.guard, "press", lambda scope, *_: asked.append(str(scope)))
        monkeypatch.setattr(processes, "names_container", lambda pid, container_id: True)
        room.guard.container_started(Running(BOX, "one"))
        assert asked == {"latched": ["all"], "killed": ["['one']"]}.get(state, [])  # no kill in memory: one with a receipt of its own
        assert any(line.endswith("/kill?signal=SIGKILL") for line in stub.asked) is struck
        assert ("came-back" in room.guard.notices) is struck
    finally:
        stub.close()


def test_agents_places_cover_leaves_containers_and_namespaces(room: Room) -> None:
    room.agent("one")
    room.guard.registry.held["box"] = Held(Entry("box", "container", "contained", 0, container_leaf="/m/box", pid_namespace=7))
    places = room.guard.agent_places()
    assert room.tree is not None and {str(room.tree.agents.path), "/m/box"} <= places.folders
    assert places.namespaces == {7}


# --- un-kill, as the desk asks it ------------------------------------------------------------------------------------------


def pressed(room: Room) -> tuple[int, list[str]]:
    room.guard.press("all", "one", "x")
    room.guard.press("all", "two", "x")
    room.run_threads()
    return room.guard.latch.state.generation, list(room.guard.latch.state.kills)


def test_unlatch_needs_the_generation_and_every_kill(room: Room) -> None:
    generation, kills = pressed(room)
    for wrong, named in ((generation - 1, kills), (generation + 1, kills), (generation, kills[1:]), (generation, []), (generation, ["x"])):
        assert room.ask("unlatch", generation=wrong, kills=named)["kind"] == "Conflict"
    for message in ({}, {"generation": generation}, {"generation": "2", "kills": kills}, {"generation": generation, "kills": "all"}):
        assert room.ask("unlatch", **message)["kind"] == "UsageProblem"
    assert room.guard.latch.state.latched and "unlatch" not in room.journal()
    assert room.unlatch(generation, [*kills, "more"])["ok"]
    assert room.ask("status")["latched"] is False and room.ask("unlatch", generation=generation, kills=kills)["kind"] == "Conflict"


def test_unlatch_asks_the_kernel_whatever_the_caller_believes(room: Room) -> None:
    generation, kills = pressed(room)
    room.guard.registry.held["a-alive"] = SimpleNamespace(is_populated=lambda: True)  # type: ignore[assignment]
    assert room.ask("unlatch", generation=generation, kills=kills)["kind"] == "Conflict"
    assert room.guard.latch.state.latched
    del room.guard.registry.held["a-alive"]
    assert room.unlatch(generation, kills)["ok"]


def test_unlatch_waits_for_the_kill(room: Room) -> None:
    room.guard.press("all", "", "")
    assert room.ask("unlatch", generation=1, kills=list(room.guard.latch.state.kills))["kind"] == "Conflict"


@pytest.mark.parametrize("part", ["journal", "latch"])
def test_unlatch_that_is_not_recorded_does_not_happen(room: Room, disk: pytest.MonkeyPatch, part: str) -> None:
    generation, kills = pressed(room)
    if part == "journal":
        disk.setattr("console.killswitch.store.journal.write_all", full)
    else:
        disk.setattr(atomic_file, "_replace", full)
    assert room.unlatch(generation, kills)["kind"] == "NotRecorded"
    assert room.guard.latch.state.latched
    disk.undo()
    room.start()
    assert room.guard.latch.state.latched and room.unlatch(generation, kills)["ok"]


def test_unlatch_obeys_a_press_that_somebody_else_wrote(room: Room) -> None:
    from console.killswitch.store.latch import Latch

    generation, kills = pressed(room)
    other = Latch(room.config.guard_dir)
    other.load()
    other.press("20250101-000000-abcdef", "without the guard")
    other.save()
    assert room.ask("unlatch", generation=generation, kills=kills)["kind"] == "Conflict"


# --- the status -----------------------------------------------------------------------------------------------------------


def crowd(room: Room, count: int) -> None:
    for n in range(count):
        agent_id = f"agent-with-a-long-name-{n:040d}"
        room.guard.registry.held[agent_id] = Held(Entry(agent_id, "process", "managed", 0))
        room.guard.causes.by_agent[agent_id] = {"operator", "hold", "budget", "heartbeat"}


def test_the_status_of_ten_thousand_agents_fits_into_a_line(room: Room) -> None:
    crowd(room, 10_000)
    answer = room.ask("status")
    assert len(encode(answer)) <= LINE_LIMIT and (answer["agents"], answer["frozen_n"]) == (10_000, 10_000) and len(answer["frozen"]) >= 2


@pytest.mark.parametrize("letter", ["x", "é", "停", "🛑", "\x00", "\ud800", '"'])
def test_the_status_fits_whatever_words_people_use(room: Room, letter: str) -> None:
    """A reason of a press is a notice after a restart; each of its letters takes up to twelve bytes on the wire."""
    crowd(room, 200)
    for _ in range(120):
        room.guard.latch.press(new_kill_id(), letter * 9000)
    room.guard.latch.save()
    room.start()
    crowd(room, 200)
    for n in range(9):
        room.guard.notices[f"n{n}"] = letter * 300
    room.freezing.soft_stop(True, letter * 300)
    for _ in range(40):
        room.freezing.hold(letter * 100)
    room.guard.tree_why = letter * 300
    answer = room.ask("status")
    assert len(encode(answer)) <= LINE_LIMIT and answer["latched"] and answer["notices"] and answer["soft_stop"]


def test_every_piece_of_a_receipt_fits_into_a_line(room: Room) -> None:
    kill = room.guard.press("all", '"\\' * 250, "\U0001f6d1" * 100)
    room.run_threads()
    text, offset = "", 0
    while True:
        piece = room.ask("receipt", "operator", kill_id=kill.order.kill_id, offset=offset)
        encode(piece)
        text += piece["text"]
        if piece["next"] is None:
            break
        offset = piece["next"]
    assert json.loads(text)["kill_id"] == kill.order.kill_id


# --- the clerk ------------------------------------------------------------------------------------------------------------


class Last(BaseException):
    """Ends a clerk's loop: nothing else does."""


def test_the_clerk_outlives_its_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    clerk, done = Clerk(), []

    def end() -> None:
        raise Last

    for job in (full, lambda: done.append(1 / 0), lambda: done.append(1), end):
        clerk.do(job)
    with pytest.raises(Last):
        clerk.run()
    assert done == [1] and "No space" in capsys.readouterr().err


def test_a_log_that_cannot_be_written_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w") as log:
        monkeypatch.setattr("sys.stderr", log)
        note_fault("loop", ValueError("x"))
        monkeypatch.undo()
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
            log.flush()
        os.dup2(os.open(os.devnull, os.O_WRONLY), log.fileno())


@pytest.mark.parametrize("how", ["damaged", "missing"])
def test_with_a_lost_registry_no_kill_is_zero_until_an_unlatch(room: Room, how: str) -> None:
    room.agent("one", populated=0)
    path = room.guard.registry.path
    path.write_text("{}") if how == "damaged" else path.unlink()
    for _ in range(2):  # the second restart finds a whole registry, which knows nothing either
        room.start()
        assert room.guard.latch.state.latched and "registry" in room.guard.notices
        kill = room.guard.press("all", "", "")
        room.run_threads()
        receipt = kill.receipt()
        assert not receipt.verified_zero and kill.steps[StepName.ZERO].status is not StepStatus.OK and verdict(receipt).exit_code == 9
    state = room.guard.latch.state
    assert room.unlatch(state.generation, list(state.kills))["ok"]
    room.start()
    assert not room.guard.registry.incomplete and not room.guard.latch.state.latched


def test_an_orderly_end_waits_for_what_was_asked_of_the_clerk() -> None:
    class Last(BaseException):
        """Ends the clerk's thread."""

    def work() -> None:
        with contextlib.suppress(Last):
            clerk.run()

    def end() -> None:
        raise Last

    clerk, done, stuck = Clerk(), list[int](), threading.Event()
    clerk.do(lambda: done.append(1))
    thread = threading.Thread(target=work)
    thread.start()
    assert clerk.drain(10) and done == [1]

    def hang() -> None:
        stuck.wait(60)

    clerk.do(hang)
    assert not clerk.drain(0.05)
    stuck.set()
    clerk.do(end)
    thread.join(60)


def test_the_reserve_is_kept_for_the_latch_of_a_press(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    room.agent("one")
    room.clerk.work()
    real = atomic_file._replace

    def replace(path: Path, data: bytes) -> None:
        if room.guard.reserve.path.exists():
            full()
        real(path, data)

    monkeypatch.setattr(atomic_file, "_replace", replace)
    room.freezing.freeze(["one"], "operator", "ann")
    room.clerk.work()
    assert room.guard.reserve.path.exists() and not room.ask("ticket", agent_id="two", kind="process", control_level="managed")["ok"]
    room.guard.press("all", "", "")
    room.run_threads()
    monkeypatch.setattr(atomic_file, "_replace", real)
    room.start()
    assert room.guard.latch.state.latched


def test_a_kill_under_way_is_never_forgotten(room: Room) -> None:
    kills = [room.guard.press(["nobody"], "", "") for _ in range(KILLS_KEPT + 10)]
    assert len(room.guard.kills) == KILLS_KEPT + 10 and room.ask("progress", kill_id=kills[0].order.kill_id)["ok"]
    room.run_threads()
    room.guard.press(["nobody"], "", "")
    assert len(room.guard.kills) == KILLS_KEPT


def test_the_risen_of_the_latch_are_struck_while_a_list_kill_runs(room: Room) -> None:
    held = room.agent("one")
    room.guard.press("all", "", "")
    room.run_threads()
    fill(Path(held.entry.leaf), 1)
    room.guard.press(["canary-1"], "", "canary")  # under way: its thread has not run
    room.guard.strike_the_risen()
    assert not held.is_populated()


def test_a_press_of_nobody_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem):
        press_without_guard(tmp_path, tmp_path, INSTANCE, [], "", "")
