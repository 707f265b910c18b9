"""Small painted pieces of panes and cards: chips, lines of facts, gauges with words, a chart, rules and cards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QContextMenuEvent, QFont, QHelpEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QFrame, QSizePolicy, QToolTip, QVBoxLayout, QWidget

from console.gui.theme import fonts
from console.gui.theme.tokens import ink
from console.gui.widgets.marks import chip_width, draw_chip, draw_gauge, draw_text, lines_of, share_colours
from console.gui.widgets.safe_text import safe_text, tooltip
from console.gui.widgets.text import offer_copy
from console.gui.widgets.words import share_words, usd
from console.panic.marks import draw_mark


@dataclass(frozen=True, slots=True)
class ChipSpec:
    """kind: plain, warn, danger, ok, accent."""

    text: str
    icon: str = ""
    kind: str = "plain"


class Chips(QWidget):
    """A row of chips, 22 high; what does not fit is left out and stays in the accessible name."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._chips: tuple[ChipSpec, ...] = ()
        self.setFixedHeight(22)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def say(self, chips: Sequence[ChipSpec]) -> None:
        new = tuple(ChipSpec(safe_text(c.text, 40), c.icon, c.kind) for c in chips)
        if new == self._chips:
            return
        self._chips = new
        self.setAccessibleName(", ".join(c.text for c in self._chips))
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(sum(chip_width(c.text, bool(c.icon), 22) + 6 for c in self._chips), 22)

    def minimumSizeHint(self) -> QSize:
        return QSize(20, 22)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        x = 0.0
        for chip in self._chips:
            width = chip_width(chip.text, bool(chip.icon), 22)
            if x + width > self.width() and x:
                break
            draw_chip(painter, QRectF(x, 0, min(width, self.width() - x), 22), chip.text, chip.icon, chip.kind, ink())
            x += width + 6
        painter.end()


@dataclass(frozen=True, slots=True)
class Fact:
    """One line: a mark and words at the left, words at the right; roles name colours of the theme."""

    left: str
    right: str = ""
    mark: str = ""
    mark_role: str = "text2"
    left_role: str = "text"
    right_role: str = "text2"
    mono: bool = False
    right_mono: bool = False
    indent: bool = False
    """Begins below the words of a line with a mark."""


_MOST = 4
"""Lines of one fact that has nothing at the right; the tooltip has all of it."""
_NEXT = 16
_HANG = 10
"""Pixels by which the further lines of a fact stand in: what an agent named itself begins no line that looks like a fact."""


