"""The panic control on the screen: a plate with a guarded button, for the console's top bar and for the panic window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from time import monotonic

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QEventPoint,
    QFocusEvent,
    QHideEvent,
    QInputEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QTouchEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from console.domain.words import counted
from console.panic import fonts
from console.panic.event_time import Attention
from console.panic.machine import AGAIN_S, ARMED_S, PanicMachine, PanicState, progress
from console.panic.paint import ESTOP, PLATE, PLATE_INK, draw_line, paint_button, paint_stripes

_PACES = {PanicState.HOLDING: 30, PanicState.ARMED: 100, PanicState.AGAIN: 100}
"""Milliseconds between two pictures while something runs out."""
_HOLD_KEYS = (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter)
_CLOSED = (PanicState.READY, PanicState.ARMED, PanicState.HOLDING, PanicState.AGAIN)
_MOUSE, _TOUCH, _KEY = "mouse", "touch", "key"


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a plate, in pixels."""

    width: int
    height: int
    button: tuple[float, float]
    """Middle and radius of the button, the middle from the left."""
    text: QRectF
    """Where the headline stands; the second line follows."""
    head: int
    """Size of the headline's letters."""
    bar: float
    """Height of the bar that fills."""
    rounded: bool


BAR = Shape(236, 56, (38, 21), QRectF(72, 7, 155, 22), 16, 3, rounded=True)
WINDOW = Shape(260, 66, (46, 25), QRectF(88, 9, 163, 24), 18, 4, rounded=False)


@dataclass(frozen=True, slots=True)
class PlateWords:
    """What stands on a plate, and how far its ring and bar are (0 to 1)."""

    head: str
    line: str
    share: float


def plate_words(machine: PanicMachine, agents: int, proven: int, total: int) -> PlateWords:
    """The words of the plate in the console, where the page beside it says the rest."""
    share = progress(machine) if machine.state is PanicState.HOLDING else proven / total if total else 0.0
    match machine.state:
        case PanicState.READY:
            ready = "Click to unlock" if machine.guard_alive else "No guard: Panic still works"
            return PlateWords("PANIC", machine.note or ready, share)
        case PanicState.ARMED:
            return PlateWords("HOLD TO KILL", f"{counted(agents, 'agent')} · locks in {ceil(machine.left_s)} s", machine.left_s / ARMED_S)
        case PanicState.HOLDING:
            return PlateWords("HOLD TO KILL", f"{counted(agents, 'agent')} · keep holding", share)
        case PanicState.AGAIN:
            return PlateWords("PRESS AGAIN", f"A second press kills · {ceil(machine.left_s)} s", machine.left_s / AGAIN_S)
        case PanicState.KILLING:
            return PlateWords("KILLING", f"{proven} of {total} confirmed dead" if total else "Cannot be undone", share)
        case PanicState.KILLED:
            return PlateWords("STOPPED", "Blocked until you rearm", share)


