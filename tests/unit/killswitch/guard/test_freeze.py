"""Causes, holds and timers on a clock that the test turns: each cause removes only itself, and no race thaws what must stay."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator

import pytest

from console.domain.errors import Conflict, Denied, NotFound, NotRecorded
from console.domain.guard import CAUSES, HOLD_S, LEASE_S
from console.killswitch.guard import freeze
from console.killswitch.guard.freeze import check_cause
from console.killswitch.store import atomic_file
from tests.fakes.guard_room import Room


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def one(room: Room) -> Room:
    """A room with one agent that runs."""
    room.agent("one")
    return room


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bool], None]]:
    """Fills the disk, or empties it."""
    with pytest.MonkeyPatch.context() as patch:

        def fill(on: bool) -> None:
            patch.undo()
            if on:
                patch.setattr(atomic_file, "_replace", full)
                patch.setattr("console.killswitch.store.journal.write_all", full)

        yield fill


# --- causes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cause", CAUSES)
def test_each_cause_removes_only_itself(one: Room, cause: str) -> None:
    for each in CAUSES:
        one.freezing.freeze(["one"], each, "x")
    assert one.freezing.thaw(["one"], cause, "x") == ["one"]
    assert one.guard.causes.of("one") == set(CAUSES) - {cause} and one.is_frozen("one")
    for each in CAUSES:
        one.freezing.thaw(["one"], each, "x")
    assert not one.is_frozen("one") and one.guard.causes.by_agent == {}


def test_on_the_operators_socket_only_ones_own_freeze_is_thawed(one: Room, full_disk: Callable[[bool], None]) -> None:
    one.freezing.freeze(["one"], "operator", "ann", 1000)
    one.freezing.freeze(["one"], "operator", "bob", 1001)
    with pytest.raises(Denied):
        one.freezing.thaw(["one"], "operator", "eve", 1002)
    full_disk(True)
    with pytest.raises(NotRecorded):
        one.freezing.thaw(["one"], "operator", "ann", 1000)
    full_disk(False)
    assert one.freezing.thaw(["one"], "operator", "ann", 1000) == ["one"] and one.is_frozen("one")  # bob's holds it
    with pytest.raises(Denied):
        one.freezing.thaw(["one"], "operator", "ann", 1000)
    one.clerk.work()
    one.start()  # after a crash it is still bob's
    assert one.freezing.thaw(["one"], "operator", "bob", 1001) == ["one"] and not one.is_frozen("one")


def test_the_supervisor_thaws_what_any_operator_froze_and_no_operator_what_the_supervisor_froze(one: Room) -> None:
    one.ask("freeze", "operator", scope=["one"])
    assert one.ask("thaw", scope=["one"])["thawed"] == 1 and not one.is_frozen("one")
    one.ask("freeze", scope=["one"], by="ann")
    assert one.ask("thaw", "operator", scope=["one"])["kind"] == "Denied" and one.is_frozen("one")


def test_a_cause_that_is_not_there_thaws_nothing_and_is_not_recorded(one: Room) -> None:
    one.freezing.freeze(["one"], "operator", "ann")
    one.clerk.work()
    assert one.freezing.thaw(["one", "ghost"], "budget", "x") == [] and one.is_frozen("one") and one.journal() == ["freeze"]


def test_a_freeze_acts_before_it_is_recorded_and_names_only_the_known(one: Room) -> None:
    assert one.freezing.freeze(["one", "ghost"], "operator", "ann") == {"one": "sent"}
    assert one.is_frozen("one") and one.journal() == [] and "ghost" not in one.guard.causes.by_agent
    one.clerk.work()
    assert one.journal() == ["freeze"]


def test_a_freeze_on_a_full_disk_acts_and_is_recorded_later(one: Room, full_disk: Callable[[bool], None]) -> None:
    full_disk(True)
    one.freezing.freeze(["one"], "operator", "ann")
    one.clerk.work()
    assert one.is_frozen("one") and "disk-freeze" in one.guard.notices
    full_disk(False)
    one.guard.write_what_is_owed()
    assert one.journal() == ["freeze"] and "disk-freeze" not in one.guard.notices
    one.start()
    assert one.guard.causes.of("one") == {"operator"}


def test_a_thaw_that_is_not_recorded_does_not_happen(one: Room, full_disk: Callable[[bool], None]) -> None:
    one.freezing.freeze(["one"], "operator", "ann")
    full_disk(True)
    with pytest.raises(NotRecorded, match="No space"):
        one.freezing.thaw(["one"], "operator", "ann")
    assert one.is_frozen("one") and one.guard.causes.of("one") == {"operator"} and "thaw" in one.guard.notices
    full_disk(False)
    one.freezing.thaw(["one"], "operator", "ann")
    assert not one.is_frozen("one") and "thaw" not in one.guard.notices


def test_a_thaw_whose_causes_cannot_be_saved_puts_back_its_cause_and_no_other(one: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal has it, the causes have not; meanwhile somebody else froze for a reason of his own."""
    one.freezing.freeze(["one"], "operator", "ann")

    def save() -> None:
        one.guard.causes.add("one", "budget")
        full()

    monkeypatch.setattr(type(one.guard.causes), "save", lambda _: save())
    with pytest.raises(NotRecorded):
        one.freezing.thaw(["one"], "operator", "ann")
    assert one.guard.causes.of("one") == {"operator", "budget"} and one.is_frozen("one")


