"""Shapes of a state, as pictures that are kept: state is never colour alone, always shape and word."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPixmap, QPolygonF

Mark = Callable[[QPainter, QRectF, QColor], None]


def draw_mark(painter: QPainter, kind: str, box: QRectF, colour: str) -> None:
    """One of the shapes of MARKS in ``box``; ValueError-free: an unknown kind paints a ring."""
    picture = _mark(kind, box.width(), box.height(), box.x() % 1, box.y() % 1, colour, painter.device().devicePixelRatioF())
    painter.drawPixmap(QPointF(math.floor(box.x()) - 2, math.floor(box.y()) - 2), picture)


@lru_cache(maxsize=1024)
def _mark(kind: str, width: float, height: float, dx: float, dy: float, colour: str, ratio: float) -> QPixmap:
    picture, painter, _ = blank(math.ceil(width + dx), math.ceil(height + dy), ratio)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    MARKS.get(kind, _ring)(painter, QRectF(2 + dx, 2 + dy, width, height), QColor(colour))
    painter.end()
    return picture


def _dot(painter: QPainter, box: QRectF, colour: QColor) -> None:
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    painter.drawEllipse(box.adjusted(0.5, 0.5, -0.5, -0.5))


def _ring(painter: QPainter, box: QRectF, colour: QColor) -> None:
    painter.setPen(QPen(colour, 1.8))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawEllipse(box.adjusted(1.2, 1.2, -1.2, -1.2))


def _triangle(painter: QPainter, box: QRectF, colour: QColor) -> None:
    painter.setPen(QPen(colour, 1, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin))
    painter.setBrush(colour)
    painter.drawPolygon(QPolygonF([QPointF(box.center().x(), box.top() + 0.5), box.bottomRight(), box.bottomLeft()]))


def _diamond(painter: QPainter, box: QRectF, colour: QColor) -> None:
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    centre = box.center()
    painter.drawPolygon(
        QPolygonF(
            [
                QPointF(centre.x(), box.top() - 1),
                QPointF(box.right() + 1, centre.y()),
                QPointF(centre.x(), box.bottom() + 1),
                QPointF(box.left() - 1, centre.y()),
            ]
        )
    )


def _cross(painter: QPainter, box: QRectF, colour: QColor) -> None:
    painter.setPen(QPen(colour, 1.5, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
    inner = box.adjusted(1.8, 1.8, -1.8, -1.8)
    painter.drawLine(inner.topLeft(), inner.bottomRight())
    painter.drawLine(inner.topRight(), inner.bottomLeft())


def _check(painter: QPainter, box: QRectF, colour: QColor) -> None:
    painter.setPen(QPen(colour, 1.7, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    x, y, w, h = box.x(), box.y(), box.width(), box.height()
    painter.drawPolyline([QPointF(x + w * 0.1, y + h * 0.55), QPointF(x + w * 0.4, y + h * 0.82), QPointF(x + w * 0.92, y + h * 0.22)])


def _pause(painter: QPainter, box: QRectF, colour: QColor) -> None:
    width = box.width() * 0.28
    painter.fillRect(QRectF(box.x() + box.width() * 0.1, box.y(), width, box.height()), colour)
    painter.fillRect(QRectF(box.right() - box.width() * 0.1 - width, box.y(), width, box.height()), colour)


def _square(painter: QPainter, box: QRectF, colour: QColor) -> None:
    painter.setPen(QPen(colour, 1.6))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(box.adjusted(1, 1, -1, -1), 1, 1)


def _alert(painter: QPainter, box: QRectF, colour: QColor) -> None:
    _ring(painter, box.adjusted(-1, -1, 1, 1), colour)
    painter.setPen(QPen(colour, 1.6, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
    middle = box.center().x()
    painter.drawLine(QPointF(middle, box.y() + 2.4), QPointF(middle, box.center().y() + 0.6))
    painter.drawPoint(QPointF(middle, box.bottom() - 2.2))


def _ban(painter: QPainter, box: QRectF, colour: QColor) -> None:
    _ring(painter, box, colour)
    painter.setPen(QPen(colour, 1.5))
    inner = box.adjusted(2.6, 2.6, -2.6, -2.6)
    painter.drawLine(inner.topLeft(), inner.bottomRight())


MARKS: dict[str, Mark] = {
    "dot": _dot,
    "ring": _ring,
    "triangle": _triangle,
    "diamond": _diamond,
    "cross": _cross,
    "check": _check,
    "pause": _pause,
    "square": _square,
    "alert": _alert,
    "ban": _ban,
}


def blank(width: int, height: int, ratio: float) -> tuple[QPixmap, QPainter, QRectF]:
    """A see-through picture with two pixels of room around the box, and a painter that the caller ends."""
    picture = QPixmap(round((width + 4) * ratio), round((height + 4) * ratio))
    picture.setDevicePixelRatio(ratio)
    picture.fill(Qt.GlobalColor.transparent)
    return picture, QPainter(picture), QRectF(2, 2, width, height)
