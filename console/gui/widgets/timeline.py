"""A painted timeline: a strip from left to right, and below it the moments from the newest down. Never colour alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QRectF, Qt
from PySide6.QtGui import QColor, QHelpEvent, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from console.gui.theme import fonts
from console.gui.theme.tokens import Ink, ink
from console.gui.widgets.marks import draw_text
from console.gui.widgets.safe_text import safe_text, tooltip
from console.panic.marks import draw_mark

STRIP = 18
SCALE = 16
LINE = 36
SHOWN = 6
_LEAST = 8.0
"""Pixels of the shortest part, so that a short time is not lost."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the strip. ``kind``: open (amber, hatched), middle, closed (outlined)."""

    share: float
    label: str
    kind: str
    tip: str


@dataclass(frozen=True, slots=True)
class Line:
    """One moment: a mark on the rail, a title with its time, words and a note below. Text is hostile."""

    when: str
    title: str
    words: str
    shape: str
    role: str
    bad: bool = False
    tip: str = ""


class Timeline(QWidget):
    """Grows with its lines; what is beyond SHOWN is counted."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._parts: tuple[Part, ...] = ()
        self._lines: tuple[Line, ...] = ()
        self._ends = ("", "")
        self._more = ""
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(0)

    def say(self, parts: Sequence[Part], ends: tuple[str, str], lines: Sequence[Line], more: str, spoken: str) -> None:
        """``ends``: what stands below the strip at the left and the right; ``more``: what is not shown, in words."""
        self._parts, self._ends = tuple(parts), ends
        self._lines, self._more = tuple(lines[:SHOWN]), more
        self.setAccessibleName(safe_text(spoken, 1000))
        self.setFixedHeight((STRIP + SCALE + 8 if parts else 0) + len(self._lines) * LINE + (20 if more else 0))
        self.update()

    def _boxes(self) -> list[QRectF]:
        """Where each part of the strip lies; short ones are as wide as can be seen."""
        least = min(_LEAST, self.width() / max(1, len(self._parts)))
        widths = [max(least, part.share * self.width()) for part in self._parts]
        scale = self.width() / sum(widths) if widths and sum(widths) > 0 else 1.0
        boxes, x = [], 0.0
        for width in widths:
            boxes.append(QRectF(x, 0, width * scale, STRIP))
            x += width * scale
        return boxes

    def tip_at(self, x: float, y: float) -> str:
        """What stands at a point, in full."""
        if self._parts and y < STRIP + SCALE:
            return next((p.tip for p, box in zip(self._parts, self._boxes(), strict=True) if box.left() <= x <= box.right()), "")
        number = int((y - self._top()) // LINE)
        return self._lines[number].tip if 0 <= number < len(self._lines) else ""

    def _top(self) -> float:
        return STRIP + SCALE + 8 if self._parts else 0.0

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            QToolTip.showText(event.globalPos(), tooltip(self.tip_at(event.pos().x(), event.pos().y())), self)
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        for part, box in zip(self._parts, self._boxes(), strict=True):
            _paint_part(painter, part, box.adjusted(0, 0, -1, 0), colours)
        if self._parts:
            half = self.width() / 2
            draw_text(painter, QRectF(0, STRIP + 1, half, SCALE), self._ends[0], fonts.ui(10), colours.text3)
            draw_text(painter, QRectF(half, STRIP + 1, half, SCALE), self._ends[1], fonts.ui(10), colours.text3, right=True)
        self._paint_lines(painter, colours)
        painter.end()

    def _paint_lines(self, painter: QPainter, colours: Ink) -> None:
        top = self._top()
        if len(self._lines) > 1:
            painter.fillRect(QRectF(5, top + 9, 1, (len(self._lines) - 1) * LINE), QColor(colours.line2))
        for number, line in enumerate(self._lines):
            y = top + number * LINE
            painter.fillRect(QRectF(0, y + 2, 12, 14), QColor(colours.bg1))
            draw_mark(painter, line.shape, QRectF(1, y + 4, 9, 9), getattr(colours, line.role))
            when = fonts.metrics(fonts.mono(11)).horizontalAdvance(line.when) + 2
            face = fonts.ui(12, fonts.SEMIBOLD if line.bad else fonts.MEDIUM)
            colour = colours.warn if line.role == "warn" else colours.text
            draw_text(painter, QRectF(21, y, self.width() - 29 - when, 18), safe_text(line.title, 80), face, colour)
            draw_text(painter, QRectF(self.width() - when, y, when, 18), line.when, fonts.mono(11), colours.text3, right=True)
            words = colours.warn if line.bad else colours.text2
            draw_text(painter, QRectF(21, y + 16, self.width() - 21, 16), safe_text(line.words, 200), fonts.ui(11), words)
        if self._more:
            box = QRectF(21, top + len(self._lines) * LINE, self.width() - 21, 18)
            draw_text(painter, box, self._more, fonts.ui(11), colours.text3)


def _paint_part(painter: QPainter, part: Part, box: QRectF, colours: Ink) -> None:
    edge, fill, text = {
        "open": (colours.warn, colours.warnbg, colours.warn),
        "middle": (colours.ok, colours.bg2, colours.ok),
    }.get(part.kind, (colours.line2, colours.track, colours.text2))
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(QColor(edge), 1))
    painter.setBrush(QColor(fill))
    inner = box.adjusted(0.5, 0.5, -0.5, -0.5)
    painter.drawRoundedRect(inner, 3, 3)
    if part.kind != "middle":
        _hatch(painter, inner, QColor(edge), rising=part.kind == "open")
    painter.restore()
    face = fonts.ui(10, fonts.MEDIUM)
    for label in (part.label, part.label[:1]):  # one letter where there is no room for the word
        width = fonts.metrics(face).horizontalAdvance(label)
        if width + 6 <= box.width():
            left = box.x() + min(5.0, (box.width() - width) / 2)
            painter.fillRect(QRectF(left - 2, box.y() + 3, width + 4, box.height() - 6), QColor(fill))
            draw_text(painter, QRectF(left, box.y(), width + 2, box.height()), label, face, text)
            return


def _hatch(painter: QPainter, box: QRectF, colour: QColor, *, rising: bool) -> None:
    """Strokes that tell two grounds apart where colours do not: rising for open, level for closed."""
    clip = QPainterPath()
    clip.addRoundedRect(box, 3, 3)
    painter.setClipPath(clip, Qt.ClipOperation.IntersectClip)
    colour.setAlphaF(0.35)
    painter.setPen(QPen(colour, 1))
    if rising:
        x = box.x() - box.height()
        while x < box.right():
            painter.drawLine(int(x), int(box.bottom()), int(x + box.height()), int(box.y()))
            x += 5
        return
    y = box.y() + 4
    while y < box.bottom():
        painter.drawLine(int(box.x()), int(y), int(box.right()), int(y))
        y += 4
