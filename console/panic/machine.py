"""The panic control as a state machine: a lock to open first, two unlike actions, freeze at the press, kill at the end of the hold.

It knows no socket and no toolkit: ``PanicPort`` carries its orders out, a clock is given, and its owner calls ``tick`` when ``due``. Every
input may carry the moment at which it happened: a window whose thread was busy handles it late, and the hold is as long as the finger's.
Once the kill is out there is no way back but rearm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from time import monotonic
from typing import Protocol

from console.domain.guard import HELD_GRACE_S, HOLD_S

ARMED_S = 5.0
AGAIN_S = 2.0
NOTE_S = 6.0
CHECK_S = 0.5
"""After a hold that ended without news of a kill the guard is asked, and pressed unless it killed."""
LATE_S = 0.1
"""A deadline noticed later than this had a busy thread: input that was waiting behind it is handled first."""


class PanicState(Enum):
    """What the control is doing."""

    READY = "ready"
    ARMED = "armed"
    HOLDING = "holding"
    AGAIN = "again"
    """Released early: resumed, and a second press within 2 s kills."""
    KILLING = "killing"
    KILLED = "killed"


class PanicPort(Protocol):
    """What carries the orders out."""

    def hold(self, held_s: float, done: Callable[[str | None], None]) -> None:
        """Freezes everything, pressed ``held_s`` ago. ``done`` gets the hold's id, or None when the guard was silent or refused."""

    def let_go(self, hold_id: str, done: Callable[[bool], object]) -> None:
        """Thaws. ``done`` is told whether the guard did."""

    def press(self) -> None: ...

    def make_sure(self) -> None:
        """The hold is over: press, unless the guard says that it killed."""

    def without_guard(self) -> None:
        """The same kill by a process of its own, from the registry on disk."""


@dataclass(frozen=True, slots=True)
class _Press:
    """The press of this hold."""

    at: float | None
    """When it happened, if the event carries a plausible time."""
    handled: float
    source: str

    def lasted(self, at: float | None, now: float) -> float:
        """Seconds until ``at``; by the moments of handling where either event has none, or time ran backwards."""
        if self.at is None or at is None or at < self.at:
            return now - self.handled
        return at - self.at


