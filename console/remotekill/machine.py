"""The host's state machine, pure: what one read of the bucket means for this host.

``observe(state, observation)`` follows the table of the design. Any kill latches. Only a signed release of a higher epoch that covers every
latched kill ends it. A channel that cannot be trusted stops softly until one good signed read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from console.remotekill.document import Junk, KillOrder, Order, SignedUnkill, number_of

RELEASED_KEPT = 64
"""How many released orders are remembered, so that a stale cache cannot latch one of the kill file again. Numbers need no memory."""
NUMBERED_KEPT = 64
"""How many latched orders with a number are remembered by name: the highest number alone decides what must be settled."""


class Mode(StrEnum):
    """``killed`` whenever an order is latched, whatever else is true."""

    ARMED = "armed"
    SOFT = "soft"
    KILLED = "killed"


@dataclass(frozen=True, slots=True)
class HostState:
    """What is durable. A lost state is a new host: epoch 0, nothing latched, soft until one good read."""

    soft: bool = True
    epoch: int = 0
    """The highest epoch of an accepted signed document."""
    latched: tuple[Order, ...] = ()
    released: tuple[Order, ...] = ()
    over: tuple[Order, ...] = ()
    """Orders of the kill file that an accepted release names, obeyed here or not: a stale read of one kills nothing."""
    settled: int = 0
    """Orders with a number up to this one are over, by an accepted signed document."""
    judged: tuple[int, ...] | None = None
    """Generations of the kill file that were judged and still exist; None: this host has not looked at its history yet."""

    @property
    def number(self) -> int:
        """The last order number that is known: settled, or latched here."""
        return max([self.settled, *(number_of(order) for order in self.latched)])

    @property
    def mode(self) -> Mode:
        if self.latched:
            return Mode.KILLED
        return Mode.SOFT if self.soft else Mode.ARMED


# --- observations -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Read:
    """The object's bytes were read whole: its order and what they say."""

    order: Order
    content: KillOrder | SignedUnkill | Junk


@dataclass(frozen=True, slots=True)
class Numbered:
    """An object lies in the orders folder: an order to kill, whatever it contains. Killing needs nothing."""

    order: Order
    reason: str


@dataclass(frozen=True, slots=True)
class History:
    """Generations of the kill file that were replaced or deleted, and that this host has not judged yet."""

    kills: tuple[tuple[Order, str], ...]
    """Those that say ``killed: true``, with their reasons."""
    released: frozenset[Order]
    """What good signed documents release, the live one or one of these: each was ended by a quorum, in whatever order it is read."""
    judged: tuple[int, ...]
    """Every generation that is judged with this look, and still exists."""


@dataclass(frozen=True, slots=True)
class Missing:
    """404. The object always exists, so an attacker or an operator removed it."""


@dataclass(frozen=True, slots=True)
class Unchanged:
    """304, or the same generation: still the document accepted last."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Refused, 401, 403, 429, 5xx, time-out, truncated: nothing is known. Only the lease decides."""

    why: str
    what: str = "The remote kill file"


@dataclass(frozen=True, slots=True)
class LeaseOver:
    """No good read for the whole lease."""

    why: str


@dataclass(frozen=True, slots=True)
class Restarted:
    """The poller starts without a valid lease."""


Observation = Read | Numbered | History | Missing | Unchanged | Unreadable | LeaseOver | Restarted


# --- effects ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Latch:
    """Kill everything now, and stay killed until this order is released. Idempotent."""

    order: Order
    reason: str
    remembered: bool = False
    """True when it is told again after a restart: make sure that the guard is latched."""


@dataclass(frozen=True, slots=True)
class SoftStop:
    """Freeze, refuse spawns and egress."""

    why: str


@dataclass(frozen=True, slots=True)
class LiftSoftStop:
    """One good signed read: the soft stop ends."""


@dataclass(frozen=True, slots=True)
class LeaseRenewed:
    """The channel was good; ``seconds`` remain from now on."""

    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Alarm:
    """A person should look. Changes nothing by itself."""

    text: str


@dataclass(frozen=True, slots=True)
class Released:
    """A signed release covered every latched order: the remote latch is gone (a local one is not)."""

    orders: tuple[Order, ...]
    remembered: bool = False
    """True when it is told again after a restart."""


Effect = Latch | SoftStop | LiftSoftStop | LeaseRenewed | Alarm | Released
Outcome = tuple[HostState, tuple[Effect, ...]]


