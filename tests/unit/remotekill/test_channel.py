"""What is known of the channel ages by the clock: nothing is said to be good for longer than that."""

from __future__ import annotations

from console.remotekill.channel import FULL_READ_EVERY, POLL_WORST_S, Channel
from console.remotekill.document import Junk, KillOrder, Order, SignedUnkill
from console.remotekill.machine import HostState, Missing, Mode, Observation, Read, Unchanged, Unreadable
from console.remotekill.store import RemoteRead

ARMED = HostState(soft=False, epoch=3)
ORDER = Order("7:sha256:" + "0" * 64)
CURRENT = Read(ORDER, SignedUnkill(3, (), "", "", ""))


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def channel(clock: Clock) -> Channel:
    return Channel(10.0, 60.0, 0.0, clock)


def read(one: Channel, observation: Observation, state: HostState = ARMED, generation: int = 7) -> None:
    began, _ = one.ask(whole=True)
    seen = RemoteRead(generation)
    one.answered(seen)
    one.note(seen, observation, state, began)


def good(one: Channel, state: HostState = ARMED) -> bool:
    return one.status(state, running=True, waiting=False).good


def known(one: Channel) -> int:
    """The generation that the next poll may be told is unchanged."""
    one.ask(whole=True)  # the first poll of all reads everything
    return one.ask(whole=False)[1]


def test_only_a_current_document_may_be_unchanged_later_and_only_of_a_host_that_runs() -> None:
    for observation, state, wanted in (
        (CURRENT, ARMED, 7),
        (CURRENT, HostState(soft=True, epoch=3), 0),
        (CURRENT, HostState(soft=False, epoch=4), 0),
        (Read(ORDER, KillOrder("", "")), ARMED, 0),
        (Read(ORDER, Junk("")), ARMED, 0),
        (Missing(), ARMED, 0),
    ):
        one = channel(Clock())
        read(one, observation, state)
        assert known(one) == wanted, observation
    one = channel(Clock())
    read(one, CURRENT)
    read(one, Unreadable("no route"), generation=0)
    assert known(one) == 7, "nothing was seen, so nothing else is known"
    one.accept_nothing()
    assert known(one) == 0


def test_every_so_often_all_is_read_though_nothing_changed() -> None:
    one = channel(Clock())
    read(one, CURRENT)
    asked = [one.ask(whole=False)[1] for _ in range(2 * FULL_READ_EVERY)]
    assert [n + 1 for n, generation in enumerate(asked) if not generation] == [FULL_READ_EVERY, 2 * FULL_READ_EVERY]


def test_a_lease_counts_from_the_request_and_a_lost_one_is_soft_while_a_fetch_hangs() -> None:
    clock = Clock()
    one = channel(clock)
    assert one.lease_is_over()
    began, _ = one.ask(whole=True)
    clock.now += 4
    assert one.renew(began) == 56.0 and not one.lease_is_over()
    one.note(RemoteRead(7), Unchanged(), ARMED, began)
    assert good(one)
    clock.now += 56
    status = one.status(ARMED, running=True, waiting=False)
    assert one.lease_is_over() and status.mode is Mode.SOFT and not status.good
    assert (status.lease_left_s, status.fetching_s, status.good_age_s, status.answer_age_s) == (0.0, 60.0, 60.0, None)


def test_good_is_a_fresh_answer_of_a_thread_that_runs_with_nothing_left_to_tell() -> None:
    clock = Clock()
    one = channel(clock)
    one.renew(clock.now)
    assert not good(one), "no answer yet"
    read(one, CURRENT)
    assert good(one)
    assert not one.status(ARMED, running=False, waiting=False).good and not one.status(ARMED, running=True, waiting=True).good
    killed = HostState(soft=False, epoch=3, latched=(ORDER,))
    read(one, Read(ORDER, KillOrder("", "")), killed)
    assert good(one, killed), "an order that is obeyed proves the channel as well"
    read(one, Read(Order("other"), KillOrder("", "")), killed)
    clock.now += 10.1 + POLL_WORST_S
    assert not good(one, killed)


def test_each_alarm_is_told_once_until_the_channel_is_good_and_never_too_many() -> None:
    one = channel(Clock())
    assert one.alarm("a") and not one.alarm("a") and one.trouble == "a"
    assert sum(one.alarm(f"{number}") for number in range(1000)) == 31
    one.renew(1000.0)
    assert one.trouble == "" and one.alarm("a")


def test_a_host_that_stays_stopped_names_what_the_document_lacks() -> None:
    one = channel(Clock())
    read(one, Read(ORDER, Junk("it is signed for another fleet")), HostState())
    assert "signed for another fleet" in one.status(HostState(), running=True, waiting=False).detail
