"""How good the channel to the remote kill file is, by the clock: the lease, what was answered when, the fetch under way, the trouble."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from console.remotekill.document import Junk, KillOrder, Order, SignedUnkill
from console.remotekill.machine import HostState, Mode, Observation, Read, Unchanged, Unreadable
from console.remotekill.orders import NO_ORDERS, HistoryRead, OrdersRead
from console.remotekill.store import RemoteRead

# A cache or a faulty server may go on saying "unchanged"; the object itself is then at most 30 polls old.
FULL_READ_EVERY = 30
"""Every so many polls the object is read whole, whatever the server says about its generation."""
POLL_WORST_S = 11.0
"""How long the requests of one poll may take, on top of the period, before the channel counts as in doubt."""
_ALARMS_KEPT = 32
"""The most alarms that are kept. Each is raised once until the channel is good again, so a broken channel cannot flood the operator."""


@dataclass(frozen=True, slots=True)
class PollerStatus:
    """Computed at the moment of asking, from clocks: a hung fetch ages here although nothing happens."""

    running: bool
    mode: Mode
    """``soft`` as soon as the lease is over, even while a fetch hangs."""
    latched: tuple[Order, ...]
    epoch: int
    generation: int
    """Of the object read last, 0 when none was."""
    good_age_s: float | None
    """Seconds since the request of the last good signed read began; None: never."""
    answer_age_s: float | None
    """Seconds since the last answer of any kind."""
    fetching_s: float | None
    """How long the fetch under way has taken; None when none is."""
    lease_left_s: float
    polls: int
    good: bool
    """The channel is proven now: armed or killed, with a good answer younger than period + time-out."""
    detail: str
    """The last trouble in words, or empty."""
    settled: int = 0
    """Orders up to this number are over."""
    number: int = 0
    """The last order number that is known here; the next poll reads the one after it."""
    orders_unread: str = ""
    """Why this host does not know whether there is a new order; empty: it does."""
    history_unread: str = ""
    """Why an order that was written by hand and overwritten at once can be missed; empty: it cannot."""


def boottime() -> float:
    """Seconds on CLOCK_BOOTTIME: suspend counts, the wall clock does not."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Channel:
    """What the poller knows of its channel. Not thread-safe: the owner locks."""

    def __init__(self, period_s: float, lease_s: float, lease_left_s: float, clock: Callable[[], float]) -> None:
        """As ``Poller``."""
        self._period_s, self._lease_s, self._clock = period_s, lease_s, clock
        # Never more than a whole lease, even where the guard still counts an older, longer one.
        self._lease_end = clock() + max(0.0, min(lease_left_s, lease_s))
        self._generation = self._accepted_generation = self._polls = 0
        self._good_at: float | None = None
        self._channel_at: float | None = None
        self._answer_at: float | None = None
        self._fetch_began: float | None = None
        self._alarmed: set[str] = set()
        self._looked_at: int | None = None
        self._orders_unread = self._history_unread = ""
        self.trouble = ""
        """The last one in words, or empty."""

    def ask(self, *, whole: bool) -> tuple[float, int]:
        """A fetch begins: (when, the generation that may be answered as unchanged, 0: none). ``whole``: the object is to be read."""
        known = 0 if whole or self._polls % FULL_READ_EVERY == 0 else self._accepted_generation
        self._polls += 1
        self._fetch_began = began = self._clock()
        return began, known

    def is_changed(self, seen: RemoteRead) -> bool:
        """Whether the history of the kill file is to be looked at: another generation lies there, or a permission was missing."""
        if seen.fault:
            return False
        # Missing is no generation: what lay there between two looks at nothing leaves no other trace.
        return seen.missing or seen.generation != self._looked_at or (bool(self._history_unread) and self.is_full)

    @property
    def is_full(self) -> bool:
        """Whether this poll is one of those that look further: the first, and every 30th."""
        return self._polls % FULL_READ_EVERY == 1

    def answered(self, seen: RemoteRead, orders: OrdersRead = NO_ORDERS, history: HistoryRead | None = None) -> None:
        """The fetch is over, however it ended."""
        self._fetch_began, self._answer_at = None, self._clock()
        self._generation = seen.generation or self._generation
        self._orders_unread = orders.fault
        if history is not None:
            self._history_unread = history.blind or history.fault
            if not history.unread and (not history.fault or history.denied):
                self._looked_at = seen.generation

    def note(self, seen: RemoteRead, observation: Observation, state: HostState, began: float) -> None:
        """What was read, and what the host is now. Only a document that was accepted may later be taken as unchanged."""
        match observation:
            case Read(order, KillOrder()):
                self._accepted_generation = 0
                if order in state.latched:
                    self._channel_at = began
            case Read(_, SignedUnkill() as content):
                current = content.epoch == state.epoch
                self._accepted_generation = seen.generation if current and state.mode is Mode.ARMED else 0
                if current:
                    self._channel_at = began
            case Unchanged():
                self._channel_at = began
            case Unreadable():
                pass
            case Read(_, Junk(why)):  # a host that is stopped already tells nothing more: what keeps it so stands in its status
                self._accepted_generation = 0
                self.trouble = f"The remote kill file cannot be trusted: {why}."
            case _:
                self._accepted_generation = 0

    def accept_nothing(self) -> None:
        """Other keys are trusted: the next poll reads the object whole."""
        self._accepted_generation = 0

    def renew(self, began: float) -> float:
        """The seconds that are left of a lease that counts from ``began``, when the request was sent: what came back may be as old."""
        self._lease_end = began + self._lease_s
        self._good_at = began
        self.trouble = ""
        self._alarmed.clear()
        return self._lease_end - self._clock()

    def lease_is_over(self) -> bool:
        """Now."""
        return self._clock() >= self._lease_end

    def alarm(self, text: str) -> bool:
        """Whether it is to be told: not again, and not one too many."""
        self.trouble = text
        if text in self._alarmed or len(self._alarmed) >= _ALARMS_KEPT:
            return False
        self._alarmed.add(text)
        return True

    def status(self, state: HostState, *, running: bool, waiting: bool) -> PollerStatus:
        """Return the state, never better than it is. ``waiting``: effects that were not carried out yet."""
        now = self._clock()
        lease_left = self._lease_end - now
        mode = Mode.SOFT if state.mode is Mode.ARMED and lease_left <= 0 else state.mode
        fresh = self._channel_at is not None and now - self._channel_at <= self._period_s + POLL_WORST_S
        return PollerStatus(
            running=running,
            mode=mode,
            latched=state.latched,
            epoch=state.epoch,
            generation=self._generation,
            good_age_s=_age(now, self._good_at),
            answer_age_s=_age(now, self._answer_at),
            fetching_s=_age(now, self._fetch_began),
            lease_left_s=max(0.0, lease_left),
            polls=self._polls,
            good=running and fresh and mode is not Mode.SOFT and not waiting,
            detail=self.trouble,
            settled=state.settled,
            number=state.number,
            orders_unread=self._orders_unread,
            history_unread=self._history_unread,
        )


def _age(now: float, moment: float | None) -> float | None:
    return None if moment is None else max(0.0, now - moment)
