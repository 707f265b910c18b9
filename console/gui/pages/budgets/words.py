"""Limits, times and money as the Budgets page writes them; and what people type as a limit. Pure."""

from __future__ import annotations

import math
import re
import time

from console.api.budgets import BudgetRow, GaugeView
from console.domain.budget import MAX_COUNT
from console.domain.errors import UsageProblem
from console.gui.widgets.words import cap_usd, clock, count, long_span, span, usd
from console.wording.limits import LABELS, TIMES, amount, cap_amount

UNITS = {"cost_usd": "USD", "wall_s": "90, 20m, 12h", "step_s": "90, 20m, 12h", "cpu_s": "90, 20m, 12h"}
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = "unpriced: the cost of some of its use is not known, so the money shown is too little"
_NOTHING = "spend unknown: nothing says what it spent"
SOON_S, NEAR_S = 300.0, 1800.0
"""Below the first it is red, below the second amber."""
_BAR_FROM_S, _BAR_TO_S = 60.0, 86400.0
"""The bar of a time left is logarithmic: a minute is empty, a day is full."""


def unpriced_words(row: BudgetRow) -> str:
    """What is not known of its money, or empty."""
    return (_PART if row.spent_usd else _NOTHING) if row.unpriced else ""


def is_unpriced(row: BudgetRow) -> bool:
    """Whether the money shown is a part of what it spent; where none is shown, ``unknown`` stands in its place."""
    return row.unpriced and row.spent_usd > 0


def spent_words(row: BudgetRow) -> str:
    """What a node spent; ``unknown`` where nothing of it has a price."""
    return usd(None if row.unpriced and not row.spent_usd else row.spent_usd)


def burn_words(row: BudgetRow) -> str:
    """What a live node spends in an hour; ``—`` for one that is over, ``unknown`` where nothing reads it."""
    if row.done or row.burn_usd_per_h is None:
        return "—"
    return "unknown" if row.unpriced and not row.burn_usd_per_h else f"{usd(row.burn_usd_per_h)}/h"


def cap_words(limit: str, cap: float) -> str:
    """A cap: ``$160.00``, ``24 h``, ``60 M``; nothing is said that is zero."""
    return re.sub(r"\.0 (?=[MGB]$)", " ", cap_amount(limit, cap)).removesuffix(" 00 min").removesuffix(" 00 s")


def whole_usd(value: float) -> str:
    """A cap: ``160``, ``2.50``, ``1.2 M``; the dollar sign stands before what was spent."""
    if not math.isfinite(value):
        return "?"
    if abs(value) >= 1e5:
        return count(value)
    return f"{value:,.0f}" if value == round(value) else cap_usd(value).removeprefix("$")


def left_words(seconds: float) -> str:
    """``3 min``, ``1 h 55 min``, ``3 d``."""
    if not math.isfinite(seconds):
        return "?"
    if seconds < 60:
        return f"{max(0.0, seconds):.0f} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min"
    return long_span(seconds) if seconds < 48 * 3600 else span(seconds)


_STOPPED = {"killed": ("Killed", "cross", "text3"), "failed": ("Failed", "cross", "warn"), "lost": ("Lost", "triangle", "warn")}
"""Ends of a tree's root that are no "Done"."""


def ends_words(row: BudgetRow) -> tuple[str, str, str]:
    """(words, shape, role) of the column ``Ends in``; unknown is a word of its own, never a promise."""
    if row.done:
        at = f" {day_minute(row.ended_at)}" if row.ended_at else ""
        if row.state in _STOPPED:
            word, shape, role = _STOPPED[row.state]
            return f"{word}{at}", shape, role
        return (f"Halted{at}", "diamond", "danger") if row.level == "over" else (f"Done{at}", "check", "text3")
    if row.level == "over" and row.state in ("over_budget", "halted"):
        return "being halted", "diamond", "danger"
    if row.ends_in_s is not None and math.isfinite(row.ends_in_s):
        if row.ends_in_s <= 0:
            return "used up", "diamond", "danger"
        shape, role = urgency(row.ends_in_s)
        return left_words(row.ends_in_s), shape, role
    if row.level == "over":
        return "used up", "diamond", "danger"
    if not row.first_limit:
        return "no limit", "", "text3"
    return "unknown", "", "text2"