class PanicControl(QWidget):
    """Click, tap, Space or Enter unlocks; hold with the same to kill. ``changed`` follows the machine."""

    changed = Signal()

    def __init__(
        self,
        machine: PanicMachine,
        parent: QWidget | None = None,
        shape: Shape = BAR,
        words: Callable[[], PlateWords] | None = None,
    ) -> None:
        super().__init__(parent)
        self.machine, self._shape = machine, shape
        self._words = words or (lambda: plate_words(machine, *self._counts))
        self._counts = (0, 0, 0)
        self._down: dict[str, bool] = {}
        """What presses this plate (mouse, touch, a key), and whether its release unlocks the control."""
        self.setFixedSize(QSize(shape.width, shape.height))
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_AcceptTouchEvents)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAccessibleName("Panic, kill switch")
        self._frame = QTimer(self)
        self._frame.timeout.connect(self.update)
        self._attention = Attention(self)
        self._due = QTimer(self)
        self._due.setSingleShot(True)
        # Qt's default timer may come 5 % late, and a hold must end when the words on the plate say.
        self._due.setTimerType(Qt.TimerType.PreciseTimer)
        self._due.timeout.connect(self._tick)
        machine.listen(self._machine_changed)
        self._machine_changed()

    def show_counts(self, agents: int, proven: int, total: int) -> None:
        """Sets the agents that a panic would kill and, during a kill, how many of the total are confirmed dead."""
        if (agents, proven, total) != self._counts:
            self._counts = (agents, proven, total)
            self._refresh()

    def _machine_changed(self) -> None:
        self._refresh()
        self._plan()
        self.changed.emit()

    def _refresh(self) -> None:
        pace = _PACES.get(self.machine.state, 0)
        if pace != (self._frame.interval() if self._frame.isActive() else 0):
            self._frame.start(pace) if pace else self._frame.stop()
        self._attention.set_fast(self.machine.state not in (PanicState.READY, PanicState.KILLED))
        shown = self._words()
        self.setAccessibleDescription(f"{shown.head}. {shown.line}")
        self.update()

    def _plan(self) -> None:
        due = self.machine.due
        if due is None:
            self._due.stop()
        else:
            self._due.start(max(0, int((due - monotonic()) * 1000) + 1))

    def _tick(self) -> None:
        self.machine.tick()
        self._plan()

    # --- input ----------------------------------------------------------------------------------------------------------

    def _press(self, source: str, event: QInputEvent) -> None:
        self._down[source] = arms = self.machine.state is PanicState.READY
        if not arms:
            self.machine.press_down(self._attention.moment(event), source)

    def _release(self, source: str, event: QInputEvent, *, inside: bool = True) -> None:
        arms = self._down.pop(source, None)
        # A release that belongs to the unlocking press must not count as the end of a hold.
        if arms is False:
            self.machine.press_up(self._attention.moment(event), source)
        elif arms and inside and self.machine.state is PanicState.READY:
            self.machine.arm()

    def _lose(self, why: str, *kinds: str) -> None:
        """What holds the button is lost to another window: its release will not come here."""
        for source in [s for s in self._down if s.startswith(kinds)]:
            if self._down.pop(source) is False:
                self.machine.lose(why, source)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QTouchEvent):
            self._touch(event)
            return True
        if event.type() is QEvent.Type.Show:
            self._attention.begin()
        return super().event(event)

    def _touch(self, event: QTouchEvent) -> None:
        """The first finger counts; it is down until it, or the whole touch, ends."""
        event.accept()
        first = event.points()[0] if event.points() else None
        if event.type() is QEvent.Type.TouchCancel:
            self._lose("Touch lost at", _TOUCH)
        elif event.type() is QEvent.Type.TouchBegin:
            self._press(_TOUCH, event)
        elif event.type() is QEvent.Type.TouchEnd or (first is not None and first.state() is QEventPoint.State.Released):
            inside = first is None or self.rect().contains(first.position().toPoint())
            self._release(_TOUCH, event, inside=inside)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            self._press(_MOUSE, event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.mousePressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            self._release(_MOUSE, event, inside=self.rect().contains(event.position().toPoint()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() not in _HOLD_KEYS:
            super().keyPressEvent(event)
        # A key that is held repeats itself: taken for presses, the second one would already count as a second hand.
        elif not event.isAutoRepeat():
            if self.machine.state is PanicState.READY:
                self.machine.arm()
            else:
                self._press(f"{_KEY} {event.key()}", event)

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        if event.key() not in _HOLD_KEYS:
            super().keyReleaseEvent(event)
        elif not event.isAutoRepeat():
            self._release(f"{_KEY} {event.key()}", event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._lose("Keyboard lost at", _KEY)
        super().focusOutEvent(event)

    def hideEvent(self, event: QHideEvent) -> None:
        self._attention.stop()
        self._lose("Hidden at", _MOUSE, _TOUCH, _KEY)
        super().hideEvent(event)

    # --- picture --------------------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        state, shape, shown = self.machine.state, self._shape, self._words()
        box = QRectF(self.rect())
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if shape.rounded:
            round_shape = QPainterPath()
            round_shape.addRoundedRect(box, 8, 8)
            painter.setClipPath(round_shape)
        painter.fillRect(box, QColor(PLATE))
        if state in _CLOSED:
            paint_stripes(painter, QRectF(0, 0, 8, box.height()))
            paint_stripes(painter, QRectF(box.width() - 8, 0, 8, box.height()))
        middle, radius = shape.button
        guarded = state is PanicState.READY and not shape.rounded
        paint_button(painter, QPointF(middle, box.height() / 2), radius - 2 if guarded else radius, state, shown.share)
        self._paint_text(painter, shown)
        if self.hasFocus():
            painter.setClipping(False)
            painter.setPen(QPen(QColor(PLATE_INK), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(2, 2, -2, -2), 6, 6)
        painter.end()

    def _paint_text(self, painter: QPainter, shown: PlateWords) -> None:
        text, state = self._shape.text, self.machine.state
        draw_line(painter, text, shown.head, fonts.ui(self._shape.head, fonts.SEMIBOLD), PLATE_INK)
        line = QRectF(text.x(), text.bottom(), text.width(), 18 if not self._shape.rounded else 16)
        draw_line(painter, line, shown.line, fonts.ui(12, fonts.MEDIUM), PLATE_INK)
        if state in (*_PACES, PanicState.KILLING):
            bar = QRectF(text.x(), line.bottom() + 3 - (1 if self._shape.rounded else 0), text.width() - 8, self._shape.bar)
            painter.fillRect(bar, QColor(0, 0, 0, 45))
            bar.setWidth(bar.width() * shown.share)
            painter.fillRect(bar, QColor(ESTOP if state is PanicState.HOLDING else PLATE_INK))
