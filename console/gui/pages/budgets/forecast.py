"""The forecast of one node and of the day in words: what ends when, at which rate, and how much is known."""

from __future__ import annotations

import time

from PySide6.QtWidgets import QWidget

from console.api.budgets import BudgetNodeView, BudgetTotals
from console.domain.budget import idle_words
from console.gui.pages.budgets.words import cap_words, day_minute, gauge_note, hour_minute
from console.gui.theme import fonts
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.facts import Fact, Facts
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.text import Text
from console.gui.widgets.words import cap_usd, usd
from console.wording.limits import LABELS, amount

HOW = (
    "The rate is a mean of the last hour in which the younger minutes weigh more; the band is that hour's lower and upper quarter. "
    "Nothing used in that hour: the end is unknown. What has no price is in no sum."
)


def node_lines(view: BudgetNodeView, now: float) -> list[Fact]:
    """Every capped limit: how much of it, and when it ends."""
    lines = []
    for g in view.gauges:
        if g.cap is None:
            continue
        ends = f" ({day_or_minute(now + g.ends_in_s, now)})" if g.ends_in_s else ""
        urgent = g.share is not None and g.share >= 0.75
        left = f"{LABELS.get(g.limit, g.limit)}: {amount(g.limit, g.used)} of {cap_words(g.limit, g.cap)}"
        lines.append(Fact(left, f"{gauge_note(g) or 'not known'}{ends}", "triangle" if urgent else "ring", "warn" if urgent else "text2"))
    return lines


def day_lines(totals: BudgetTotals) -> list[Fact]:
    """The day: spent, expected at 24:00 with its band, and when its cap is passed."""
    cap = f" of {cap_usd(totals.day_cap_usd)}" if totals.day_cap_usd is not None else ", no limit"
    lines = [Fact("Spent today", f"{usd(totals.spend_today_usd)}{cap}")]
    if totals.forecast_usd is None:
        lines.append(Fact("At 24:00", f"unknown: {idle_words(totals.known_min, 'spent')}"))
    else:
        low, high = totals.forecast_low_usd, totals.forecast_high_usd
        band = f", between {usd(low)} and {usd(high)}" if low is not None and high is not None else ""
        lines.append(Fact("At 24:00", f"{usd(totals.forecast_usd)}{band}"))
    if totals.passes_cap_at is not None:
        lines.append(Fact("The day's limit is reached", f"at {hour_minute(totals.passes_cap_at)}", "triangle", "warn", right_role="warn"))
    if totals.day_note:
        lines.append(Fact(totals.day_note, "", "triangle", "warn", left_role="warn"))
    return lines


def day_or_minute(at: float, now: float) -> str:
    """``at 18:56`` within a day, else ``on 24 Nov``."""
    if at - now < 86400:
        return f"at {hour_minute(at)}"
    try:
        return time.strftime("on %d %b", time.localtime(at))
    except (OverflowError, ValueError, OSError):
        return day_minute(None)


class ForecastDialog(Dialog):
    """Reads only."""

    def __init__(self, view: BudgetNodeView | None, totals: BudgetTotals, now: float, parent: QWidget) -> None:
        name = safe_text(view.row.name or view.row.key, 60) if view is not None else "today"
        super().__init__(f"Forecast: {name}", "Close", "plain", parent, width=620)
        self.node = Facts(24, ruled=True)
        lines = node_lines(view, now) if view is not None else []
        self.node.say(lines)
        self.body.addWidget(self.node)
        if view is not None and not lines:
            self.paragraph("No limit is set here, so nothing ends by itself.")
        self.body.addWidget(Text("The day, everything together", 12, fonts.SEMIBOLD))
        self.day = Facts(24, ruled=True)
        self.day.say(day_lines(totals))
        self.body.addWidget(self.day)
        self.paragraph(HOW)
        self.main.hide()
        self.cancel.setText("Close")
