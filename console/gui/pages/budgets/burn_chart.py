"""Today's burn: what was, solid; what is expected, dashed with a band; the moment the day's cap is reached. In the painter alone."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QWidget

from console.api.budgets import DayBurn
from console.gui.pages.budgets.axis import STEPS, draw_axis, draw_note, finite, round_step
from console.gui.pages.budgets.words import hour_minute
from console.gui.theme import fonts
from console.gui.theme.tokens import ink
from console.gui.widgets.marks import draw_text
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.words import usd

_SPIKE = 4.0
"""The axis reaches so many times the highest of what was and what is expected; a wilder band is cut at its edge."""
_MOST = 400
"""Slices that are drawn: a day of fifteen minutes has 100 at most."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The chart's numbers, checked: times in seconds of the epoch, rates in USD an hour."""

    since: float
    until: float
    now: float
    step_s: float
    past: tuple[float, ...]
    middle: float | None
    low: float
    high: float
    cap_at: float | None

    @property
    def top(self) -> float:
        """The highest that has to fit."""
        solid = max((*self.past, self.middle or 0.0), default=0.0)
        return min(max(solid, self.high), solid * _SPIKE) if solid > 0 else self.high


def shape_of(burn: DayBurn, now: float, cap_at: float | None) -> Shape:
    """Whatever came, as something that can be drawn. A day may have 23 hours, or 25."""
    since = burn.since if math.isfinite(burn.since) and 0 < burn.since < 2**40 else now - now % 86400
    until = _next_midnight(since)
    step = burn.slice_s if math.isfinite(burn.slice_s) and burn.slice_s >= 60 else 900.0
    middle, low, high = burn.projected_usd_per_h, burn.low_usd_per_h, burn.high_usd_per_h
    known = middle is not None and math.isfinite(middle) and middle >= 0
    line = float(middle) if known and middle is not None else None
    bottom = min(finite([low or 0.0])[0], line or 0.0)
    top = max(finite([high or 0.0])[0], line or 0.0)
    shown_cap = cap_at if cap_at is not None and since <= cap_at <= until else None
    return Shape(
        since,
        until,
        min(max(now, since), until),
        step,
        tuple(finite(burn.usd_per_h[:_MOST])),
        line,
        bottom if known else 0.0,
        top,
        shown_cap,
    )


def _next_midnight(since: float) -> float:
    there = time.localtime(since)
    return time.mktime((there.tm_year, there.tm_mon, there.tm_mday + 1, 0, 0, 0, 0, 0, -1))


