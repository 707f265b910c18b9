"""The headless poller: its own thread looks at the kill file and for a new order every few seconds, and says what follows.

It only watches and tells: the guard enforces the lease, so a hung fetch or a dead poller stops the host, never frees it.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path

from console.domain.errors import ConsoleError
from console.domain.guard import LEASE_S
from console.remotekill.channel import Channel, PollerStatus, boottime
from console.remotekill.document import KeySet
from console.remotekill.looking import Look, Readable
from console.remotekill.machine import (
    Alarm,
    Effect,
    HostState,
    Latch,
    LeaseOver,
    LeaseRenewed,
    LiftSoftStop,
    Mode,
    Observation,
    Released,
    Restarted,
    SoftStop,
    observe,
)
from console.remotekill.state_file import load_state, save_state

TELL_S = 10.0
"""How long a start waits for a guard that does not answer."""


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
        self._period_s, self._clock = period_s, clock
        self._wake = threading.Event()
        self._stopping, self._told = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._unsaved = False
        self._channel = Channel(period_s, lease_s, lease_left_s, clock)
        self._state, self._channel.trouble = load_state(state_file)
        self._thread = threading.Thread(target=self._run, name="remotekill-poller", daemon=True)

    # --- for the supervisor -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Tells what is remembered (latch or soft stop), then polls in its own thread, at once. Returns once the first was told, after
        ``TELL_S`` at most: until a host knows of its soft stop, it would start agents."""
        self._thread.start()
        self._told.wait(TELL_S)

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
            self._channel.accept_nothing()
        self._wake.set()

    def status(self) -> PollerStatus:
        """Never blocks on the network and never flatters: everything is measured now."""
        waiting = self._outbox.waiting > 0
        with self._lock:
            return self._channel.status(self._state, running=self._thread.is_alive(), waiting=waiting)

    # --- the thread ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._tell_what_is_remembered()
        finally:
            self._told.set()
        while not self._stopping.is_set():
            began = self._clock()
            self.poll_once()
            # Hosts that were started together would otherwise ask the bucket at the same moment for ever.
            gap = random.uniform(0.5, 1.0) * self._period_s - (self._clock() - began)
            # A read that takes longer than the period must not turn the loop into one without a pause.
            self._wake.wait(max(0.05 * self._period_s, gap))
            self._wake.clear()

    def _tell_what_is_remembered(self) -> None:
        began = self._clock()
        if self._channel.trouble:
            self._alarm(Alarm(self._channel.trouble))
        if self._state.released:
            self._outbox.put(Released(self._state.released, remembered=True))
        if self._channel.lease_is_over() or self._state.mode is not Mode.ARMED:
            self._take(Restarted(), began)

    def poll_once(self) -> None:
        """One poll and all that follows from it. The thread calls this; tests may, without starting the thread."""
        self._deliver()
        with self._lock:
            keys = self._keys
            # Taken before the request: the lease counts from when the answer may have been made, not from when it arrived.
            began, known = self._channel.ask(whole=self._state.mode is not Mode.ARMED or self._unsaved)
        # Without the lock: a fetch may hang for its whole deadline, and the status must answer meanwhile.
        seen = self._store.read(known)
        with self._lock:
            changed, far = self._channel.is_changed(seen), self._channel.is_full
        look = Look(self._store, seen, self._state, keys, changed=changed, far=far)
        for observation in look.observations():
            self._take(observation, began)
        with self._lock:
            self._channel.answered(seen, look.orders, look.history)
            self._channel.note(seen, look.live, self._state, began)
            if keys is not self._keys:  # what other keys signed is never "unchanged"
                self._channel.accept_nothing()
            has_run_out = self._state.mode is Mode.ARMED and self._channel.lease_is_over()
        if has_run_out:
            self._take(LeaseOver(seen.fault or "no good signed document was served"), began)

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
        with self._lock:
            left = self._channel.renew(began)
        if left > 0:
            self._outbox.put(LeaseRenewed(left))

    def _alarm(self, alarm: Alarm) -> None:
        with self._lock:
            is_new = self._channel.alarm(alarm.text)
        if is_new:
            self._outbox.put(alarm)

    def _deliver(self) -> None:
        trouble = self._outbox.deliver()
        if trouble:
            with self._lock:
                self._channel.trouble = trouble


# --- Effects on their way to the supervisor: told in order, told again until taken, what stops ahead of what loosens.


class Outbox:
    """Filled and emptied by the poller's thread; ``waiting`` may be asked from any."""

    def __init__(self, tell: Callable[[Effect], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._waiting: list[Effect] = []

    @property
    def waiting(self) -> int:
        """Effects not yet taken; more than none means that the guard may not know what the poller knows."""
        with self._lock:
            return len(self._waiting)

    def put(self, effect: Effect) -> None:
        """A newer word on the soft stop or the lease replaces the older one; a latch goes first."""
        with self._lock:
            match effect:
                case Latch():
                    # A release that waited behind a busy guard must not be told after a kill that came since.
                    self._drop(LiftSoftStop | LeaseRenewed)
                    behind = sum(isinstance(e, Latch) for e in self._waiting)
                    self._waiting.insert(behind, effect)
                    return
                case SoftStop():
                    self._drop(SoftStop | LiftSoftStop | LeaseRenewed)
                case LiftSoftStop():
                    self._drop(SoftStop | LiftSoftStop)
                case LeaseRenewed():
                    self._drop(LeaseRenewed)
            self._waiting.append(effect)

    def _drop(self, kinds: object) -> None:
        self._waiting = [e for e in self._waiting if not isinstance(e, kinds)]  # type: ignore[arg-type]

    def deliver(self) -> str:
        """Tells everything that waits; stops at the first that is not taken and says why. Empty words: all was taken."""
        while True:
            with self._lock:
                if not self._waiting:
                    return ""
                effect = self._waiting[0]
            try:
                self._tell(effect)
            except (ConsoleError, OSError) as error:
                return f"what was read was not taken by the guard: {error}"
            with self._lock:
                if self._waiting and self._waiting[0] is effect:
                    self._waiting.pop(0)
