"""Cost by model over seven days: stacked, told apart by fill; what has no price is a dashed cap of fixed height, in no sum."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from console.api.budgets import ModelDay
from console.gui.pages.budgets.axis import STEPS, draw_axis, draw_note, round_step
from console.gui.pages.budgets.words import weekday
from console.gui.theme import fonts
from console.gui.theme.tokens import Ink, ink
from console.gui.widgets.marks import draw_text
from console.gui.widgets.safe_text import safe_text, tooltip
from console.gui.widgets.words import count, plural, usd

FILLS = ("solid", "hatched", "dark", "open")
"""The three dearest models, then all others together."""
DAYS = 7
CAP_HIGH = 9
_LINE = 22
FULL = 230
"""Lower than this it has no legend; the page shows all of it upon C."""


@dataclass(slots=True)
class Bar:
    """One day: USD by fill, and whether some of it has no price."""

    day: str
    parts: list[float] = field(default_factory=lambda: [0.0] * len(FILLS))
    unpriced: bool = False


@dataclass(slots=True)
class Stack:
    """The whole picture. ``legend``: (fill, name, figure, unpriced)."""

    bars: list[Bar] = field(default_factory=list)
    legend: list[tuple[str, str, str, bool]] = field(default_factory=list)

    @property
    def top(self) -> float:
        return max((sum(bar.parts) for bar in self.bars), default=0.0)


def _money(value: float) -> float:
    return value if math.isfinite(value) and value > 0 else 0.0


def stack_of(models: Sequence[ModelDay], today: str) -> Stack:
    """The three dearest models by name, all others together; figures of the legend are today's."""
    total: dict[str, float] = defaultdict(float)
    todays: dict[str, float] = defaultdict(float)
    for one in models:
        total[one.model] += _money(one.cost_usd)
        todays[one.model] += _money(one.cost_usd) if one.day == today else 0.0
    ranked = sorted((m for m in total if total[m] > 0), key=lambda m: (-total[m], m))
    place = {model: min(n, len(FILLS) - 1) for n, model in enumerate(ranked)}
    days = sorted({one.day for one in models} | {today})[-DAYS:]
    bars = {day: Bar(day) for day in days}
    for one in models:
        bar = bars.get(one.day)
        if bar is not None:
            bar.parts[place.get(one.model, 0)] += _money(one.cost_usd)
            bar.unpriced |= one.unpriced > 0 or one.unpriced_tokens > 0
    legend = [(FILLS[n], model, usd(todays[model]), False) for n, model in enumerate(ranked[: len(FILLS) - 1])]
    others = ranked[len(FILLS) - 1 :]
    if others:
        name = others[0] if len(others) == 1 else plural(len(others), "other model")
        legend.append((FILLS[-1], name, usd(sum(todays[m] for m in others)), False))
    return Stack(list(bars.values()), [*legend, *_unpriced(models, today)])


def _unpriced(models: Sequence[ModelDay], today: str) -> list[tuple[str, str, str, bool]]:
    without = [one for one in models if one.unpriced > 0 or one.unpriced_tokens > 0]
    if not without:
        return []
    names = sorted({one.model for one in without})
    tokens = sum(max(0, one.unpriced_tokens) for one in without if one.day == today)
    name = names[0] if len(names) == 1 else plural(len(names), "model")
    return [("dashed", name, f"{count(tokens)} tokens" if tokens else "none today", True)]