class BurnChart(QWidget):
    """Title, chart, hours."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shape: Shape | None = None
        self._note = "Nothing has been read yet."
        self.setMinimumHeight(110)

    def say(self, burn: DayBurn, now: float, cap_at: float | None) -> None:
        """Another day, or a later moment of it."""
        self._shape = shape_of(burn, now, cap_at)
        self._note = burn.note
        last = self._shape.past[-1] if self._shape.past else 0.0
        words = [f"Burn today, now {usd(last)} an hour, highest {usd(max(self._shape.past, default=0.0))}"]
        if self._shape.middle is not None:
            words.append(f"projected {usd(self._shape.middle)}, between {usd(self._shape.low)} and {usd(self._shape.high)}")
        if self._shape.cap_at is not None:
            words.append(f"the day's limit is reached at {hour_minute(self._shape.cap_at)}")
        self.setAccessibleName(safe_text("; ".join([*words, burn.note]), 500))
        self.update()

    def fail(self, why: str) -> None:
        """It could not be read."""
        self._shape, self._note = None, why
        self.setAccessibleName(safe_text(f"Burn today: {why}", 500))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        width = self.width()
        draw_text(painter, QRectF(16, 8, 240, 20), "Burn, 24 h of today", fonts.ui(13, fonts.SEMIBOLD), colours.text)
        draw_text(painter, QRectF(width - 216, 8, 200, 20), "$ an hour · all trees", fonts.ui(11), colours.text2, right=True)
        below = draw_note(painter, 16, width - 32, self._note, colours)
        box = QRectF(50, 37 + below, width - 71, max(40.0, self.height() - 66 - below))
        shape = self._shape
        draw_axis(painter, box, round_step(shape.top if shape is not None else 0.0), colours)
        if shape is not None:
            self._paint_hours(painter, box, shape)
            self._paint_past(painter, box, shape)
            self._paint_ahead(painter, box, shape)
        painter.end()

    def _x(self, box: QRectF, shape: Shape, at: float) -> float:
        return box.x() + box.width() * (at - shape.since) / max(1.0, shape.until - shape.since)

    def _y(self, box: QRectF, shape: Shape, value: float) -> float:
        top = round_step(shape.top) * STEPS
        return box.bottom() - box.height() * min(1.0, value / top)

    def _paint_hours(self, painter: QPainter, box: QRectF, shape: Shape) -> None:
        for part in range(5):
            at = shape.since + (shape.until - shape.since) * part / 4
            x = self._x(box, shape, at)
            words = "24:00" if part == 4 else hour_minute(at)
            left = box.x() - 2 if part == 0 else x - 44 if part == 4 else x - 22
            draw_text(painter, QRectF(left, box.bottom() + 5, 46, 16), words, fonts.ui(10), ink().text2, right=part == 4)

    def _paint_past(self, painter: QPainter, box: QRectF, shape: Shape) -> None:
        colours = ink()
        points = []
        for number, value in enumerate(shape.past):
            at = min(shape.now, shape.since + (number + 0.5) * shape.step_s)
            points.append(QPointF(self._x(box, shape, at), self._y(box, shape, value)))
        x_now = self._x(box, shape, shape.now)
        if points:
            points = [QPointF(box.x(), points[0].y()), *points, QPointF(x_now, points[-1].y())]
            fill = QColor(colours.accent)
            fill.setAlphaF(0.16)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(fill)
            painter.drawPolygon(QPolygonF([QPointF(box.x(), box.bottom()), *points, QPointF(x_now, box.bottom())]))
            painter.setPen(QPen(QColor(colours.accent), 1.6))
            painter.drawPolyline(points)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.fillRect(QRectF(round(x_now), box.y(), 1, box.height()), QColor(colours.line2))
        if shape.past:
            words = QRectF(x_now - 46, box.y() + 2, 40, 16) if x_now - box.x() > 50 else QRectF(x_now + 6, box.y() + 2, 40, 16)
            right = x_now - box.x() > 50
            if shape.cap_at is not None and self._cap_words(box, shape, shape.cap_at)[0].intersects(words):
                return  # the limit's time matters more
            draw_text(painter, words, hour_minute(shape.now), fonts.ui(11), colours.text2, right=right)

    def _paint_ahead(self, painter: QPainter, box: QRectF, shape: Shape) -> None:
        colours = ink()
        if shape.middle is not None and shape.now < shape.until:
            start = QPointF(self._x(box, shape, shape.now), self._y(box, shape, shape.middle))
            end_low = QPointF(box.right(), self._y(box, shape, shape.low))
            end_high = QPointF(box.right(), self._y(box, shape, shape.high))
            band = QColor(colours.accent)
            band.setAlphaF(0.12)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(band)
            painter.drawPolygon(QPolygonF([start, end_high, end_low]))
            pen = QPen(QColor(colours.accent), 1.6, Qt.PenStyle.CustomDashLine)
            pen.setDashPattern([4, 2.5])
            painter.setPen(pen)
            painter.drawLine(start, QPointF(box.right(), start.y()))
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
            if box.right() - start.x() > 70:
                above = QRectF(start.x() + 8, max(box.y(), start.y() - 19), 62, 16)
                draw_text(painter, above, "projected", fonts.ui(11), colours.text)
        if shape.cap_at is not None:
            self._paint_cap(painter, box, shape, shape.cap_at)

    def _paint_cap(self, painter: QPainter, box: QRectF, shape: Shape, at: float) -> None:
        colours = ink()
        x = self._x(box, shape, at)
        pen = QPen(QColor(colours.warn), 1.4, Qt.PenStyle.CustomDashLine)
        pen.setDashPattern([3, 2.5])
        painter.setPen(pen)
        painter.drawLine(QPointF(x, box.y()), QPointF(x, box.bottom()))
        words, said = self._cap_words(box, shape, at)
        draw_text(painter, words, said, fonts.ui(11, fonts.SEMIBOLD), colours.warn)

    def _cap_words(self, box: QRectF, shape: Shape, at: float) -> tuple[QRectF, str]:
        """(where the words at the limit's line stand, the words): right of it where there is room."""
        words, x = f"{hour_minute(at)} day limit", self._x(box, shape, at)
        wide = fonts.metrics(fonts.ui(11, fonts.SEMIBOLD)).horizontalAdvance(words) + 4
        left = x + 6 if x + 6 + wide <= box.right() + 4 else x - 6 - wide
        return QRectF(left, box.y() + 2, wide, 16), words