class Facts(QWidget):
    """Lines of facts. ``split`` fixes where the second column begins, left-aligned; else it ends at the right.

    A fact with words at the left alone has as many lines as it needs, up to four.
    """

    def __init__(self, height: int = 22, *, split: int = 0, ruled: bool = False, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._height, self._split, self._ruled = height, split, ruled
        self._facts: tuple[Fact, ...] = ()
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def say(self, facts: Sequence[Fact]) -> None:
        new = tuple(facts)
        if new == self._facts:
            return
        self._facts = new
        self.setAccessibleName("; ".join(f"{safe_text(f.left)} {safe_text(f.right)}".strip() for f in new))
        self.updateGeometry()
        self.update()

    def _lines(self, fact: Fact, width: int) -> tuple[str, ...]:
        left = safe_text(fact.left)
        return (left,) if fact.right or self._split else lines_of(left, _left_face(fact), int(width - _inset(fact) - _HANG), _MOST)

    def _boxes(self, width: int) -> list[QRectF]:
        """Where each fact stands."""
        boxes, y = [], 0.0
        for fact in self._facts:
            boxes.append(QRectF(0, y, width, self._height + (len(self._lines(fact, width)) - 1) * _NEXT))
            y = boxes[-1].bottom()
        return boxes

    def heightForWidth(self, width: int) -> int:
        return int(sum(box.height() for box in self._boxes(width)))

    def sizeHint(self) -> QSize:
        return QSize(20, self.heightForWidth(self.width()))

    def minimumSizeHint(self) -> QSize:
        return QSize(20, 0)

    def _words_at(self, y: int) -> str:
        fact = next((f for f, box in zip(self._facts, self._boxes(self.width()), strict=True) if box.top() <= y < box.bottom()), None)
        return safe_text(f"{fact.left} {fact.right}".strip(), 2000) if fact else ""

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        offer_copy(self, self._words_at(event.pos().y()), event.globalPos())

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            words = self._words_at(event.pos().y())
            QToolTip.showText(event.globalPos(), tooltip(words) if words else "", self)
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        for fact, box in zip(self._facts, self._boxes(self.width()), strict=True):
            if self._ruled:
                painter.fillRect(QRectF(0, box.y(), box.width(), 1), QColor(ink().line))
            self._paint(painter, fact, QRectF(0, box.y(), box.width(), self._height))
        painter.end()

    def _paint(self, painter: QPainter, fact: Fact, box: QRectF) -> None:
        """``box`` holds its first line."""
        colours = ink()
        if fact.mark:
            draw_mark(painter, fact.mark, QRectF(1, box.center().y() - 5, 10, 10), getattr(colours, fact.mark_role))
        x, left, face = _inset(fact), getattr(colours, fact.left_role), _left_face(fact)
        first, *others = self._lines(fact, int(box.width()))
        right = safe_text(fact.right)
        right_face = fonts.mono(11) if fact.right_mono else fonts.ui(12, fonts.MEDIUM if fact.right_role != "text2" else fonts.REGULAR)
        if self._split:
            room, begins, width = self._split - x - 6, float(self._split), box.width() - self._split
        else:
            width = min(fonts.metrics(right_face).horizontalAdvance(right) + 2, box.width() * 0.65) if right else 0.0
            room, begins = box.width() - x - width - (8 if right else 0), box.width() - width
        draw_text(painter, QRectF(x, box.y(), room, self._height), first, face, left)
        for number, words in enumerate(others, 1):
            draw_text(painter, QRectF(x + _HANG, box.y() + number * _NEXT, room - _HANG, self._height), words, face, left)
        if right:
            at = QRectF(begins, box.y(), width, self._height)
            draw_text(painter, at, right, right_face, getattr(colours, fact.right_role), right=not self._split)


def _inset(fact: Fact) -> float:
    return 21.0 if fact.mark or fact.indent else 0.0


def _left_face(fact: Fact) -> QFont:
    return fonts.mono(12) if fact.mono else fonts.ui(12)


class GaugeLine(QWidget):
    """A limit: title and value over a bar with ticks, a line below. 54 high."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title = self._value = self._of = self._note = ""
        self._share = 0.0
        self.setFixedHeight(54)

    def say(self, title: str, value: str, of: str, share: float, note: str) -> None:
        new = (title, value, of, share, safe_text(note))
        if new == (self._title, self._value, self._of, self._share, self._note):
            return
        self._title, self._value, self._of, self._share, self._note = new
        self.setAccessibleName(f"{title}: {value} {of}, {share_words(self._share)} used. {self._note}")
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        width = self.width()
        of = fonts.metrics(fonts.ui(12)).horizontalAdvance(self._of)
        draw_text(painter, QRectF(0, 0, width * 0.5, 18), self._title, fonts.ui(12), colours.text2)
        draw_text(painter, QRectF(width - of - 2, 0, of + 2, 18), self._of, fonts.ui(12), colours.text2, right=True)
        draw_text(painter, QRectF(0, 0, width - of - 8, 18), self._value, fonts.ui(13, fonts.SEMIBOLD), colours.text, right=True)
        draw_gauge(painter, QRectF(0, 22, width, 8), self._share, colours)
        _, colour = share_colours(self._share, colours)
        draw_text(painter, QRectF(0, 33, width - 50, 16), self._note, fonts.ui(11), colours.text2)
        draw_text(painter, QRectF(width - 50, 33, 50, 16), share_words(self._share), fonts.ui(12, fonts.MEDIUM), colour, right=True)
        painter.end()


class Gauges(QWidget):
    """Limits, one below the other."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.lines: list[GaugeLine] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(4)

    def say(self, limits: Sequence[tuple[str, str, str, float, str]]) -> None:
        """Of each what ``GaugeLine.say`` takes."""
        while len(self.lines) < len(limits):
            self.lines.append(GaugeLine())
            self._column.addWidget(self.lines[-1])
        for number, line in enumerate(self.lines):
            line.setVisible(number < len(limits))
            if number < len(limits):
                line.say(*limits[number])


class CostChart(QWidget):
    """Cost per minute over the last hour, in the painter: no chart library."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._values: list[float] = []
        self.setFixedHeight(108)

    def say(self, values: Sequence[float]) -> None:
        """USD a minute, oldest first."""
        self._values = [v if math.isfinite(v) and v > 0 else 0.0 for v in values][-240:]
        top = max(self._values, default=0.0)
        self.setAccessibleName(f"Cost per minute, highest {usd(top)}, last {usd(self._values[-1] if self._values else 0)}")
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        top = _round_up(max(self._values, default=0.0))
        box = QRectF(34, 8, self.width() - 36, 78)
        for part in (0.0, 0.5, 1.0):
            y = box.bottom() - part * box.height()
            painter.fillRect(QRectF(box.x(), y, box.width(), 1), QColor(colours.line2 if part == 0 else colours.line))
            words = f"{'$' if part == 1.0 else ''}{top * part:g}"  # 1, 2 or 5 and half of them: few digits
            draw_text(painter, QRectF(0, y - 8, 29, 16), words, fonts.ui(10), colours.text3, right=True)
        draw_text(
            painter,
            QRectF(box.x(), 90, 80, 16),
            f"−{len(self._values)} min" if self._values else "no cost yet",
            fonts.ui(10),
            colours.text3,
        )
        draw_text(painter, QRectF(box.right() - 60, 90, 60, 16), "now", fonts.ui(10), colours.text3, right=True)
        if len(self._values) > 1:
            step = box.width() / (len(self._values) - 1)
            points = [QPointF(box.x() + i * step, box.bottom() - v / top * box.height()) for i, v in enumerate(self._values)]
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            fill = QColor(colours.accent)
            fill.setAlphaF(0.14)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(fill)
            painter.drawPolygon(QPolygonF([QPointF(box.x(), box.bottom()), *points, QPointF(box.right(), box.bottom())]))
            painter.setPen(QPen(QColor(colours.accent), 1.5))
            painter.drawPolyline(points)
        painter.end()


def _round_up(value: float) -> float:
    """The next of 1, 2, 5 times a power of ten; 0.01 at least."""
    if value <= 0.01:
        return 0.01
    power = float(10.0 ** math.floor(math.log10(value)))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value * 0.999)


class Rule(QWidget):
    """A line across, with room above and below."""

    def __init__(self, room: int = 10, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(2 * room + 1)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(QRectF(0, self.height() // 2, self.width(), 1), QColor(ink().line))
        painter.end()


class Card(QFrame):
    """A box with round corners; ``kind`` warn gives it the amber edge and ground."""

    def __init__(self, kind: str = "plain", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._kind = kind
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(14, 10, 14, 10)
        self.column.setSpacing(0)

    def set_kind(self, kind: str) -> None:
        self._kind = kind
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        edge, fill = {
            "warn": (colours.warn, colours.warnbg),
            "accent": (colours.accent, colours.bg2),
            "danger": (colours.danger, colours.dangerbg),
        }.get(self._kind, (colours.line2, colours.bg2))
        painter.setPen(QPen(QColor(edge), 1))
        painter.setBrush(QColor(fill))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
        painter.end()
