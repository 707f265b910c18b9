"""The headless poller: its own thread looks at the remote kill file every few seconds and says what follows.

It only watches and tells: the guard enforces the lease, so a hung fetch or a dead poller stops the host, never frees it.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from console.domain.guard import LEASE_S
from console.remotekill.document import Junk, KeySet, KillOrder, Order, SignedUnkill, order_of, parse
from console.remotekill.machine import (
    Alarm,
    Effect,
    HostState,
    LeaseOver,
    LeaseRenewed,
    LiftSoftStop,
    Missing,
    Mode,
    Observation,
    Read,
    Released,
    Restarted,
    Unchanged,
    Unreadable,
    observe,
)
from console.remotekill.outbox import Outbox
from console.remotekill.state_file import load_state, save_state
from console.remotekill.store import RemoteRead

FULL_READ_EVERY = 30
"""Every so many polls the object is read whole, whatever the server says about its generation."""
_ALARMS_KEPT = 32
"""Each alarm is told once until the channel is good again, and no more than this many: nobody can flood the operator."""


class Readable(Protocol):
    """What the poller needs of a store."""

    def read(self, known_generation: int = 0) -> RemoteRead:
        """One look; never raises."""


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


def boottime() -> float:
    """Seconds on CLOCK_BOOTTIME: suspend counts, the wall clock does not."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Poller:
    """Watches one remote kill file for one host. ``start`` once, ``stop`` once; everything else is thread-safe."""

    def __init__(
        self,
        store: Readable,
        state_file: Path,
        keys: KeySet,
        on_effect: Callable[[Effect], None],
        *,
        period_s: float = 10.0,
        lease_s: float = LEASE_S,
        lease_left_s: float = 0.0,
        clock: Callable[[], float] = boottime,
    ) -> None:
        """``period_s`` is the longest gap between two polls (jitter only shortens it, to half).

        ``lease_left_s`` is what the guard says is left: with a valid lease a restart is not a fresh start. ``on_effect`` is
        called in the poller's thread; when it raises ConsoleError or OSError the effect is told again until it is taken.
        """
        self._store = store
        self._state_file = state_file
        self._keys = keys
        self._outbox = Outbox(on_effect)
        self._period_s = period_s
        self._lease_s = lease_s
        self._clock = clock
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._unsaved = False
        self._state, self._trouble = load_state(state_file)
        self._generation = 0
        self._accepted_generation = 0
        self._polls = 0
        self._lease_end = clock() + max(0.0, min(lease_left_s, lease_s))
        self._good_at: float | None = None
        self._channel_at: float | None = None
        self._answer_at: float | None = None
        self._fetch_began: float | None = None
        self._alarmed: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="remotekill-poller", daemon=True)

    # --- for the supervisor -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Tells what is remembered (latch or soft stop), then polls in its own thread, at once."""
        self._thread.start()

    def stop(self, timeout_s: float = 2.0) -> None:
        """Ends the thread; a fetch under way is left to its own deadline. Nothing is lifted."""
        self._stopping.set()
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    def poll_now(self) -> None:
        """Shortens the wait (a hint came, a person asks). The period stays the promise."""
        self._wake.set()

    def use_keys(self, keys: KeySet) -> None:
        """Trusts another key set from the next poll on, which reads the object whole."""
        with self._lock:
            self._keys = keys
            self._accepted_generation = 0
        self._wake.set()

    def status(self) -> PollerStatus:
        """Never blocks on the network and never flatters: everything is measured now."""
        waiting = self._outbox.waiting
        with self._lock:
            now = self._clock()
            state, lease_left = self._state, self._lease_end - now
            mode = Mode.SOFT if state.mode is Mode.ARMED and lease_left <= 0 else state.mode
            fresh = self._channel_at is not None and now - self._channel_at <= self._period_s + 6.0
            running = self._thread.is_alive()
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
                detail=self._trouble,
            )

    # --- the thread ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        self._tell_what_is_remembered()
        while not self._stopping.is_set():
            began = self._clock()
            self.poll_once()
            gap = random.uniform(0.5, 1.0) * self._period_s - (self._clock() - began)
            self._wake.wait(max(0.05 * self._period_s, gap))
            self._wake.clear()

    def _tell_what_is_remembered(self) -> None:
        began = self._clock()
        if self._trouble:
            self._alarm(Alarm(self._trouble))
        if self._state.released:
            self._outbox.put(Released(self._state.released, remembered=True))
        if self._lease_end <= began or self._state.mode is not Mode.ARMED:
            self._take(Restarted(), began)

    def poll_once(self) -> None:
        """One poll and all that follows from it. The thread calls this; tests may, without starting the thread."""
        self._deliver()
        with self._lock:
            began = self._clock()
            self._fetch_began = began
            keys = self._keys
            conditional = self._state.mode is Mode.ARMED and not self._unsaved and self._polls % FULL_READ_EVERY != 0
            known = self._accepted_generation if conditional else 0
            self._polls += 1
        seen = self._store.read(known)
        observation = _observation(seen, keys)
        with self._lock:
            self._fetch_began = None
            self._answer_at = self._clock()
            self._generation = seen.generation or self._generation
        self._take(observation, began)
        self._note(seen, observation, began)
        if self._lease_ran_out():
            self._take(LeaseOver(seen.fault or "no good signed document was served"), began)

    def _lease_ran_out(self) -> bool:
        with self._lock:
            return self._state.mode is Mode.ARMED and self._clock() >= self._lease_end

    def _note(self, seen: RemoteRead, observation: Observation, began: float) -> None:
        """Only a document that was accepted may later be taken as unchanged."""
        with self._lock:
            match observation:
                case Read(order, KillOrder()):
                    self._accepted_generation = 0
                    if order in self._state.latched:
                        self._channel_at = began
                case Read(_, SignedUnkill() as content):
                    current = content.epoch == self._state.epoch
                    self._accepted_generation = seen.generation if current and self._state.mode is Mode.ARMED else 0
                    if current:
                        self._channel_at = began
                case Unchanged():
                    self._channel_at = began
                case Unreadable():
                    pass
                case _:
                    self._accepted_generation = 0

    def _take(self, observation: Observation, began: float) -> None:
        before = self._state
        after, effects = observe(before, observation)
        loosens = any(isinstance(e, Released | LiftSoftStop | LeaseRenewed) for e in effects)
        changed = after != before or self._unsaved
        # A release, a lift, a raised epoch: persist, then run. What cannot be persisted does not happen.
        if loosens and changed and not self._persist(after):
            self._deliver()
            return
        with self._lock:
            self._state = after
        self._emit(effects, began)
        # A kill or a soft stop: act, then persist.
        if not loosens and changed and not self._persist(after):
            self._deliver()

    def _persist(self, state: HostState) -> bool:
        try:
            save_state(self._state_file, state)
        except OSError as error:
            self._unsaved = True
            self._alarm(Alarm(f"The state of the remote kill channel cannot be saved: {error.strerror or error}."))
            return False
        self._unsaved = False
        return True

    def _emit(self, effects: tuple[Effect, ...], began: float) -> None:
        for effect in effects:
            match effect:
                case LeaseRenewed():
                    self._renew(began)
                case Alarm():
                    self._alarm(effect)
                case _:
                    self._outbox.put(effect)
        self._deliver()

    def _renew(self, began: float) -> None:
        """The lease counts from the moment the request was sent: what came back may be as old as that."""
        with self._lock:
            self._lease_end = began + self._lease_s
            self._good_at = began
            left = self._lease_end - self._clock()
            self._trouble = ""
            self._alarmed.clear()
        if left > 0:
            self._outbox.put(LeaseRenewed(left))

    def _alarm(self, alarm: Alarm) -> None:
        with self._lock:
            self._trouble = alarm.text
            repeated = alarm.text in self._alarmed or len(self._alarmed) >= _ALARMS_KEPT
            self._alarmed.add(alarm.text)
        if not repeated:
            self._outbox.put(alarm)

    def _deliver(self) -> None:
        trouble = self._outbox.deliver()
        if trouble:
            with self._lock:
                self._trouble = trouble


def _observation(seen: RemoteRead, keys: KeySet) -> Observation:
    if seen.fault:
        return Unreadable(seen.fault)
    if seen.unchanged:
        return Unchanged()
    if seen.missing:
        return Missing()
    if seen.body is None:
        return Read(Order(f"{seen.generation}:sha256:{'0' * 64}"), Junk(seen.junk or "it has no bytes"))
    return Read(order_of(seen.generation, seen.body), parse(seen.body, keys))


def _age(now: float, moment: float | None) -> float | None:
    return None if moment is None else max(0.0, now - moment)
