"""How plate, button, guard and text of the panic control are painted. Yellow is for this alone."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPainterPath, QPen, QPixmap, QRadialGradient

from console.panic.machine import PanicState

ESTOP = "#D0021B"
ESTOP_PRESSED = "#9E0012"
PLATE = "#FFC800"
PLATE_INK = "#15130A"
TEXT, TEXT2, WARN, OK = "#E8ECF1", "#AAB4C1", "#F2AE45", "#52C3A6"
"""On the black of the plate, in the dark theme and in the light one."""


def draw_line(painter: QPainter, box: QRectF, text: str, font: QFont, colour: str, *, right: bool = False) -> None:
    """One elided line of plain text, vertically centred."""
    shown = QFontMetricsF(font).elidedText(text, Qt.TextElideMode.ElideRight, box.width())
    painter.setFont(font)
    painter.setPen(QColor(colour))
    side = Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft
    painter.drawText(box, int(side | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine), shown)


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
        _paint_lock(painter, centre, radius * 0.85)
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


def _paint_lock(painter: QPainter, centre: QPointF, side: float) -> None:
    """The closed lock of resources/icons on its grid of 24, without the module that reads such files."""
    painter.save()
    painter.translate(centre.x() - side / 2, centre.y() - side / 2)
    painter.scale(side / 24, side / 24)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(QColor("#FFFFFF"), 2, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin))
    painter.drawRoundedRect(QRectF(4, 11, 16, 10), 2, 2)
    shackle = QPainterPath(QPointF(8, 11))
    shackle.lineTo(8, 7)
    shackle.arcTo(QRectF(8, 3, 8, 8), 180, -180)
    shackle.lineTo(16, 11)
    painter.drawPath(shackle)
    painter.restore()


def tray_picture(side: int = 44) -> QPixmap:
    """The plate with its button, as the icon in the desktop's tray."""
    picture = QPixmap(side, side)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(PLATE))
    painter.drawRoundedRect(QRectF(0, 0, side, side), 9, 9)
    paint_button(painter, QPointF(side / 2, side / 2), side * 0.32, PanicState.ARMED, 0.0)
    painter.end()
    return picture
