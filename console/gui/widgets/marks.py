"""Shapes, bars, chips and small charts as paint functions: state is never colour alone, always shape and word."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPainterPath, QPen, QPixmap, QPolygonF

from console.gui.theme import fonts
from console.gui.theme.icons import icon_pixmap
from console.gui.theme.tokens import Ink

Mark = Callable[[QPainter, QRectF, QColor], None]


def draw_mark(painter: QPainter, kind: str, box: QRectF, colour: str) -> None:
    """One of the shapes of MARKS in ``box``; ValueError-free: an unknown kind paints a ring."""
    picture = _mark(kind, box.width(), box.height(), box.x() % 1, box.y() % 1, colour, painter.device().devicePixelRatioF())
    painter.drawPixmap(QPointF(math.floor(box.x()) - 2, math.floor(box.y()) - 2), picture)


@lru_cache(maxsize=1024)
def _mark(kind: str, width: float, height: float, dx: float, dy: float, colour: str, ratio: float) -> QPixmap:
    picture, painter, _ = _blank(math.ceil(width + dx), math.ceil(height + dy), ratio)
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


_LEFT = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine)
_RIGHT = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine)


def draw_text(painter: QPainter, box: QRectF, text: str, font: QFont, colour: str, *, right: bool = False) -> str:
    """One elided line, vertically centred; returns what was painted. ``text`` must have passed safe_text."""
    shown = _elided(text, font, int(box.width()))
    painter.setFont(font)
    painter.setPen(pen_colour(colour))
    painter.drawText(box, _RIGHT if right else _LEFT, shown)
    return shown


@lru_cache(maxsize=256)
def pen_colour(name: str) -> QColor:
    """For a pen: nobody changes it."""
    return QColor(name)


@lru_cache(maxsize=64)
def faint(colour: str) -> str:
    """A fifth of it: what lies under the line of a small chart."""
    found = QColor(colour)
    found.setAlphaF(0.2)
    return found.name(QColor.NameFormat.HexArgb)


_SLACK = 2.0
"""Pixels that pairs of letters may take more, or less, than the letters by themselves."""


@lru_cache(maxsize=8192)
def _elided(text: str, font: QFont, width: int) -> str:
    if not (text.isascii() and text.isprintable()):
        return fonts.metrics(font).elidedText(text, Qt.TextElideMode.ElideRight, width)
    # Laying a text out to know its width costs as much as painting it; most of what is shown are letters whose widths are known.
    wide = _advances(font)
    taken = sum(map(wide.__getitem__, text))
    if taken + _SLACK <= width:
        return text
    if taken <= width + _SLACK:
        return fonts.metrics(font).elidedText(text, Qt.TextElideMode.ElideRight, width)
    room, taken = width - wide["…"] - _SLACK, 0.0
    for at, letter in enumerate(text):
        taken += wide[letter]
        if taken > room:
            return f"{text[:at]}…"
    return text


@lru_cache(maxsize=64)
def _advances(font: QFont) -> dict[str, float]:
    """Pixels that each printable ASCII character, and the sign of what was left out, takes by itself."""
    seen = QFontMetricsF(font)
    return {char: seen.horizontalAdvance(char) for char in (*map(chr, range(32, 127)), "…")}


def share_colours(share: float, ink: Ink) -> tuple[str, str]:
    """(fill, text) of a used share: quiet, amber from 75 %, red from 90 %."""
    if not math.isfinite(share) or share >= 0.9:
        return ink.dangerfill, ink.danger
    if share >= 0.75:
        return ink.warnfill, ink.warn
    return ink.bar, ink.text2


def draw_gauge(painter: QPainter, box: QRectF, share: float, ink: Ink) -> None:
    """A bar with ticks at 75 and 90, hatched from 75 %. Kept as a picture: a table shows the same few hundred again and again."""
    fill, _ = share_colours(share, ink)
    used = min(1.0, max(0.0, share)) if math.isfinite(share) else 1.0
    hatched = share >= 0.75 or not math.isfinite(share)
    ratio = painter.device().devicePixelRatioF()
    size = (round(box.width()), round(box.height()))
    picture = _gauge(*size, round(size[0] * used * 2), hatched, fill, ink.track, ink.bg1, ink.line2, ratio)
    painter.drawPixmap(QPointF(box.x() - 2, box.y() - 2), picture)


@lru_cache(maxsize=1024)
def _gauge(width: int, height: int, halves: int, hatched: bool, fill: str, track: str, ground: str, line: str, ratio: float) -> QPixmap:
    """``halves``: how far it is filled, in half pixels."""
    picture, painter, box = _blank(width, height, ratio)
    radius = height / 2
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(track))
    painter.drawRoundedRect(box, radius, radius)
    if halves > 0:
        part = QRectF(box.x(), box.y(), max(float(height), halves / 2), height)
        painter.setBrush(QColor(fill))
        painter.drawRoundedRect(part, radius, radius)
        if hatched:
            _stripes(painter, part, radius, QColor(ground))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    painter.setPen(QPen(QColor(line), 1))
    for tick in (0.75, 0.9):
        x = round(box.x() + width * tick)
        painter.drawLine(QPointF(x, box.y() - 1), QPointF(x, box.bottom()))
    painter.end()
    return picture


def _blank(width: int, height: int, ratio: float) -> tuple[QPixmap, QPainter, QRectF]:
    """A see-through picture with two pixels of room around the box, and a painter that the caller ends."""
    picture = QPixmap(round((width + 4) * ratio), round((height + 4) * ratio))
    picture.setDevicePixelRatio(ratio)
    picture.fill(Qt.GlobalColor.transparent)
    return picture, QPainter(picture), QRectF(2, 2, width, height)


def _stripes(painter: QPainter, box: QRectF, radius: float, colour: QColor) -> None:
    painter.save()
    clip = QPainterPath()
    clip.addRoundedRect(box, radius, radius)
    painter.setClipPath(clip)
    colour.setAlphaF(0.45)
    painter.setPen(QPen(colour, 1.4))
    x = box.x() - box.height()
    while x < box.right():
        painter.drawLine(QPointF(x, box.bottom()), QPointF(x + box.height(), box.y()))
        x += 4
    painter.restore()


def draw_sparkline(painter: QPainter, box: QRectF, values: Sequence[float], line: str, fill: str) -> None:
    """Values oldest first, scaled to their own largest; nothing for fewer than two.

    Painted where it stands: nearly every row of a table has a curve of its own, which changes with every number. A line of one pixel,
    over an edge that it covers, costs a third of a wider one over a soft edge.
    """
    if len(values) < 2:
        return
    left, bottom = box.x(), box.bottom()
    heights = [v if math.isfinite(v) and v > 0 else 0.0 for v in values]
    step, scale = box.width() / (len(heights) - 1), box.height() / (max(heights) or 1.0)
    shape = [QPointF(left + at * step, bottom - height * scale) for at, height in enumerate(heights)]
    soft = painter.testRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(pen_colour(fill))
    painter.drawPolygon([QPointF(left, bottom), *shape, QPointF(box.right(), bottom)])
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(pen_colour(line))
    painter.drawPolyline(shape)
    painter.setBrush(pen_colour(line))
    painter.drawEllipse(shape[-1], 1.6, 1.6)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=soft)


CHIP_FONT = (11, fonts.MEDIUM)


def chip_width(text: str, has_icon: bool, height: int = 20) -> int:
    """Width in pixels of the chip ``draw_chip`` paints."""
    return fonts.metrics(fonts.ui(*CHIP_FONT)).horizontalAdvance(text) + (12 if height <= 20 else 16) + (16 if has_icon else 0)


def draw_chip(painter: QPainter, box: QRectF, text: str, icon: str, kind: str, ink: Ink) -> None:
    """A chip of 20 or 22 pixels: kind is plain, warn, danger, ok or accent."""
    edge, fill, colour = chip_colours(kind, ink)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(QColor(edge), 1))
    painter.setBrush(QColor(fill))
    painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)
    painter.restore()
    x = box.x() + (6 if box.height() <= 20 else 8)
    if icon:
        painter.drawPixmap(QPointF(x, box.y() + (box.height() - 12) / 2), icon_pixmap(icon, colour, 12))
        x += 16
    draw_text(painter, QRectF(x, box.y(), box.right() - x - 2, box.height()), text, fonts.ui(*CHIP_FONT), colour)


def chip_colours(kind: str, ink: Ink) -> tuple[str, str, str]:
    """(edge, fill, text)."""
    if kind == "warn":
        return ink.warn, ink.warnbg, ink.warn
    if kind == "danger":
        return ink.danger, ink.dangerbg, ink.danger
    if kind == "accent":
        return ink.accent, ink.sel, ink.accent
    if kind == "ok":
        return ink.ok, ink.bg2, ink.ok
    return ink.line2, ink.bg2, ink.text2
