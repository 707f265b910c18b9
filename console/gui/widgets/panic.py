"""The panic control as a state machine: guarded, two unlike actions, freeze at the press, kill at the end of the hold.

It knows no socket: ``PanicPort`` carries its orders out. Once the kill is out there is no way back but rearm.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from time import monotonic
from typing import Protocol

from PySide6.QtCore import QObject, QTimer, Signal

from console.domain.guard import HOLD_S

ARMED_S = 5.0
AGAIN_S = 2.0
NOTE_S = 6.0
CHECK_MS = 500
"""After a hold that ended without news of a kill the guard is asked, and pressed unless it killed."""


class PanicState(Enum):
    """What the control is doing."""

    READY = "ready"
    ARMED = "armed"
    HOLDING = "holding"
    AGAIN = "again"
    """Let go early: thawed, and a second press within 2 s kills."""
    KILLING = "killing"
    KILLED = "killed"


class PanicPort(Protocol):
    """What carries the orders out. ``hold`` answers with the hold id, or None when the guard was silent or refused."""

    def hold(self, done: Callable[[str | None], None]) -> None: ...

    def let_go(self, hold_id: str) -> None: ...

    def press(self) -> None: ...

    def make_sure(self) -> None:
        """The hold is over: press, unless the guard says that it killed."""

    def without_guard(self) -> None:
        """The same kill by a process of its own, from the registry on disk."""


class PanicMachine(QObject):
    """``arm`` lifts the guard for 5 s; ``press_down`` freezes; after 0.8 s it kills; ``press_up`` before that thaws."""

    changed = Signal()

    def __init__(self, port: PanicPort, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._port = port
        self.state = PanicState.READY
        self.guard_alive = False
        self.note = ""
        """One line on what happened last (let go, thawed)."""
        self._hold_id: str | None = None
        self._hold_failed = False
        self._pressed_at = 0.0
        self._attempt = 0
        self._arm_timer = _single(self, self._disarm)
        self._hold_timer = _single(self, self._fire)
        self._check_timer = _single(self, self._check)
        self._note_timer = _single(self, lambda: self._say(""))

    @property
    def progress(self) -> float:
        """Share of the hold that is over, 0 to 1."""
        return min(1.0, (monotonic() - self._pressed_at) / HOLD_S) if self.state is PanicState.HOLDING else 0.0

    def arm(self) -> None:
        """Lifts the guard."""
        if self.state in (PanicState.READY, PanicState.ARMED):
            self._arm_timer.start(int(ARMED_S * 1000))
            self._become(PanicState.ARMED)

    def press_down(self) -> None:
        """The button went down. In READY nothing happens: the guard is in the way."""
        if self.state is PanicState.AGAIN:
            self._arm_timer.stop()
            self._kill_now()
            return
        if self.state is not PanicState.ARMED:
            return
        self._arm_timer.stop()
        self._attempt += 1
        self._hold_id, self._hold_failed, self._pressed_at = None, False, monotonic()
        self._become(PanicState.HOLDING)
        self._hold_timer.start(int(HOLD_S * 1000))
        attempt = self._attempt
        self._port.hold(lambda hold_id: self._held(attempt, hold_id))

    def press_up(self) -> None:
        """The button came up; before the end of the hold everything is thawed."""
        if self.state is not PanicState.HOLDING:
            return
        self._hold_timer.stop()
        spent = monotonic() - self._pressed_at
        if self._hold_id is not None:
            self._port.let_go(self._hold_id)
        self._say(f"Let go at {spent:.1f} s: thawed" if not self._hold_failed else f"Let go at {spent:.1f} s: nothing was sent")
        self._arm_timer.start(int(AGAIN_S * 1000))
        self._become(PanicState.AGAIN)

    def set_guard(self, alive: bool) -> None:
        """Whether the guard answers."""
        if alive != self.guard_alive:
            self.guard_alive = alive
            self.changed.emit()

    def set_kill(self, killing: bool, latched: bool) -> None:
        """What the guard (or supervisor) says of the instance, whoever pressed."""
        if latched or killing:
            self._check_timer.stop()
            self._arm_timer.stop()
            self._hold_timer.stop()
            self._become(PanicState.KILLING if killing else PanicState.KILLED)
        elif self.state is PanicState.KILLED:
            self._become(PanicState.READY)

    def gave_up(self, words: str) -> None:
        """The order could not be carried out at all: the control must not look as if it had been."""
        self._say(words)
        if self.state is PanicState.KILLING:
            self._become(PanicState.READY)

    def _held(self, attempt: int, hold_id: str | None) -> None:
        if attempt != self._attempt:
            return
        self._hold_id, self._hold_failed = hold_id, hold_id is None
        if hold_id is None:
            self.set_guard(False)
        if self.state is PanicState.AGAIN and hold_id is not None:
            self._port.let_go(hold_id)
        elif self.state is PanicState.KILLING and hold_id is None and self._check_timer.isActive():
            self._check_timer.stop()
            self._port.without_guard()

    def _fire(self) -> None:
        """End of the hold: the guard kills by itself; a silent one is replaced."""
        self._become(PanicState.KILLING)
        if self._hold_failed:
            self._port.without_guard()
        else:
            self._check_timer.start(CHECK_MS)

    def _kill_now(self) -> None:
        self._become(PanicState.KILLING)
        if self.guard_alive:
            self._port.press()
        else:
            self._port.without_guard()

    def _check(self) -> None:
        if self.state is PanicState.KILLING:
            self._port.make_sure()

    def _disarm(self) -> None:
        if self.state in (PanicState.ARMED, PanicState.AGAIN):
            self._become(PanicState.READY)

    def _say(self, note: str) -> None:
        self.note = note
        if note:
            self._note_timer.start(int(NOTE_S * 1000))
        self.changed.emit()

    def _become(self, state: PanicState) -> None:
        if state is not self.state:
            self.state = state
            self.changed.emit()


def _single(owner: QObject, then: Callable[[], None]) -> QTimer:
    timer = QTimer(owner)
    timer.setSingleShot(True)
    timer.timeout.connect(then)
    return timer
