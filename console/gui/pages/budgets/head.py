"""The head of the Budgets page: over, above 75 %, within; spent today of the day's cap, the forecast at 24:00, the burn rate."""

from __future__ import annotations

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from console.api.budgets import BudgetTotals
from console.gui.pages.budgets.words import hour_minute, whole_usd
from console.gui.theme import fonts
from console.gui.theme.tokens import PAGE_HEADER, ink
from console.gui.widgets.marks import draw_gauge, draw_sparkline, draw_text
from console.gui.widgets.safe_text import safe_text, tooltip
from console.gui.widgets.words import cap_usd, plural, usd
from console.panic.marks import draw_mark

_BLOCK = 148
"""Least width of one figure; those that do not fit are left out, the burn rate first."""
_FIGURES_AT = 380
_WHOLE_USD = 100.0
"""From here on a forecast is shown without cents."""


def still_over(totals: BudgetTotals, halted: int) -> int:
    """Live agents over their limit; the supervisor counts those that a limit halted today with them."""
    return max(0, totals.over - halted)


def halted_words(halted: int) -> str:
    """``3 agents were halted at their limit in the last 24 h``; empty: none."""
    return f"{plural(halted, 'agent')} {'was' if halted == 1 else 'were'} halted at a limit in the last 24 h" if halted else ""


def counts(totals: BudgetTotals, halted: int = 0, *, old: bool = False) -> list[tuple[str, int, str, str]]:
    """(word, number, shape, role): state is never colour alone; old figures are never green."""
    over = still_over(totals, halted)
    return [
        ("Over", over, "diamond", "danger" if over else "text2"),
        ("Above 75%", totals.above_75, "triangle", "warn" if totals.above_75 else "text2"),
        ("Within budget", totals.within, "ring" if old else "dot", "text2" if old else "ok"),
    ]


def forecast_words(value: float | None) -> str:
    """``$11.69``, ``$412``: no less than what was spent when nothing more is."""
    if value is None:
        return "not known"
    return usd(value).partition(".")[0] if _WHOLE_USD <= value < 1e6 else usd(value)


def passes_words(totals: BudgetTotals) -> str:
    """The line below the forecast: when the day's cap is passed, or the band, or why there is none."""
    if totals.spending == 0:
        return "no agent runs"
    if totals.forecast_usd is None:
        return f"no spend in {60 if totals.known_min >= 59 else totals.known_min:.0f} min"
    if totals.passes_cap_at is not None and totals.day_cap_usd is not None:
        return f"passes ${whole_usd(totals.day_cap_usd)} at {hour_minute(totals.passes_cap_at)}"
    if totals.day_cap_usd is None:
        return "the day has no limit"
    if totals.spend_today_usd >= totals.day_cap_usd:
        return "the day's limit is used up"
    return f"within ${whole_usd(totals.day_cap_usd)}"


def is_over_forecast(totals: BudgetTotals) -> bool:
    """The day's cap is passed before 24:00, by what is spent or at this rate."""
    cap = totals.day_cap_usd
    return cap is not None and (totals.spend_today_usd >= cap or (totals.forecast_usd is not None and totals.forecast_usd >= cap))