def observe(state: HostState, seen: Observation) -> Outcome:
    """The next state and what to do about it, in order. Deciding needs no clock, key or network."""
    match seen:
        case Read():
            return _read(state, seen)
        case Numbered():
            return _numbered(state, seen)
        case History():
            return _history(state, seen)
        case Missing():
            # A thief of the bucket can delete it: that must free no host, and must not take a rearm either.
            return _distrust(state, "The remote kill file is missing.")
        case Unchanged():
            # A host that is soft waits for one whole read: an answer without a document proves nothing about who wrote it.
            return (state, (LeaseRenewed(),)) if state.mode is Mode.ARMED else (state, ())
        case Unreadable():
            return state, (Alarm(f"{seen.what} could not be read: {seen.why}."),)
        case LeaseOver():
            return _distrust(state, f"The remote kill file has not been read for the whole lease: {seen.why}.")
        case Restarted():
            return _restart(state)
        case _:
            assert_never(seen)


def _read(state: HostState, seen: Read) -> Outcome:
    match seen.content:
        case KillOrder():
            return _kill(state, seen.order, seen.content.reason)
        case SignedUnkill():
            return _unkill(state, seen.content)
        case Junk():
            return _distrust(state, f"The remote kill file cannot be trusted: {seen.content.why}.")
        case _:
            assert_never(seen.content)


def _kill(state: HostState, order: Order, reason: str) -> Outcome:
    if order in state.latched:
        return state, ()
    if order in (*state.released, *state.over):
        return state, (Alarm("A kill order that was released was served again (a stale cache, or a replay)."),)
    return replace(state, latched=(*state.latched, order)), (Latch(order, reason),)


def _numbered(state: HostState, seen: Numbered) -> Outcome:
    # A quorum has settled every number up to here, so a cache that serves one again must not kill a second time.
    if number_of(seen.order) <= state.settled:
        return state, (Alarm(f"Order {number_of(seen.order)} is settled and was served again (a stale cache, or a replay)."),)
    after, effects = _kill(state, seen.order, seen.reason)
    numbered = [order for order in after.latched if number_of(order)]
    if len(numbered) <= NUMBERED_KEPT:
        return after, effects
    # A flood of orders cannot fill the disk. The highest number is kept: a release must settle it.
    highest = max(numbered, key=number_of)
    dropped = next(order for order in reversed(numbered) if order != highest)
    return replace(after, latched=tuple(order for order in after.latched if order != dropped)), effects


def _history(state: HostState, seen: History) -> Outcome:
    after = replace(state, judged=seen.judged)
    if state.judged is None:  # a new host begins with what lies there now: what came before it may be long over
        return after, ()
    effects: list[Effect] = []
    for order, reason in seen.kills:
        if order not in (*after.latched, *after.released, *after.over, *seen.released):
            after, told = _kill(after, order, reason)
            effects += [*told, Alarm(f"A kill order was overwritten or deleted before it could be read: {order}. It is obeyed.")]
    return after, tuple(effects)


def _unkill(state: HostState, content: SignedUnkill) -> Outcome:
    # An old release that is put back could otherwise free hosts that obey a newer order (replay).
    if content.epoch < state.epoch:
        return state, (Alarm(f"An older signed document was served: epoch {content.epoch}, this host knows {state.epoch}."),)
    accepted = replace(
        state,
        soft=False,
        epoch=content.epoch,
        settled=max(state.settled, content.settled),
        over=tuple(dict.fromkeys((*state.over, *content.releases)))[-RELEASED_KEPT:],
    )
    if not state.latched:
        lift: tuple[Effect, ...] = (LiftSoftStop(),) if state.soft else ()
        return accepted, (*lift, LeaseRenewed())
    if content.epoch == state.epoch:
        return state, ()  # the baseline put back over a kill, or one kept by a cache: it releases nothing
    # The signers have not seen that order, so they cannot have released it.
    if not all(_covers(content, order) for order in state.latched):
        return state, (Alarm("A signed release does not cover every kill order latched on this host."),)
    released = (*state.released, *state.latched)[-RELEASED_KEPT:]
    return replace(accepted, latched=(), released=released), (Released(state.latched), LiftSoftStop(), LeaseRenewed())


def _covers(content: SignedUnkill, order: Order) -> bool:
    number = number_of(order)
    return number <= content.settled if number else order in content.releases


def _distrust(state: HostState, why: str) -> Outcome:
    if state.mode is Mode.ARMED:
        return replace(state, soft=True), (SoftStop(why), Alarm(why))
    return state, ()


def _restart(state: HostState) -> Outcome:
    if state.latched:
        return state, tuple(Latch(order, "latched before the restart", remembered=True) for order in state.latched)
    # The last good read of a former run says nothing about the present: an order may have come while no poller ran.
    why = "The poller started without a lease and has not read the remote kill file yet."
    return replace(state, soft=True), (SoftStop(why),)