class ModelChart(QWidget):
    """Title, seven bars, legend."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._stack = Stack()
        self._today = ""
        self._note = "Nothing has been read yet."
        self._prices = ""
        self.setMinimumHeight(110)

    def say(self, models: Sequence[ModelDay], today: str, prices: str, note: str) -> None:
        """Other figures."""
        self._stack, self._today, self._prices, self._note = stack_of(models, today), today, prices, note
        if not self._stack.legend and not note:
            self._note = "No answer of a model in these seven days."
        spoken = [f"{name} {figure}{' unpriced' if bare else ''}" for _, name, figure, bare in self._stack.legend]
        self.setAccessibleName(safe_text("; ".join(["Cost by model, today", *spoken, note]), 800))
        bare = any(bare for *_, bare in self._stack.legend)
        self.setToolTip(
            tooltip("Unpriced: no price of this model is known. Its tokens are counted, its cost is in no sum.") if bare else ""
        )
        self.update()

    def of(self, room: float) -> str:
        """What the figures are of and by which prices, in the longest words there is room for."""
        measure = fonts.metrics(fonts.ui(11)).horizontalAdvance
        prices = safe_text(self._prices, 40)
        if self.height() <= FULL:
            return next((words for words in ("C: figures and subscription windows", "C: all of it") if measure(words) < room), "")
        said = [f"figures: today · prices {prices}", f"today · {prices}"] if prices else []
        return next((words for words in [*said, "figures: today"] if measure(words) < room), "")

    def fail(self, why: str) -> None:
        """It could not be read."""
        self._stack, self._note = Stack(), why
        self.setAccessibleName(safe_text(f"Cost by model: {why}", 500))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        painter.fillRect(QRectF(0, 0, 1, self.height()), QColor(colours.line))
        width = self.width()
        title = fonts.ui(13, fonts.SEMIBOLD)
        draw_text(painter, QRectF(19, 8, width - 38, 20), "Cost by model, 7 days", title, colours.text)
        left = 27 + fonts.metrics(title).horizontalAdvance("Cost by model, 7 days")
        draw_text(painter, QRectF(left, 8, width - left - 17, 20), self.of(width - left - 17), fonts.ui(11), colours.text2, right=True)
        legend = self._stack.legend if self.height() > FULL else []
        below = draw_note(painter, 19, width - 36, self._note, colours)
        taken = 74 + _LINE * len(legend) + (8 if legend else -8) + below
        box = QRectF(50, 37 + below, width - 67, max(40.0, self.height() - taken))
        draw_axis(painter, box, round_step(self._stack.top), colours)
        self._paint_bars(painter, box)
        if legend:
            top = self.height() - 9 - _LINE * len(legend)
            painter.fillRect(QRectF(19, top - 6, width - 36, 1), QColor(colours.line))
            for number, line in enumerate(legend):
                self._paint_legend(painter, QRectF(19, top + number * _LINE, width - 36, _LINE), *line)
        painter.end()

    def _paint_bars(self, painter: QPainter, box: QRectF) -> None:
        colours, bars = ink(), self._stack.bars
        if not bars:
            return
        pitch = box.width() / DAYS
        wide = min(26.0, pitch * 0.64)
        top = round_step(self._stack.top) * STEPS
        for number, bar in enumerate(bars):
            middle = box.x() + pitch * (DAYS - len(bars) + number + 0.5)
            y = box.bottom()
            for fill, value in zip(FILLS, bar.parts, strict=True):
                high = box.height() * min(1.0, value / top)
                if high >= 0.5:
                    y -= high
                    draw_fill(painter, fill, QRectF(middle - wide / 2, y, wide, high), colours)
            if bar.unpriced:
                draw_fill(painter, "dashed", QRectF(middle - wide / 2, y - CAP_HIGH - 3, wide, CAP_HIGH), colours)
            today = bar.day == self._today
            face = fonts.ui(10, fonts.SEMIBOLD if today else fonts.REGULAR)
            words = safe_text(weekday(bar.day, self._today), 12)
            room = fonts.metrics(face).horizontalAdvance(words) + 2
            draw_text(
                painter,
                QRectF(middle - room / 2, box.bottom() + 5, room + 1, 16),
                words,
                face,
                colours.text if today else colours.text2,
            )

    def _paint_legend(self, painter: QPainter, box: QRectF, fill: str, name: str, figure: str, bare: bool) -> None:
        colours = ink()
        draw_fill(painter, fill, QRectF(box.x() + 0.5, box.center().y() - 5, 11, 10), colours)
        face = fonts.ui(12)
        money = fonts.metrics(fonts.ui(12, fonts.SEMIBOLD)).horizontalAdvance(figure) + 3
        tag = fonts.metrics(fonts.ui(11, fonts.MEDIUM)).horizontalAdvance("unpriced") + 2 if bare else 0
        room = box.width() - 20 - money - (tag + 16 if bare else 8)
        shown = draw_text(painter, QRectF(box.x() + 20, box.y(), room, box.height()), safe_text(name), face, colours.text2)
        if bare:
            at = box.x() + 28 + fonts.metrics(face).horizontalAdvance(shown)
            draw_text(painter, QRectF(at, box.y(), tag, box.height()), "unpriced", fonts.ui(11, fonts.MEDIUM), colours.warn)
        role = colours.warn if bare else colours.text
        draw_text(
            painter, QRectF(box.right() - money, box.y(), money, box.height()), figure, fonts.ui(12, fonts.SEMIBOLD), role, right=True
        )


def draw_fill(painter: QPainter, fill: str, box: QRectF, ink: Ink) -> None:
    """One of the fills by which models are told apart; ``dashed``: without a price."""
    painter.save()
    if fill == "dashed":
        pen = QPen(QColor(ink.warn), 1.2, Qt.PenStyle.CustomDashLine)
        pen.setDashPattern([2.5, 2])
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5))
    elif fill == "open":
        painter.setPen(QPen(QColor(ink.text3), 1))
        painter.setBrush(QColor(ink.bg3))
        painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5))
    else:
        painter.fillRect(box, QColor({"solid": ink.accent, "hatched": ink.bar}.get(fill, ink.line2)))
        if fill == "hatched":
            painter.setClipRect(box)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            colour = QColor(ink.bg1)
            colour.setAlphaF(0.5)
            painter.setPen(QPen(colour, 1.3))
            x = box.x() - box.height()
            while x < box.right():
                painter.drawLine(QPointF(x, box.bottom()), QPointF(x + box.height(), box.y()))
                x += 5
    painter.restore()
