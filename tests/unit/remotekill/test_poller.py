"""The poller with a store and a clock in hand: what is told, in which order, and what is durable by then."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console.domain.errors import Unreachable
from console.remotekill import poller as module
from console.remotekill.channel import FULL_READ_EVERY
from console.remotekill.document import SCHEMA_2, order_of, sign
from console.remotekill.machine import NUMBERED_KEPT, Alarm, Effect, HostState, Latch, LeaseRenewed, LiftSoftStop, Mode, Released, SoftStop
from console.remotekill.orders import AHEAD, Found, HistoryRead, OrdersRead
from console.remotekill.poller import Poller
from console.remotekill.state_file import load_state, save_state
from console.remotekill.store import RemoteRead

EMERGENCY = b'{"killed":true,"reason":"emergency"}'
KILL = order_of(50, EMERGENCY)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Shelf:
    """A store that serves what lies on it and takes ``takes_s`` of the clock's seconds."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.next = RemoteRead(missing=True)
        self.known: list[int] = []
        self.takes_s = 0.0
        self.orders: dict[int, bytes | None] = {}
        self.past: dict[int, bytes] = {}
        self.asked: list[tuple[int, int]] = []
        self.listed = 0
        self.orders_fault = OrdersRead()
        self.history_fault = HistoryRead(versioned=True)

    def put(self, generation: int, body: bytes) -> None:
        self.next = RemoteRead(generation, body)

    def read_orders(self, first: int, *, ahead: int) -> OrdersRead:
        self.asked.append((first, ahead))
        numbers = [n for n in sorted(self.orders) if n >= first]
        reached = [n for place, n in enumerate(numbers) if n <= first + place + ahead]
        return replace(self.orders_fault, found=tuple(Found(n, 1000 + n, self.orders[n]) for n in reached))

    def read_history(self, known: frozenset[int] | None) -> HistoryRead:
        self.listed += 1
        past = [] if known is None else [Found(0, g, body) for g, body in self.past.items() if g not in known]
        here = (*self.past, *([self.next.generation] if self.next.generation else []))
        return replace(self.history_fault, found=tuple(past), listed=here, live=self.next.generation)

    def read(self, known_generation: int = 0) -> RemoteRead:
        self.known.append(known_generation)
        self.clock.now += self.takes_s
        if known_generation and known_generation == self.next.generation:
            return RemoteRead(known_generation, unchanged=True)
        return self.next


class Host:
    """One host under test."""

    def __init__(self, fleet: Any, folder: Path, **options: Any) -> None:
        self.clock = Clock()
        self.shelf = Shelf(self.clock)
        self.file = folder / "remote.json"
        self.took: list[Effect] = []
        self.on_disk: list[Mode] = []
        self.refusing = False
        self.poller = Poller(self.shelf, self.file, fleet.keys(), self.take, clock=self.clock, **options)

    def take(self, effect: Effect) -> None:
        if self.refusing:
            raise Unreachable("The guard did not answer.")
        self.took.append(effect)
        self.on_disk.append(load_state(self.file)[0].mode)

    def poll(self) -> list[Effect]:
        before = len(self.took)
        self.poller.poll_once()
        return self.took[before:]

    def arm(self, fleet: Any) -> None:
        self.shelf.put(10, fleet.baseline(1, "k1"))
        self.poll()
        assert self.poller.status().mode is Mode.ARMED


@pytest.fixture
def host(fleet: Any, tmp_path: Path) -> Host:
    return Host(fleet, tmp_path)


def kinds(effects: list[Effect]) -> list[type]:
    return [type(e) for e in effects]


def test_one_good_read_lifts_and_renews_after_it_is_on_disk(fleet: Any, host: Host) -> None:
    host.shelf.put(10, fleet.baseline(1, "k1"))
    assert kinds(host.poll()) == [LiftSoftStop, LeaseRenewed]
    assert host.on_disk == [Mode.ARMED, Mode.ARMED]
    status = host.poller.status()
    assert (status.mode, status.epoch, status.generation, status.good_age_s) == (Mode.ARMED, 1, 10, 0.0)


