"""Shapes, bars, chips and small charts as paint functions: state is never colour alone, always shape and word."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPainterPath, QPen, QPixmap, QTextLayout, QTextOption

from console.gui.theme import fonts
from console.gui.theme.icons import icon_pixmap
from console.gui.theme.tokens import Ink
from console.panic.marks import blank

_LEFT = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine)
_RIGHT = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine)


def draw_text(painter: QPainter, box: QRectF, text: str, font: QFont, colour: str, *, right: bool = False) -> str:
    """One elided line, vertically centred; returns what was painted. ``text`` must have passed safe_text."""
    shown = _elided(text, font, int(box.width()))
    painter.setFont(font)
    painter.setPen(pen_colour(colour))
    painter.drawText(box, _RIGHT if right else _LEFT, shown)
    return shown


@lru_cache(maxsize=2048)
def lines_of(text: str, font: QFont, width: int, most: int) -> tuple[str, ...]:
    """The text in lines of so many pixels, ``most`` at most: the last one holds all that is left, to be elided."""
    layout, option = QTextLayout(text, font), QTextOption()
    option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
    layout.setTextOption(option)
    layout.beginLayout()
    starts: list[int] = []
    while len(starts) < most and (line := layout.createLine()).isValid():
        line.setLineWidth(max(20, width))
        starts.append(2 * line.textStart())
    layout.endLayout()
    units = text.encode("utf-16-le", "surrogatepass")  # Qt counts in units of UTF-16
    ends = [*starts[1:], len(units)]
    return tuple(units[start:end].decode("utf-16-le", "surrogatepass").strip() for start, end in zip(starts, ends, strict=True)) or ("",)


@lru_cache(maxsize=256)
def pen_colour(name: str) -> QColor:
    """Return a cached colour for a pen. Callers must not change it."""
    return QColor(name)


@lru_cache(maxsize=64)
def faint(colour: str) -> str:
    """Return the colour at a fifth of its strength, for the area under the line of a small chart."""
    found = QColor(colour)
    found.setAlphaF(0.2)
    return found.name(QColor.NameFormat.HexArgb)


_SLACK = 2.0
"""Pixels that pairs of letters may take more, or less, than the letters by themselves."""


@lru_cache(maxsize=8192)
def _elided(text: str, font: QFont, width: int) -> str:
    if not (text.isascii() and text.isprintable()):
        return _measured(text, font, width)
    # Laying a text out to know its width costs as much as painting it; most of what is shown are letters whose widths are known.
    wide = _advances(font)
    taken = sum(map(wide.__getitem__, text))
    if taken + _SLACK <= width:
        return text
    if taken <= width + _SLACK:
        return _measured(text, font, width)
    room, taken = width - wide["…"] - _SLACK, 0.0
    for at, letter in enumerate(text):
        taken += wide[letter]
        if taken > room:
            return f"{text[:at]}…"
    return text


def _measured(text: str, font: QFont, width: int) -> str:
    """The text where its width in whole pixels fits: that is what a place for it was measured by, and Qt elides for a part of a pixel."""
    metrics = fonts.metrics(font)
    return text if metrics.horizontalAdvance(text) <= width else metrics.elidedText(text, Qt.TextElideMode.ElideRight, width)


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
    picture, painter, box = blank(width, height, ratio)
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