@pytest.mark.parametrize("cause", ["heartbeat", "", "OPERATOR", "x" * 100])
def test_a_door_lifts_only_its_own_causes(cause: str) -> None:
    with pytest.raises(Conflict):
        check_cause(cause, ("operator",))
    assert check_cause("operator", ("operator",)) == "operator"


def test_what_the_kernel_does_not_call_frozen_is_not_confirmed(one: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    assert one.freezing.unconfirmed(["one", "nobody"]) == {}  # no cause, no doubt
    with monkeypatch.context() as patch:
        patch.setattr(type(one.guard.registry.held["one"].leaf), "is_frozen", lambda self: False)
        assert one.ask("freeze", cause="operator", scope=["one"])["frozen"] == 1  # the write went out
        answer = one.ask("freezing", scope=["one"])
        assert answer["n"] == 1 and "does not say" in answer["unconfirmed"]["one"]
    assert one.ask("freezing", scope=["one"])["n"] == 0


# --- holds --------------------------------------------------------------------------------------------------------------


def test_a_hold_freezes_now_and_kills_at_its_end_under_its_own_id(one: Room) -> None:
    hold = one.freezing.hold("ann")
    assert one.is_frozen("one") and one.freezing.next_timer() == pytest.approx(HOLD_S)
    one.now += HOLD_S - 0.01
    one.freezing.fire_holds()
    assert not one.guard.kills
    one.now += 0.02
    one.freezing.fire_holds()
    one.freezing.fire_holds()
    assert list(one.guard.kills) == [hold.kill_id] and one.guard.latch.state.kills == (hold.kill_id,)
    assert one.freezing.next_timer() > HOLD_S


@pytest.mark.parametrize("hold_id", ["", "h-00000000", "x" * 40])
def test_an_unknown_hold_cannot_be_let_go(one: Room, hold_id: str) -> None:
    one.freezing.hold("ann")
    with pytest.raises(NotFound):
        one.freezing.let_go(hold_id, "ann")
    assert one.is_frozen("one")


def test_a_hold_that_ended_cannot_be_let_go(one: Room) -> None:
    hold = one.freezing.hold("ann")
    one.now += HOLD_S
    one.freezing.fire_holds()
    with pytest.raises(NotFound, match="ended in a kill"):
        one.freezing.let_go(hold.hold_id, "ann")
    assert one.is_frozen("one") and one.guard.latch.state.latched


def test_a_hold_let_go_twice(one: Room) -> None:
    hold = one.freezing.hold("ann")
    assert one.freezing.let_go(hold.hold_id, "ann") == ["one"] and not one.is_frozen("one")
    with pytest.raises(NotFound):
        one.freezing.let_go(hold.hold_id, "ann")


def test_letting_go_on_a_full_disk_neither_thaws_nor_kills(one: Room, full_disk: Callable[[bool], None]) -> None:
    hold = one.freezing.hold("ann")
    full_disk(True)
    with pytest.raises(NotRecorded):
        one.freezing.let_go(hold.hold_id, "ann")
    one.now += HOLD_S + 1
    one.freezing.fire_holds()
    assert one.is_frozen("one") and not one.guard.kills and any("could not be recorded" in n for n in one.guard.notices.values())
    full_disk(False)
    assert one.freezing.let_go(hold.hold_id, "ann") == ["one"]
    assert not one.is_frozen("one") and not [k for k in one.guard.notices if k.startswith("hold-")]


def test_a_hold_holds_what_another_holds_and_what_an_operator_froze(one: Room) -> None:
    one.freezing.freeze(["one"], "operator", "ann")
    first, second = one.freezing.hold("ann"), one.freezing.hold("ben")
    assert one.freezing.let_go(first.hold_id, "ann") == []
    assert one.guard.causes.of("one") == {"operator", "hold"}
    assert one.freezing.let_go(second.hold_id, "ben") == ["one"]
    assert one.guard.causes.of("one") == {"operator"} and one.is_frozen("one")


def test_a_vanished_peer_leaves_it_frozen_and_amber_over_a_restart(one: Room) -> None:
    hold = one.freezing.hold("ann")
    one.freezing.peer_vanished(hold.hold_id)
    one.freezing.peer_vanished("h-00000000")
    one.now += 10 * HOLD_S
    one.freezing.fire_holds()
    one.clerk.work()
    assert one.is_frozen("one") and not one.guard.kills and "vanished" in one.guard.notices[f"hold-{hold.hold_id}"]
    assert "hold_abandoned" in one.journal()
    one.start()
    assert one.guard.causes.of("one") == {"hold"} and one.freezing.next_timer() > HOLD_S
    assert one.freezing.let_go(hold.hold_id, "ben") == ["one"]


@pytest.mark.parametrize("with_agent", [True, False])
def test_a_hold_let_go_does_not_come_back_with_the_next_guard(make_room: Callable[..., Room], with_agent: bool) -> None:
    room = make_room()
    if with_agent:
        room.agent("one")
    hold = room.freezing.hold("ann")
    room.clerk.work()
    room.freezing.let_go(hold.hold_id, "ann")
    room.clerk.work()
    room.start()
    assert room.freezing.why_nothing_starts() == "" and not room.guard.causes.holds


def test_letting_go_of_a_hold_on_nobody_is_recorded_first_as_well(room: Room, full_disk: Callable[[bool], None]) -> None:
    hold = room.freezing.hold("ann")
    full_disk(True)
    with pytest.raises(NotRecorded):
        room.freezing.let_go(hold.hold_id, "ann")
    assert room.freezing.why_nothing_starts()


def test_a_hold_that_killed_does_not_come_back_with_the_next_guard(one: Room) -> None:
    """Once rearmed, launches must not wait for a hold that ended long ago."""
    one.freezing.hold("ann")
    one.clerk.work()
    one.now += HOLD_S
    one.freezing.fire_holds()
    one.run_threads()
    one.clerk.work()
    one.start()
    assert not one.guard.causes.holds and not [k for k in one.guard.notices if k.startswith("hold-")]


def test_a_hold_that_begins_while_another_is_let_go_holds(one: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    first = one.freezing.hold("ann")
    append = one.guard.journal.append

    def slow(kind: str, **data: object) -> int:
        if kind == "thaw":
            one.freezing.hold("ben")  # the disk took that long
        return append(kind, **data)

    monkeypatch.setattr(one.guard.journal, "append", slow)
    one.freezing.let_go(first.hold_id, "ann")
    assert one.is_frozen("one") and one.guard.causes.of("one") == {"hold"}


# --- the heartbeat and the lease ----------------------------------------------------------------------------------------


def beat_late(room: Room) -> None:
    room.now += room.config.heartbeat_s + 0.1
    room.freezing.check_timers()


def test_silence_freezes_and_a_heartbeat_thaws_only_that(one: Room) -> None:
    one.freezing.freeze(["one"], "budget", "x")
    beat_late(one)
    assert one.guard.causes.of("one") == {"budget", "heartbeat"} and "heartbeat" in one.guard.notices
    one.freezing.heartbeat()
    one.clerk.work()
    assert one.guard.causes.of("one") == {"budget"} and one.is_frozen("one") and "heartbeat" not in one.guard.notices


@pytest.mark.parametrize(("said", "good_for"), [(None, 30), (-5, 30), (5, 30), (90, 90), (1e9, 120)])
def test_a_planned_restart_is_believed_for_two_minutes_at_most(one: Room, said: float | None, good_for: float) -> None:
    one.freezing.heartbeat(said)
    one.now += good_for - 0.1
    one.freezing.check_timers()
    assert not one.is_frozen("one")
    one.now += 0.2
    one.freezing.check_timers()
    assert one.is_frozen("one")


def test_a_thaw_that_waited_for_the_disk_while_silence_came_back_does_not_happen(one: Room) -> None:
    """Heard once, then silent again before the clerk got to the thaw."""
    beat_late(one)
    one.clerk.work()
    one.freezing.heartbeat()
    beat_late(one)
    one.clerk.work()
    assert one.freezing.heartbeat_lost and one.is_frozen("one") and one.guard.causes.of("one") == {"heartbeat"}
    assert "thaw" not in one.journal()  # not even for a moment


def test_silence_that_comes_back_during_the_thaw_freezes_again(one: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    beat_late(one)
    one.clerk.work()
    one.freezing.heartbeat()
    append = one.guard.journal.append

    def slow(kind: str, **data: object) -> int:
        if kind == "thaw":
            beat_late(one)  # the disk took that long
        return append(kind, **data)

    monkeypatch.setattr(one.guard.journal, "append", slow)
    one.clerk.work()
    assert one.freezing.heartbeat_lost and one.is_frozen("one") and one.guard.causes.of("one") == {"heartbeat"}


def test_a_heartbeats_thaw_on_a_full_disk_is_tried_by_the_next(one: Room, full_disk: Callable[[bool], None]) -> None:
    beat_late(one)
    full_disk(True)
    one.freezing.heartbeat()
    one.clerk.work()
    assert one.is_frozen("one") and one.freezing.heartbeat_lost and one.freezing.why_nothing_starts()
    full_disk(False)
    one.freezing.heartbeat()
    one.clerk.work()
    assert not one.is_frozen("one") and not one.freezing.heartbeat_lost


def test_a_successor_knows_that_the_supervisor_was_silent(one: Room) -> None:
    beat_late(one)
    one.clerk.work()
    one.start()
    assert one.freezing.heartbeat_lost and one.is_frozen("one")
    one.freezing.heartbeat()
    one.clerk.work()
    assert not one.is_frozen("one")


def test_a_lease_runs_out_and_only_a_good_one_thaws(one: Room) -> None:
    one.freezing.lease(LEASE_S)
    assert one.freezing.lease_left() == LEASE_S
    one.now += LEASE_S + 0.1
    one.freezing.heartbeat()
    one.freezing.check_timers()
    assert one.guard.causes.of("one") == {"lease"} and one.freezing.lease_left() == 0.0
    one.freezing.lease(-5)
    assert one.is_frozen("one")
    one.freezing.lease(LEASE_S)
    assert not one.is_frozen("one") and one.freezing.why_nothing_starts() == ""


def test_a_lease_is_never_longer_than_an_hour_and_never_resets(one: Room) -> None:
    one.freezing.lease(1e12)
    assert one.freezing.lease_left() == freeze.LONGEST_LEASE_S
    one.now += 100
    one.start()
    assert one.freezing.lease_left() == freeze.LONGEST_LEASE_S - 100


def test_leasing_ends_only_when_that_is_recorded(one: Room, full_disk: Callable[[bool], None]) -> None:
    one.freezing.lease(5)
    full_disk(True)
    with pytest.raises(NotRecorded):
        one.freezing.lease(None)
    assert one.freezing.lease_left() == 5
    full_disk(False)
    one.freezing.lease(None)
    assert one.freezing.lease_left() is None


def test_a_guard_told_to_lease_starts_without_one(make_room: Callable[..., Room]) -> None:
    room = make_room(lease=True)
    assert room.freezing.lease_left() == 0.0 and "lease" in room.freezing.why_nothing_starts()


# --- the soft stop ------------------------------------------------------------------------------------------------------


def test_a_soft_stop_freezes_and_ends_egress(one: Room) -> None:
    one.freezing.soft_stop(True, "w" * 1000)
    assert one.is_frozen("one") and one.guard.causes.soft_stop == "w" * 300 and one.tree is not None
    assert (one.tree.relays.path / "cgroup.kill").read_text() == "1"
    one.clerk.work()
    one.start()
    assert one.is_frozen("one") and one.freezing.why_nothing_starts()
    one.freezing.soft_stop(False, "")
    assert not one.is_frozen("one") and one.freezing.why_nothing_starts() == ""


def test_a_soft_stop_without_a_reason_is_one(one: Room) -> None:
    one.freezing.soft_stop(True, "")
    assert one.freezing.why_nothing_starts()


@pytest.mark.parametrize("with_agent", [True, False])
def test_a_soft_stop_whose_end_is_not_recorded_goes_on(room: Room, full_disk: Callable[[bool], None], with_agent: bool) -> None:
    if with_agent:
        room.agent("one")
    room.freezing.soft_stop(True, "bucket unread")
    full_disk(True)
    with pytest.raises((NotRecorded, OSError)):
        room.freezing.soft_stop(False, "")
    assert "bucket unread" in room.freezing.why_nothing_starts() and (not with_agent or room.is_frozen("one"))


def test_the_timers_freeze_everybody_once(one: Room) -> None:
    beat_late(one)
    one.clerk.work()
    one.freezing.check_timers()
    assert one.clerk.waiting == []


# --- a guard that ends at once ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["freeze", "hold", "soft stop"])
def test_what_was_frozen_and_not_recorded_yet_is_never_thawed_by_a_restart(one: Room, how: str) -> None:
    one.clerk.work()
    if how == "freeze":
        one.freezing.freeze(["one"], "operator", "ann")
    elif how == "hold":
        one.freezing.hold("ann")
    else:
        one.freezing.soft_stop(True, "bucket unread")
    one.start()
    assert one.is_frozen("one") and one.guard.causes.of("one")
    assert "thaw" not in one.journal() and one.guard.causes.soft_stop == ("bucket unread" if how == "soft stop" else "")
    if how != "soft stop":
        assert one.guard.causes.of("one") == {"operator"} and "causes" in one.guard.notices and "freeze" in one.journal()
        assert one.freezing.thaw(["one"], "operator", "ann") == ["one"] and not one.is_frozen("one")


def test_missing_causes_keep_everything_frozen(one: Room) -> None:
    one.freezing.freeze(["one"], "budget", "x")
    one.clerk.work()
    one.guard.causes.path.unlink()
    one.start()
    assert one.is_frozen("one") and one.guard.causes.of("one") == {"operator", "soft_stop"} and "causes" in one.guard.notices


def test_an_agent_that_runs_is_left_running_by_a_restart(one: Room) -> None:
    one.start()
    assert not one.is_frozen("one") and one.guard.causes.by_agent == {}
