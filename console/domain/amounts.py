"""Money, large numbers, spans and times of day in sentences. The guard says none of these, and does not load them."""

from __future__ import annotations

import math
import time


def usd(value: float | None) -> str:
    """``$412.80``; less than half a cent is ``<$0.01`` and never zero; None is ``unknown``."""
    if value is None:
        return "unknown"
    if not math.isfinite(value):
        return "$?"
    if 0 < value < 0.005:
        return "<$0.01"
    if abs(value) < 1e6:
        return f"${value:,.2f}"
    return f"${count(value, 'B')}" if abs(value) < 1e12 else ">$1 T"


def fine_usd(value: float | None) -> str:
    """``$0.0312``: the price of one answer, or a bill that is compared with another, to a hundredth of a cent."""
    return usd(value) if value is None or not abs(value) < 1e6 or value < 0 else f"${value:,.4f}"


def cap_usd(value: float) -> str:
    """A limit: ``$25.00``, ``$0.045``. A part of a cent is never rounded away, so nothing seems to be above it that is not."""
    shown = f"{value:,.6f}".rstrip("0") if abs(value) < 1e6 else ""
    return f"${shown}" if len(shown.partition(".")[2]) > 2 else usd(value)


def count(value: float, billions: str = "G") -> str:
    """``1,204``, ``31.4 M``. Money has ``B`` for billions, where everything else has ``G``."""
    if not math.isfinite(value):
        return "?"
    for size, unit in ((1e9, billions), (1e6, "M")):
        if abs(value) >= size:
            return f"{value / size:,.1f} {unit}"
    return f"{value:,.0f}"


def span(seconds: float) -> str:
    """How long something lasts, roughly: ``9 s``, ``31 min``, ``2 h 14 min``, ``3 d``."""
    if not math.isfinite(seconds):
        return "?"
    seconds = float(round(max(0.0, seconds)))
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min"
    if seconds < 48 * 3600:
        return long_span(seconds)
    return f"{seconds // 86400:.0f} d"


def long_span(seconds: float) -> str:
    """``4 s``, ``2 min 04 s``, ``4 h 41 min``."""
    if not math.isfinite(seconds):
        return "?"
    seconds = float(round(max(0.0, seconds)))
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min {seconds % 60:02.0f} s"
    return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:02.0f} min"


def took(ms: float | None) -> str:
    """``0.61 s``, ``38 ms``; ``?`` when unknown."""
    if ms is None or not math.isfinite(ms):
        return "?"
    if ms < 10:
        return f"{ms:.1f} ms"
    return f"{ms:.0f} ms" if ms < 100 else f"{ms / 1000:.2f} s"


def clock(at: float) -> str:
    """``14:02:11`` in local time."""
    return local("%H:%M:%S", at)


def local(pattern: str, at: float) -> str:
    """``at`` by strftime's ``pattern`` in local time; ``?`` for a moment that no calendar has."""
    try:
        return time.strftime(pattern, time.localtime(at))
    except (OverflowError, ValueError, OSError):
        return "?"
