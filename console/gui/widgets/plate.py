"""The panic plate of the top bar (236 x 56) and how its button and guard are painted. Yellow is for this alone."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QColor, QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPainterPath, QPaintEvent, QPen, QRadialGradient
from PySide6.QtWidgets import QSizePolicy, QWidget

from console.gui.theme import fonts
from console.gui.theme.icons import icon_pixmap
from console.gui.theme.tokens import ESTOP, ESTOP_PRESSED, PLATE, PLATE_INK
from console.gui.widgets.marks import draw_text
from console.gui.widgets.panic import PanicMachine, PanicState
from console.gui.widgets.words import plural

_FRAME_MS = 30
_HOLD_KEYS = (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter)


def paint_stripes(painter: QPainter, box: QRectF) -> None:
    """Black and yellow diagonals."""
    painter.save()
    painter.setClipRect(box, Qt.ClipOperation.IntersectClip)
    painter.fillRect(box, QColor(PLATE))
    painter.setPen(QPen(QColor(PLATE_INK), 5))
    y = box.y() - 12
    while y < box.bottom() + 12:
        painter.drawLine(QPointF(box.x() - 4, y + 10), QPointF(box.right() + 4, y - 4))
        y += 12
    painter.restore()


def paint_button(painter: QPainter, centre: QPointF, radius: float, state: PanicState, share: float) -> None:
    """The button with its guard (ready), its ring (holding, killing: ``share``) or its lock (killed)."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    pressed = state in (PanicState.HOLDING, PanicState.KILLING, PanicState.KILLED)
    gradient = QRadialGradient(centre - QPointF(radius * 0.3, radius * 0.35), radius * 1.5)
    gradient.setColorAt(0, QColor("#FF4A55") if not pressed else QColor(ESTOP))
    gradient.setColorAt(1, QColor(ESTOP) if not pressed else QColor(ESTOP_PRESSED))
    painter.setBrush(QColor(0, 0, 0, 60))
    painter.drawEllipse(centre + QPointF(0.8, 1.6), radius, radius)
    painter.setBrush(gradient if state is not PanicState.KILLED else QColor(ESTOP_PRESSED))
    painter.drawEllipse(centre, radius, radius)
    if state in (PanicState.HOLDING, PanicState.KILLING):
        ring = QRectF(centre.x() - radius - 2, centre.y() - radius - 2, 2 * radius + 4, 2 * radius + 4)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(0, 0, 0, 50), 3))
        painter.drawEllipse(ring)
        painter.setPen(QPen(QColor("#FFFFFF"), 3))
        painter.drawArc(ring, 90 * 16, -int(360 * 16 * max(0.0, min(1.0, share))))
    elif state is PanicState.KILLED:
        side = int(radius * 0.85)
        painter.drawPixmap(QPointF(centre.x() - side / 2, centre.y() - side / 2), icon_pixmap("lock", "#FFFFFF", side))
    elif state is PanicState.READY:
        _paint_guard(painter, centre, radius)
    painter.restore()


def _paint_guard(painter: QPainter, centre: QPointF, radius: float) -> None:
    box = QRectF(centre.x() - radius - 4, centre.y() - radius - 4, 2 * radius + 8, 2 * radius + 8)
    painter.setPen(QPen(QColor(PLATE_INK), 1.8))
    painter.setBrush(QColor(255, 255, 255, 70))
    painter.drawRoundedRect(box, 6, 6)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(PLATE_INK))
    painter.drawRoundedRect(QRectF(centre.x() - 8, box.bottom() - 4, 16, 5), 2, 2)


def plate_words(machine: PanicMachine, agents: int, proven: int, total: int) -> tuple[str, str]:
    """(headline, second line) of the plate."""
    match machine.state:
        case PanicState.READY:
            if machine.note:
                return "PANIC", machine.note
            return "PANIC", "Lift guard to arm" if machine.guard_alive else "No guard: kills by itself"
        case PanicState.ARMED:
            return "HOLD TO KILL", f"{plural(agents, 'agent')} · press and hold"
        case PanicState.HOLDING:
            return "HOLD TO KILL", f"{plural(agents, 'agent')} · keep holding"
        case PanicState.AGAIN:
            return "PRESS AGAIN", "thawed · a second press kills"
        case PanicState.KILLING:
            return "KILLING", f"{proven} of {total} proven zero" if total else "No way back now"
        case PanicState.KILLED:
            return "KILL ENGAGED", "Latched until rearmed"