def test_a_kill_is_told_before_it_is_on_disk(fleet: Any, host: Host) -> None:
    host.arm(fleet)
    host.shelf.put(50, EMERGENCY)
    assert host.poll() == [Latch(KILL, "emergency")]
    assert host.on_disk[-1] is Mode.ARMED, "act, then persist"
    assert load_state(host.file)[0].latched == (KILL,)


def test_the_lease_counts_from_the_request(fleet: Any, host: Host) -> None:
    host.shelf.takes_s = 4.0
    host.shelf.put(10, fleet.baseline(1, "k1"))
    assert LeaseRenewed(56.0) in host.poll()
    assert host.poller.status().lease_left_s == 56.0


def test_unchanged_is_asked_for_only_when_armed_and_every_30th_poll_reads_all(fleet: Any, host: Host) -> None:
    host.arm(fleet)
    for _ in range(2 * FULL_READ_EVERY):
        host.poll()
    assert host.shelf.known[0] == 0
    whole = [n for n, known in enumerate(host.shelf.known) if known == 0]
    assert whole == [0, FULL_READ_EVERY, 2 * FULL_READ_EVERY]
    host.shelf.put(50, EMERGENCY)
    host.poll()
    host.shelf.known.clear()
    host.poll()
    host.poll()
    assert host.shelf.known == [0, 0], "while killed nothing is taken as unchanged"


def test_an_untrusted_document_is_never_taken_as_unchanged(fleet: Any, host: Host) -> None:
    host.arm(fleet)
    host.shelf.put(11, b"junk")
    assert kinds(host.poll()) == [SoftStop, Alarm]
    host.poll()
    assert host.shelf.known[-1] == 0
    assert host.poller.status().mode is Mode.SOFT and not host.poller.status().good


@pytest.mark.parametrize("seen", [RemoteRead(missing=True), RemoteRead(9, junk="it is larger than 65536 bytes"), RemoteRead(9, b"")])
def test_missing_or_junk_stops_softly_at_once_and_one_good_read_lifts(fleet: Any, host: Host, seen: RemoteRead) -> None:
    host.arm(fleet)
    host.shelf.next = seen
    assert kinds(host.poll()) == [SoftStop, Alarm]
    host.shelf.put(10, fleet.baseline(1, "k1"))
    assert kinds(host.poll()) == [LiftSoftStop, LeaseRenewed]


def test_an_outage_warns_once_and_stops_softly_when_the_lease_is_over(fleet: Any, host: Host) -> None:
    host.arm(fleet)
    host.shelf.next = RemoteRead(fault="HTTP 503")
    told: list[Effect] = []
    for _ in range(12):
        host.clock.now += 10
        told += host.poll()
    assert kinds(told) == [Alarm, SoftStop, Alarm]
    assert host.poller.status().lease_left_s == 0
    host.shelf.put(10, fleet.baseline(1, "k1"))
    assert kinds(host.poll()) == [LiftSoftStop, LeaseRenewed]


def test_an_older_epoch_renews_nothing(fleet: Any, host: Host) -> None:
    host.arm(fleet)
    host.shelf.put(11, fleet.baseline(5, "k1"))
    host.poll()
    host.shelf.put(12, fleet.baseline(2, "k1"))
    told: list[Effect] = []
    for _ in range(7):
        host.clock.now += 10
        told += host.poll()
    assert LeaseRenewed not in kinds(told) and kinds(told)[0] is Alarm and SoftStop in kinds(told)
    assert host.poller.status().epoch == 5