def urgency(seconds: float) -> tuple[str, str]:
    """(shape, role) of a time left."""
    if seconds < SOON_S:
        return "diamond", "danger"
    return ("triangle", "warn") if seconds < NEAR_S else ("", "text")


def bar_share(seconds: float) -> float:
    """How far the bar of a time left is filled: logarithmic, from a minute to a day."""
    if not math.isfinite(seconds) or seconds <= 0:
        return 0.0 if seconds <= 0 else 1.0
    return min(1.0, max(0.06, math.log(max(1.0, seconds) / _BAR_FROM_S) / math.log(_BAR_TO_S / _BAR_FROM_S)))


def rate_words(gauge: GaugeView) -> str:
    """``$21.30/h``, ``3.4 M/h``; empty when it is not known or goes without saying."""
    if gauge.rate_per_h is None or gauge.limit in TIMES:
        return ""
    return f"{amount(gauge.limit, gauge.rate_per_h)}/h"


def gauge_note(gauge: GaugeView) -> str:
    """What stands below a gauge: when it ends and at which rate, or why that is not known."""
    parts = []
    rate = rate_words(gauge)
    if gauge.ends_in_s is not None:
        words = "used up" if gauge.ends_in_s <= 0 else f"ends in {left_words(gauge.ends_in_s)}"
        parts.append(f"{words} at {rate}" if rate and gauge.ends_in_s > 0 else words)
    elif gauge.why:
        parts.append(gauge.why)
    elif gauge.cap is not None and gauge.cap > gauge.used:
        parts.append(f"{amount(gauge.limit, gauge.cap - gauge.used)} left")
    if gauge.held > 0:
        parts.append(f"{amount(gauge.limit, gauge.held)} set aside")
    if gauge.inherited:
        parts.append(f"from {gauge.inherited}")
    return " · ".join(parts)


def hour_minute(at: float) -> str:
    """``18:56`` in local time."""
    return clock(at)[:5]


def day_minute(at: float | None) -> str:
    """``06:12`` of the last day, else ``18 Nov``; empty for no moment."""
    if at is None:
        return ""
    try:
        return hour_minute(at) if 0 <= time.time() - at < 86400 else time.strftime("%d %b", time.localtime(at))
    except (OverflowError, ValueError, OSError):
        return "?"


def weekday(day: str, today: str) -> str:
    """``Sun`` of ``2026-11-22``, ``Today``; what is no date stays as it is, cut."""
    if day == today:
        return "Today"
    try:
        return time.strftime("%a", time.strptime(day, "%Y-%m-%d"))
    except ValueError:
        return day[:5]


def read_cap(limit: str, text: str) -> float | None:
    """What was typed as a limit; None: no limit. Raises UsageProblem. Times take s, m, h, d (``90``, ``20m``, ``1.5h``)."""
    typed = text.strip().removeprefix("$").replace(",", "").replace(" ", "").lower()
    if not typed:
        return None
    factor = 1.0
    if limit in TIMES and typed[-1] in _SECONDS:
        factor, typed = _SECONDS[typed[-1]], typed[:-1]
    elif limit not in TIMES and typed[-1] in "km":
        factor, typed = {"k": 1e3, "m": 1e6}[typed[-1]], typed[:-1]
    try:
        value = float(typed) * factor
    except ValueError as error:
        raise UsageProblem(f"{LABELS[limit]}: {text.strip()[:40]!r} is no number.", "For example 2.50; empty means no limit.") from error
    if not math.isfinite(value) or value < 0:
        raise UsageProblem(f"{LABELS[limit]} must be zero or more and finite.", "Empty means no limit.")
    if value > MAX_COUNT:
        raise UsageProblem(f"{LABELS[limit]} is beyond {MAX_COUNT:g}.", "Leave it empty for no limit.")
    return value if limit in ("cost_usd", *TIMES) else float(math.floor(value))


def typed_cap(limit: str, cap: float | None) -> str:
    """A cap as it would be typed; ``read_cap`` reads exactly it back."""
    if cap is None:
        return ""
    if limit in TIMES:
        for unit in ("h", "m"):
            if cap >= _SECONDS[unit] and cap % _SECONDS[unit] == 0:
                return f"{cap / _SECONDS[unit]:.0f}{unit}"
    return f"{cap:.0f}" if cap == round(cap) else repr(float(cap))