class BudgetHead(QWidget):
    """Painted whole; ``note`` is what a person must know about these figures."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(PAGE_HEADER)
        self._totals: BudgetTotals | None = None
        self._note = ""
        self._halted = 0
        self._old = self._lacks = False

    def set_old(self, old: bool) -> None:
        """The data is stale: nothing is green."""
        if old and not self._old:
            self._old = True
            self.update()

    def say(self, totals: BudgetTotals, note: str = "", halted: int = 0) -> None:
        """Other figures; the same again cost nothing. ``note``: whose spend is in no sum. ``halted``: agents that a limit halted today."""
        if (totals, note, halted, False) == (self._totals, self._note, self._halted, self._old):
            return
        self._totals, self._note, self._halted, self._old, self._lacks = totals, note, halted, False, bool(note)
        spoken = [f"{word} {number}" for word, number, *_ in counts(totals, halted)]
        cap = f" of {cap_usd(totals.day_cap_usd)}" if totals.day_cap_usd is not None else ", no limit"
        forecast = usd(totals.forecast_usd) if totals.forecast_usd is not None else "not known"
        burn = f"{usd(totals.burn_usd_per_h)} an hour" if totals.burn_usd_per_h is not None else "not known"
        spoken += [
            f"spend today {self._spend(totals)}{cap}",
            f"forecast at 24:00 {forecast}, {passes_words(totals)}",
            f"burn {burn}",
        ]
        self.setAccessibleName(safe_text(". ".join(part for part in (*spoken, halted_words(halted), note) if part), 600))
        self.setToolTip(tooltip(halted_words(halted)))
        self.update()

    def _spend(self, totals: BudgetTotals) -> str:
        """Nothing spent is no zero while there are agents whose spend nothing reads, here as on the fleet page."""
        return usd(totals.spend_today_usd if totals.spend_today_usd or not self._lacks else None)

    def fail(self, note: str) -> None:
        """The figures could not be read: they are old, or there are none."""
        self._note, self._old = note, True
        self.setAccessibleName(safe_text(note, 600))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(colours.bg0))
        painter.fillRect(QRectF(0, self.height() - 1, self.width(), 1), QColor(colours.line))
        draw_text(painter, QRectF(16, 12, 300, 24), "Budgets", fonts.ui(17, fonts.SEMIBOLD), colours.text)
        if self._note:
            draw_mark(painter, "triangle", QRectF(17, 41, 9, 9), colours.warn)
            draw_text(painter, QRectF(33, 36, _FIGURES_AT - 45, 18), safe_text(self._note), fonts.ui(11, fonts.MEDIUM), colours.warn)
        elif words := halted_words(self._halted):
            draw_text(painter, QRectF(16, 36, _FIGURES_AT - 28, 18), words, fonts.ui(11), colours.text2)
        if self._totals is not None:
            self._paint_counts(painter, self._totals)
            self._paint_figures(painter, self._totals)
        painter.end()

    def _paint_counts(self, painter: QPainter, totals: BudgetTotals) -> None:
        colours = ink()
        x = 16.0
        for word, number, shape, role in counts(totals, self._halted, old=self._old):
            words = fonts.metrics(fonts.ui(12)).horizontalAdvance(word)
            figure = fonts.metrics(fonts.ui(18, fonts.MEDIUM)).horizontalAdvance(f"{number:,}")
            draw_mark(painter, shape, QRectF(x + 1, 64, 9, 9), getattr(colours, role))
            draw_text(painter, QRectF(x + 17, 58, words + 2, 20), word, fonts.ui(12), colours.text)
            loud = getattr(colours, role) if role in ("danger", "warn") else colours.text
            draw_text(painter, QRectF(x + 25 + words, 56, figure + 4, 24), f"{number:,}", fonts.ui(18, fonts.MEDIUM), loud)
            x += words + figure + 47

    def _paint_figures(self, painter: QPainter, totals: BudgetTotals) -> None:
        room = self.width() - _FIGURES_AT
        fit = max(0, min(3, room // _BLOCK))
        width = room / max(1, fit)
        paints = (self._paint_spend, self._paint_forecast, self._paint_burn)
        for number in range(fit):
            left = _FIGURES_AT + 15 + number * width
            paints[number](painter, QRectF(left, 14, min(172.0, width - 22), 70), totals)

    def _paint_spend(self, painter: QPainter, box: QRectF, totals: BudgetTotals) -> None:
        cap = totals.day_cap_usd
        of = f"of ${whole_usd(cap)}" if cap is not None else "no limit"
        _figure(painter, box, "Spend today", self._spend(totals), of, ink().text)
        if cap is not None:
            share = totals.spend_today_usd / cap if cap > 0 else 1.0
            draw_gauge(painter, QRectF(box.x(), box.y() + 52, min(150.0, box.width()), 6), share, ink())

    def _paint_forecast(self, painter: QPainter, box: QRectF, totals: BudgetTotals) -> None:
        colours = ink()
        over = is_over_forecast(totals)
        right = _figure(painter, box, "Forecast, 24:00", forecast_words(totals.forecast_usd), "", colours.warn if over else colours.text)
        if over:
            draw_mark(painter, "triangle", QRectF(right + 8, box.y() + 26, 10, 10), colours.warn)
        draw_text(painter, QRectF(box.x(), box.y() + 46, box.width(), 18), passes_words(totals), fonts.ui(11), colours.text)

    def _paint_burn(self, painter: QPainter, box: QRectF, totals: BudgetTotals) -> None:
        colours = ink()
        value = f"{usd(totals.burn_usd_per_h)}/h" if totals.burn_usd_per_h is not None else "not known"
        _figure(painter, box, "Burn, last hour", value, "", colours.text)
        if any(v > 0 for v in totals.burn_60):
            line = QRectF(box.x(), box.y() + 46, min(132.0, box.width()), 18)
            draw_sparkline(painter, line, totals.burn_60, colours.bar, colours.track)


def _figure(painter: QPainter, box: QRectF, title: str, value: str, of: str, colour: str) -> float:
    """Title, figure, and what it is of; returns the right edge of the figure."""
    colours = ink()
    draw_text(painter, QRectF(box.x(), box.y(), box.width(), 18), title, fonts.ui(12), colours.text2)
    face = fonts.ui(18, fonts.SEMIBOLD)
    shown = draw_text(painter, QRectF(box.x(), box.y() + 19, box.width(), 24), value, face, colour)
    right = box.x() + fonts.metrics(face).horizontalAdvance(shown)
    if of:
        draw_text(painter, QRectF(right + 7, box.y() + 21, max(0.0, box.right() - right + 10), 20), of, fonts.ui(12), colours.text2)
    return right
