"""Effects are told until they are taken; what stops comes first and a stale lift is never told."""

from __future__ import annotations

from console.domain.errors import Unreachable
from console.remotekill.document import Order
from console.remotekill.machine import Alarm, Effect, Latch, LeaseRenewed, LiftSoftStop, Released, SoftStop
from console.remotekill.poller import Outbox

A, B = Order("1:sha256:" + "a" * 64), Order("2:sha256:" + "b" * 64)


class Guard:
    def __init__(self) -> None:
        self.up = False
        self.took: list[Effect] = []

    def take(self, effect: Effect) -> None:
        if not self.up:
            raise Unreachable("The guard did not answer.")
        self.took.append(effect)


def told(*effects: Effect) -> list[Effect]:
    """What a guard hears that comes back after all of these happened."""
    guard = Guard()
    box = Outbox(guard.take)
    for effect in effects:
        box.put(effect)
        assert "not taken" in box.deliver()
    guard.up = True
    assert box.deliver() == "" and box.waiting == 0
    return guard.took


def test_nothing_that_stops_is_lost_and_latches_go_first() -> None:
    assert told(SoftStop("x"), Alarm("y"), Latch(A, ""), Latch(B, "")) == [Latch(A, ""), Latch(B, ""), SoftStop("x"), Alarm("y")]


def test_a_lift_or_lease_from_before_a_stop_is_not_told_after_it() -> None:
    assert told(LiftSoftStop(), LeaseRenewed(60), SoftStop("x")) == [SoftStop("x")]
    assert told(LiftSoftStop(), LeaseRenewed(60), Latch(A, "")) == [Latch(A, "")]
    assert told(SoftStop("x"), LiftSoftStop(), LeaseRenewed(50), LeaseRenewed(60)) == [LiftSoftStop(), LeaseRenewed(60)]


def test_a_release_survives_a_later_kill() -> None:
    assert told(Released((A,)), LiftSoftStop(), Latch(B, "")) == [Latch(B, ""), Released((A,))]