def test_status_ages_by_itself_while_a_fetch_hangs(fleet: Any, host: Host) -> None:
    host.arm(fleet)
    hang, began = threading.Event(), threading.Event()

    def read(known_generation: int = 0) -> RemoteRead:
        began.set()
        hang.wait(60)
        return RemoteRead(fault="no answer in time")

    host.shelf.read = read  # type: ignore[method-assign]
    thread = threading.Thread(target=host.poller.poll_once)
    thread.start()
    try:
        assert began.wait(60)
        host.clock.now += 61
        status = host.poller.status()
        assert status.fetching_s == 61 and status.mode is Mode.SOFT and status.lease_left_s == 0 and not status.good
    finally:
        hang.set()
        thread.join()


def test_what_the_guard_did_not_take_is_told_again(fleet: Any, host: Host) -> None:
    host.arm(fleet)
    host.refusing = True
    host.shelf.put(50, EMERGENCY)
    assert host.poll() == []
    assert "not taken" in host.poller.status().detail and not host.poller.status().good
    host.refusing = False
    assert host.poll() == [Latch(KILL, "emergency")]


def test_a_release_that_cannot_be_saved_does_not_happen(fleet: Any, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.arm(fleet)
    host.shelf.put(50, EMERGENCY)
    host.poll()
    full = OSError(28, "No space left on device")

    def refuse(*_: object) -> None:
        raise full

    monkeypatch.setattr(module, "save_state", refuse)
    host.shelf.put(60, fleet.release(2, [KILL], "k1"))
    assert kinds(host.poll()) == [Alarm]
    assert host.poller.status().mode is Mode.KILLED and "No space" in host.poller.status().detail
    monkeypatch.undo()
    assert kinds(host.poll()) == [Released, LiftSoftStop, LeaseRenewed]
    assert load_state(host.file)[0].mode is Mode.ARMED


def test_a_kill_that_cannot_be_saved_happens_and_is_saved_later(fleet: Any, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.arm(fleet)

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "save_state", refuse)
    host.shelf.put(50, EMERGENCY)
    assert kinds(host.poll()) == [Latch, Alarm]
    assert load_state(host.file)[0].latched == ()
    monkeypatch.undo()
    host.poll()
    assert load_state(host.file)[0].latched == (KILL,)


def test_a_raised_epoch_that_cannot_be_saved_renews_nothing(fleet: Any, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.arm(fleet)

    def refuse(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(module, "save_state", refuse)
    host.shelf.put(11, fleet.baseline(2, "k1"))
    assert kinds(host.poll()) == [Alarm]
    assert host.poller.status().epoch == 1


# --- orders with a number ---------------------------------------------------------------------------------------------


def test_an_order_kills_though_the_old_baseline_lies_in_the_kill_file(fleet: Any, host: Host) -> None:
    host.arm(fleet)
    host.shelf.orders[1] = EMERGENCY
    assert host.poll() == [Latch(order_of(1001, EMERGENCY, 1), "emergency")]
    host.poll()
    assert host.shelf.asked[-1] == (2, 0), "each poll reads the number after the last one known"
    assert load_state(host.file)[0].number == 1


@pytest.mark.parametrize(
    "body", [b"", b"\x00\xff", b'{"killed": tru', b'{"killed": 1}', None], ids=["empty", "bytes", "cut", "one", "unread"]
)
def test_whatever_lies_at_a_number_is_an_order_and_says_why(fleet: Any, host: Host, body: bytes | None) -> None:
    host.arm(fleet)
    host.shelf.orders[1] = body
    (latch,) = host.poll()
    assert isinstance(latch, Latch) and "order 1 counts as a kill" in latch.reason


def test_a_signed_un_kill_in_the_orders_folder_kills(fleet: Any, host: Host) -> None:
    host.arm(fleet)
    host.shelf.orders[1] = fleet.baseline(9, "k1", settled=9)
    (latch,) = host.poll()
    assert isinstance(latch, Latch) and "belongs into the kill file" in latch.reason and host.poller.status().settled == 0


def test_a_release_settles_numbers_and_no_settled_order_acts_again_even_on_a_new_host(fleet: Any, host: Host, tmp_path: Path) -> None:
    host.arm(fleet)
    epoch = 1
    for number in range(1, 71):  # more than are remembered by name
        host.shelf.orders[number] = EMERGENCY
        assert kinds(host.poll()) == [Latch]
        epoch += 1
        host.shelf.put(10 + epoch, fleet.release(epoch, [], "k1", settled=number))
        assert kinds(host.poll()) == [Released, LiftSoftStop, LeaseRenewed]
    assert kinds(host.poll()) == [LeaseRenewed] and host.shelf.asked[-1][0] == 71
    new = Host(fleet, tmp_path / "new")
    new.shelf = host.shelf
    new.poller = Poller(host.shelf, new.file, fleet.keys(), new.take, clock=new.clock)
    assert kinds(new.poll()) == [LiftSoftStop, LeaseRenewed] and host.shelf.asked[-1][0] == 71
    host.shelf.orders[71] = EMERGENCY
    assert kinds(new.poll()) == [Latch] == kinds(host.poll())


def test_a_release_of_before_an_order_does_not_end_it(fleet: Any, host: Host) -> None:
    host.arm(fleet)
    host.shelf.orders.update({1: EMERGENCY, 2: EMERGENCY})
    assert kinds(host.poll()) == [Latch, Latch]
    host.shelf.put(11, fleet.release(2, [], "k1", settled=1))
    assert kinds(host.poll()) == [Alarm] and host.poller.status().mode is Mode.KILLED
    host.shelf.put(12, fleet.release(3, [], "k1", settled=2))
    assert kinds(host.poll())[0] is Released


def test_an_order_behind_a_deleted_one_is_found_by_looking_ahead(fleet: Any, host: Host) -> None:
    host.arm(fleet)
    host.shelf.orders[3] = EMERGENCY  # 1 and 2 were deleted by the bucket's owner
    told = [kinds(host.poll()) for _ in range(FULL_READ_EVERY)]
    assert [Latch] == told[-1] and [Latch] not in told[:-1] and host.shelf.asked[-1] == (1, AHEAD)
    host.poll()
    assert host.shelf.asked[-1][0] == 4


def test_a_new_host_does_not_obey_what_it_cannot_know_to_be_unsettled(fleet: Any, host: Host) -> None:
    host.shelf.orders[1] = EMERGENCY
    for seen in (RemoteRead(fault="HTTP 503"), RemoteRead(9, fleet.baseline(4, "stranger", settled=1)), RemoteRead(9, b"junk")):
        host.shelf.next = seen  # an outage; keys that are still to be brought here; junk
        assert Latch not in kinds(host.poll()) and host.poller.status().mode is Mode.SOFT
    host.shelf.put(10, fleet.baseline(4, "k1", settled=1))
    assert kinds(host.poll()) == [LiftSoftStop, LeaseRenewed]


def test_where_no_document_ever_lay_killing_needs_none(fleet: Any, host: Host) -> None:
    host.shelf.orders[1] = EMERGENCY
    assert kinds(host.poll()) == [Latch]


def test_orders_that_cannot_be_read_stop_softly_when_the_lease_is_over_and_a_missing_permission_does_not(fleet: Any, host: Host) -> None:
    host.arm(fleet)
    host.shelf.orders_fault = OrdersRead(fault="HTTP 503")
    told: list[Effect] = []
    for _ in range(12):
        host.clock.now += 10
        told += host.poll()
    assert kinds(told) == [Alarm, SoftStop, Alarm] and "orders folder" in told[0].text  # type: ignore[union-attr]
    host.shelf.orders_fault = OrdersRead(fault="HTTP 403")
    assert kinds(host.poll()) == [LiftSoftStop, LeaseRenewed]
    assert host.poller.status().orders_unread == "HTTP 403" and host.poller.status().mode is Mode.ARMED


def test_a_host_that_was_away_for_weeks_obeys_what_is_open_and_nothing_that_is_over(fleet: Any, host: Host, tmp_path: Path) -> None:
    host.shelf.orders.update(dict.fromkeys(range(1, 11), EMERGENCY))
    host.shelf.put(90, fleet.release(9, [KILL], "k1", settled=9))
    host.shelf.past.update({50: EMERGENCY, 60: fleet.release(4, [KILL], "k1", settled=5)})
    save_state(host.file, HostState(soft=False, epoch=3, settled=3, judged=(40,)))
    back = Host(fleet, tmp_path)
    back.poller = Poller(host.shelf, host.file, fleet.keys(), back.take, clock=back.clock)
    assert [e for e in back.poll() if isinstance(e, Latch)] == [Latch(order_of(1010, EMERGENCY, 10), "emergency")]
    del host.shelf.orders[10]  # by the bucket's owner: that releases nothing
    assert back.poll() == [] and back.poller.status().mode is Mode.KILLED


def test_a_host_of_before_the_numbers_goes_on_where_it_was(fleet: Any, host: Host, tmp_path: Path) -> None:
    old = {k: v for k, v in json.loads(fleet.release(8, [KILL], "k1")).items() if k != "settled"} | {"schema": SCHEMA_2, "sigs": []}
    host.file.write_text(json.dumps({"version": 1, "soft": False, "epoch": 7, "latched": [KILL], "released": []}))
    back = Host(fleet, tmp_path)
    back.poller = Poller(host.shelf, host.file, fleet.keys(), back.take, clock=back.clock)
    assert back.poller.status().latched == (KILL,)
    host.shelf.put(51, sign(old, fleet.signers("k1")))
    assert kinds(back.poll()) == [Released, LiftSoftStop, LeaseRenewed], "a release of before the change ends what it named"
    host.shelf.put(52, EMERGENCY)
    host.shelf.past[51] = sign(old, fleet.signers("k1"))
    assert kinds(back.poll()) == [Latch]
    host.shelf.put(53, fleet.release(9, [order_of(52, EMERGENCY)], "k1", settled=2))
    host.shelf.orders.update({2: EMERGENCY, 3: EMERGENCY})
    assert kinds(back.poll()) == [Latch, Alarm] and back.poller.status().number == 3, "and from then on numbers count"


def test_a_flood_of_orders_is_bounded_on_disk_and_only_the_highest_number_ends_it(fleet: Any, host: Host) -> None:
    host.arm(fleet)
    host.shelf.orders.update(dict.fromkeys(range(1, 3 * NUMBERED_KEPT), EMERGENCY))
    host.poll()
    state = load_state(host.file)[0]
    assert len(state.latched) == NUMBERED_KEPT and state.number == 3 * NUMBERED_KEPT - 1
    host.shelf.put(11, fleet.release(2, [], "k1", settled=state.number - 1))
    assert kinds(host.poll()) == [Alarm]
    host.shelf.put(12, fleet.release(3, [], "k1", settled=state.number))
    assert kinds(host.poll())[0] is Released


# --- the history of the kill file -------------------------------------------------------------------------------------


def test_a_hand_written_kill_that_was_overwritten_before_the_poll_is_found(fleet: Any, host: Host) -> None:
    host.arm(fleet)
    host.shelf.past.update({10: fleet.baseline(1, "k1"), 50: EMERGENCY})
    host.shelf.put(51, fleet.baseline(1, "k1"))
    assert kinds(host.poll()) == [Latch, Alarm] and host.poller.status().latched == (KILL,)
    listed = host.shelf.listed
    host.poll()
    assert host.shelf.listed == listed, "listed only when the generation has changed"


def test_a_hand_written_kill_that_was_deleted_before_the_poll_is_found(fleet: Any, host: Host) -> None:
    host.arm(fleet)
    host.shelf.past.update({10: fleet.baseline(1, "k1"), 50: EMERGENCY})
    host.shelf.next = RemoteRead(missing=True)
    assert Latch(KILL, "emergency") in host.poll()


def test_a_kill_that_a_quorum_has_released_meanwhile_is_not_obeyed_late(fleet: Any, host: Host) -> None:
    host.arm(fleet)
    host.shelf.past.update({10: fleet.baseline(1, "k1"), 50: EMERGENCY, 51: fleet.release(2, [KILL], "k1")})
    host.shelf.put(52, fleet.baseline(3, "k1"))
    assert kinds(host.poll()) == [LeaseRenewed] and host.poller.status().mode is Mode.ARMED


def test_a_new_host_begins_with_what_lies_there(fleet: Any, host: Host) -> None:
    host.shelf.past.update({8: EMERGENCY, 9: fleet.baseline(1, "stranger")})  # ended by a key that was retired since
    host.arm(fleet)
    host.shelf.past[10] = fleet.baseline(1, "k1")
    host.shelf.put(11, fleet.baseline(2, "k1"))
    assert kinds(host.poll()) == [LeaseRenewed]


def test_no_right_to_list_stops_nothing_and_is_said(fleet: Any, host: Host) -> None:
    host.shelf.history_fault = HistoryRead(fault="HTTP 403")
    host.arm(fleet)
    for number in range(FULL_READ_EVERY + 2):
        host.shelf.put(20 + number, fleet.baseline(2, "k1"))
        host.clock.now += 10
        assert kinds(host.poll()) == [LeaseRenewed]
    assert "storage.objects.list" in host.poller.status().history_unread
    host.shelf.history_fault = HistoryRead(versioned=False)
    for _ in range(FULL_READ_EVERY):
        host.poll()
    assert host.poller.status().history_unread == "the bucket keeps no versions"


def test_a_history_that_cannot_be_read_for_another_reason_renews_nothing(fleet: Any, host: Host) -> None:
    host.arm(fleet)
    host.shelf.history_fault = HistoryRead(fault="HTTP 503")
    host.shelf.put(51, fleet.baseline(1, "k1"))
    assert kinds(host.poll()) == [Alarm]
    host.shelf.history_fault = HistoryRead(versioned=True)
    assert kinds(host.poll()) == [LeaseRenewed]


# --- restarts: the thread itself --------------------------------------------------------------------------------------


def run(host: Host, until: Any, seconds: float = 60) -> None:
    host.poller.start()
    try:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not until():
            time.sleep(0.005)
        assert until(), host.took
    finally:
        host.poller.stop()
    assert not host.poller.status().running


def seed(folder: Path, fleet: Any, kill: bool = False) -> None:
    first = Host(fleet, folder)
    first.arm(fleet)
    if kill:
        first.shelf.put(50, EMERGENCY)
        first.poll()


def test_a_start_is_over_once_a_new_host_knows_that_it_is_stopped(fleet: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may ask the supervisor after that finds no host that has not read its kill file and starts agents."""
    host, remembered = Host(fleet, tmp_path), Poller._tell_what_is_remembered

    def late(poller: Poller) -> None:
        time.sleep(0.2)
        remembered(poller)

    monkeypatch.setattr(Poller, "_tell_what_is_remembered", late)
    host.poller.start()
    told = kinds(host.took)
    host.poller.stop()
    assert SoftStop in told


def test_a_new_host_stops_softly_until_one_good_read(fleet: Any, tmp_path: Path) -> None:
    host = Host(fleet, tmp_path, period_s=0.05)
    host.shelf.put(10, fleet.baseline(1, "k1"))
    run(host, lambda: LeaseRenewed in kinds(host.took))
    assert kinds(host.took)[:4] == [Alarm, SoftStop, LiftSoftStop, LeaseRenewed]


def test_a_restart_without_a_lease_is_a_fresh_start(fleet: Any, tmp_path: Path) -> None:
    seed(tmp_path, fleet)
    host = Host(fleet, tmp_path, period_s=0.05)
    host.shelf.next = RemoteRead(fault="HTTP 503")
    run(host, lambda: len(host.shelf.known) > 3)
    assert kinds(host.took) == [SoftStop, Alarm] and set(host.shelf.known) == {0}


def test_a_restart_under_a_valid_lease_is_not(fleet: Any, tmp_path: Path) -> None:
    seed(tmp_path, fleet)
    host = Host(fleet, tmp_path, period_s=0.05, lease_left_s=30.0)
    host.shelf.put(10, fleet.baseline(1, "k1"))
    run(host, lambda: LeaseRenewed in kinds(host.took))
    assert SoftStop not in kinds(host.took)


def test_a_lost_state_is_a_fresh_start_even_under_a_lease(fleet: Any, tmp_path: Path) -> None:
    host = Host(fleet, tmp_path, period_s=0.05, lease_left_s=30.0)
    host.shelf.next = RemoteRead(fault="HTTP 503")
    run(host, lambda: len(host.shelf.known) > 2)
    assert SoftStop in kinds(host.took)


def test_a_restart_while_killed_latches_again_before_any_poll(fleet: Any, tmp_path: Path) -> None:
    seed(tmp_path, fleet, kill=True)
    host = Host(fleet, tmp_path, period_s=0.05, lease_left_s=30.0)
    host.shelf.put(10, fleet.baseline(1, "k1"))  # the old baseline put back over the kill
    run(host, lambda: len(host.shelf.known) > 3)
    assert kinds(host.took)[0] is Latch and not {LiftSoftStop, LeaseRenewed, Released} & set(kinds(host.took))
    assert load_state(host.file)[0].latched == (KILL,)


def test_a_release_that_was_saved_but_not_told_is_told_after_the_restart(fleet: Any, tmp_path: Path) -> None:
    seed(tmp_path, fleet, kill=True)
    state = load_state(tmp_path / "remote.json")[0]
    save_state(tmp_path / "remote.json", type(state)(soft=False, epoch=2, released=(KILL,)))
    host = Host(fleet, tmp_path, period_s=0.05)
    run(host, lambda: bool(host.took))
    assert host.took[0] == Released((KILL,), remembered=True)


def test_polls_are_never_further_apart_than_the_period(fleet: Any, tmp_path: Path) -> None:
    host = Host(fleet, tmp_path, period_s=0.2)
    host.shelf.put(10, fleet.baseline(1, "k1"))
    gaps: list[float] = []  # as the poller asks for them: how long this machine lets it wait is another matter
    wait = host.poller._wake.wait

    def noted(gap: float) -> bool:
        gaps.append(gap)
        return wait(0.01)

    host.poller._wake.wait = noted  # type: ignore[method-assign, assignment]
    host.shelf.takes_s = 0.05
    run(host, lambda: len(gaps) > 12)
    assert all(0.05 <= gap <= 0.15 for gap in gaps) and len(set(gaps)) > 1, "a poll takes its time out of the period, and hosts spread"


def test_new_keys_count_from_the_next_poll(fleet: Any, host: Host) -> None:
    host.arm(fleet)
    host.poller.use_keys(type(fleet)().keys())
    assert kinds(host.poll()) == [SoftStop, Alarm], "the document is read whole and judged by the new keys"


def test_keys_that_change_while_a_fetch_is_under_way_have_the_object_read_whole(fleet: Any, host: Host) -> None:
    host.arm(fleet)
    read = host.shelf.read

    def slowly(known_generation: int = 0) -> RemoteRead:
        host.poller.use_keys(fleet.keys())
        host.shelf.read = read  # type: ignore[method-assign]
        return read(0)

    host.shelf.read = slowly  # type: ignore[method-assign]
    host.poll()
    host.poll()
    assert host.shelf.known[-1] == 0