class PanicMachine:
    """``arm`` unlocks for 5 s; ``press_down`` freezes; after 0.8 s it kills; ``press_up`` before that thaws."""

    def __init__(self, port: PanicPort, clock: Callable[[], float] = monotonic) -> None:
        self._port, self._clock = port, clock
        self._listeners: list[Callable[[], None]] = []
        self.state = PanicState.READY
        self.guard_alive = False
        self.note = ""
        """One line on what happened last (released, resumed)."""
        self._press: _Press | None = None
        self._hold_id: str | None = None
        self._hold_failed = False
        self._attempt = 0
        self._ends: float | None = None
        """When the state ends by itself."""
        self._waits_until: float | None = None
        """Later than ``_ends``: what waits behind a busy thread is handled first."""
        self._note_ends: float | None = None

    def listen(self, callback: Callable[[], None]) -> None:
        """``callback`` is called after every change of state, note or guard."""
        self._listeners.append(callback)

    @property
    def left_s(self) -> float:
        """Seconds until the hold, the open lock or the time for a second press ends by itself; 0.0 while none of them runs."""
        runs = self.state in (PanicState.HOLDING, PanicState.ARMED, PanicState.AGAIN)
        return max(0.0, self._ends - self._clock()) if runs and self._ends is not None else 0.0

    @property
    def due(self) -> float | None:
        """When ``tick`` has something to do, on the clock; None: never."""
        times = [t for t in (self._waits_until or self._ends, self._note_ends) if t is not None]
        return min(times, default=None)

    def tick(self) -> None:
        """Ends what is over."""
        now = self._clock()
        if self._note_ends is not None and now >= self._note_ends:
            self._say("")
        if self._ends is None or now < (self._waits_until or self._ends):
            return
        if self._waits_until is None and now - self._ends > LATE_S:
            self._waits_until = now + HELD_GRACE_S
            return
        self._end(now)

    def arm(self) -> None:
        """Unlock the control for 5 s."""
        if self.state in (PanicState.READY, PanicState.ARMED):
            self._become(PanicState.ARMED, ARMED_S)

    def press_down(self, at: float | None = None, source: str = "") -> None:
        """``source`` went down at ``at``. In READY nothing happens: the guard is in the way.

        A second press during a hold continues it: the release between was lost, or another hand helps.
        """
        now = self._clock()
        if self.state not in (PanicState.ARMED, PanicState.AGAIN):
            return
        if self._ends is not None and (at if at is not None else now) > self._ends:
            self._become(PanicState.READY)  # too late: its time was over when the finger came down
        elif self.state is PanicState.AGAIN:
            self._kill_now()
        else:
            self._begin_hold(_Press(at, now, source))

    def press_up(self, at: float | None = None, source: str = "") -> None:
        """``source`` came up at ``at``; before the end of the hold everything is thawed."""
        if self._press is not None and self._press.source == source:
            self._let_go(at, "Released at")

    def lose(self, why: str, source: str = "") -> None:
        """The release of ``source`` will never be seen; ``why`` begins the note. What is not held any more is let go."""
        if self._press is not None and self._press.source == source:
            self._let_go(None, why)

    def set_guard(self, alive: bool) -> None:
        """Whether the guard answers."""
        if alive != self.guard_alive:
            self.guard_alive = alive
            self._tell()

    def set_kill(self, killing: bool, latched: bool) -> None:
        """What the guard (or supervisor) says of the instance, wherever the press came from."""
        if latched or killing:
            self._become(PanicState.KILLING if killing else PanicState.KILLED)
        elif self.state is PanicState.KILLED:
            self._become(PanicState.READY)

    def gave_up(self, words: str) -> None:
        """The order could not be carried out at all: the control must not look as if it had been."""
        self._say(words)
        if self.state is PanicState.KILLING:
            self._become(PanicState.READY)

    # --- steps ----------------------------------------------------------------------------------------------------------

    def _begin_hold(self, press: _Press) -> None:
        """Freezes. The part of the hold that is over already counts, but for the time in which a waiting release is handled."""
        late = max(0.0, press.handled - press.at) if press.at is not None else 0.0
        # A release that waits in the queue must still be able to stop the kill, however late the press is handled.
        held = min(late, HOLD_S - HELD_GRACE_S)
        self._attempt += 1
        self._press, self._hold_id, self._hold_failed = press, None, False
        # The time that a busy thread took before it handled the press is part of the finger's hold.
        self._become(PanicState.HOLDING, HOLD_S - held)
        attempt = self._attempt
        self._port.hold(held, lambda hold_id: self._held(attempt, hold_id))

    def _held(self, attempt: int, hold_id: str | None) -> None:
        # An answer of an earlier hold says nothing of this one, and its id must not be thawed in place of the new one.
        if attempt != self._attempt:
            return
        self._hold_id, self._hold_failed = hold_id, hold_id is None
        if hold_id is None:
            self.set_guard(False)
        if self.state is PanicState.AGAIN:
            self._thaw(hold_id) if hold_id is not None else self._end_note("nothing was sent")
        elif self.state is PanicState.KILLING and hold_id is None and self._ends is not None:
            self._ends = None
            self._port.without_guard()

    def _let_go(self, at: float | None, words: str) -> None:
        if self.state is not PanicState.HOLDING or self._press is None:
            return
        lasted = self._press.lasted(at, self._clock())
        if lasted >= HOLD_S:
            self._fire()
            return
        self._say(f"{words} {lasted:.1f} s")
        self._become(PanicState.AGAIN, AGAIN_S)
        if self._hold_id is not None:
            self._thaw(self._hold_id)
        elif self._hold_failed:
            self._end_note("nothing was sent")

    def _thaw(self, hold_id: str) -> None:
        attempt = self._attempt

        def answered(thawed: bool) -> None:
            if attempt == self._attempt:
                self._end_note("resumed" if thawed else "NOT resumed")

        self._port.let_go(hold_id, answered)

    def _end_note(self, words: str) -> None:
        """What became of letting go, once it is known."""
        if self.note and ":" not in self.note:
            self._say(f"{self.note}: {words}")

    def _fire(self) -> None:
        """End of the hold: the guard kills by itself; a silent one is replaced."""
        self._become(PanicState.KILLING, None if self._hold_failed else CHECK_S)
        # A guard that did not take the hold has no clock running, so nothing kills unless we do.
        if self._hold_failed:
            self._port.without_guard()

    def _kill_now(self) -> None:
        self._become(PanicState.KILLING)
        if self.guard_alive:
            self._port.press()
        else:
            self._port.without_guard()

    def _end(self, now: float) -> None:
        match self.state:
            case PanicState.ARMED | PanicState.AGAIN:
                self._become(PanicState.READY)
            case PanicState.HOLDING:
                self._fire()
            case PanicState.KILLING:
                self._ends = self._waits_until = None
                self._port.make_sure()
            case PanicState.READY | PanicState.KILLED:
                self._ends = self._waits_until = None

    def _become(self, state: PanicState, lasts_s: float | None = None) -> None:
        self._ends, self._waits_until = (None if lasts_s is None else self._clock() + lasts_s), None
        if state is not PanicState.HOLDING:
            self._press = None
        if state is not self.state:
            self.state = state
            self._tell()

    def _say(self, note: str) -> None:
        self.note = note
        self._note_ends = self._clock() + NOTE_S if note else None
        self._tell()

    def _tell(self) -> None:
        for callback in tuple(self._listeners):
            callback()


def progress(machine: PanicMachine) -> float:
    """Share of the hold that is over, 0 to 1; 0 outside of a hold."""
    return min(1.0, 1 - machine.left_s / HOLD_S) if machine.state is PanicState.HOLDING else 0.0