class PanicPlate(QWidget):
    """The plate itself. Click or Ctrl Shift Backspace lifts the guard; hold with the mouse, Space or Enter."""

    def __init__(self, machine: PanicMachine, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.machine = machine
        self._agents = self._proven = self._total = 0
        self._keyboard = False
        self._hold_mouse = False
        self.setFixedSize(QSize(236, 56))
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAccessibleName("Panic, kill switch")
        self._frame = QTimer(self)
        self._frame.setInterval(_FRAME_MS)
        self._frame.timeout.connect(self.update)
        machine.changed.connect(self._changed)
        self._changed()

    def show_counts(self, agents: int, proven: int, total: int) -> None:
        """Agents a press meets; agents proven zero of how many, while killing."""
        if (agents, proven, total) != (self._agents, self._proven, self._total):
            self._agents, self._proven, self._total = agents, proven, total
            self._changed()

    def _changed(self) -> None:
        moving = self.machine.state is PanicState.HOLDING
        if moving != self._frame.isActive():
            self._frame.start() if moving else self._frame.stop()
        head, line = plate_words(self.machine, self._agents, self._proven, self._total)
        self.setAccessibleDescription(f"{head}. {line}")
        self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton and self.machine.state is not PanicState.READY:
            self._hold_mouse = True
            self.machine.press_down()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.mousePressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() is not Qt.MouseButton.LeftButton:
            return
        if self._hold_mouse:
            self._hold_mouse = False
            self.machine.press_up()
        elif self.machine.state is PanicState.READY and self.rect().contains(event.position().toPoint()):
            self.machine.arm()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() not in _HOLD_KEYS:
            super().keyPressEvent(event)
        elif not event.isAutoRepeat():
            if self.machine.state is PanicState.READY:
                self.machine.arm()
            else:
                self._keyboard = True
                self.machine.press_down()

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        if event.key() not in _HOLD_KEYS:
            super().keyReleaseEvent(event)
        elif not event.isAutoRepeat() and self._keyboard:
            self._keyboard = False
            self.machine.press_up()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        if self._keyboard:  # the release would go to another window: what is not held is let go
            self._keyboard = False
            self.machine.press_up()
        super().focusOutEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        state = self.machine.state
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        shape = QPainterPath()
        shape.addRoundedRect(QRectF(self.rect()), 8, 8)
        painter.setClipPath(shape)
        painter.fillRect(self.rect(), QColor(PLATE))
        if state in (PanicState.READY, PanicState.ARMED, PanicState.HOLDING, PanicState.AGAIN):
            paint_stripes(painter, QRectF(0, 0, 8, 56))
            paint_stripes(painter, QRectF(228, 0, 8, 56))
        share = self.machine.progress if state is PanicState.HOLDING else self._proven / self._total if self._total else 0.0
        paint_button(painter, QPointF(38, 28), 21, state, share)
        head, line = plate_words(self.machine, self._agents, self._proven, self._total)
        draw_text(painter, QRectF(72, 7, 152, 22), head, fonts.ui(16, fonts.SEMIBOLD), PLATE_INK)
        draw_text(painter, QRectF(72, 29, 152, 16), line, fonts.ui(12, fonts.MEDIUM), PLATE_INK)
        if state in (PanicState.HOLDING, PanicState.KILLING):
            painter.fillRect(QRectF(72, 47, 146, 3), QColor(0, 0, 0, 45))
            painter.fillRect(QRectF(72, 47, 146 * share, 3), QColor(ESTOP if state is PanicState.HOLDING else PLATE_INK))
        if self.hasFocus():
            painter.setClipping(False)
            painter.setPen(QPen(QColor(PLATE_INK), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(2, 2, -2, -2), 6, 6)
        painter.end()
