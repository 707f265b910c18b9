"""Numbers as people read them: money, times, ages, counts."""

from __future__ import annotations

import math
import time

from console.domain.words import counted


def usd(value: float) -> str:
    """``$412.80``; cents below a cent are shown as ``<$0.01``."""
    if not math.isfinite(value):
        return "$?"
    if 0 < value < 0.005:
        return "<$0.01"
    if abs(value) < 1e6:
        return f"${value:,.2f}"
    return f"${count(value)}" if abs(value) < 1e12 else ">$1 T"


def count(value: float) -> str:
    """``1,204``, ``31.4 M``."""
    if not math.isfinite(value):
        return "?"
    for size, unit in ((1e9, "G"), (1e6, "M")):
        if abs(value) >= size:
            return f"{value / size:,.1f} {unit}"
    return f"{value:,.0f}"


def span(seconds: float) -> str:
    """How long something lasts: ``9 s``, ``31m``, ``2h 14m``, ``3 d``."""
    if not math.isfinite(seconds):
        return "?"
    seconds = float(round(max(0.0, seconds)))
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f}m"
    if seconds < 48 * 3600:
        return f"{seconds // 3600:.0f}h {seconds % 3600 // 60:02.0f}m"
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


def age(at: float | None, now: float) -> str:
    """``40 s ago``; ``never`` when there is no moment."""
    return "never" if at is None else f"{long_span(now - at)} ago"


def took(ms: float | None) -> str:
    """``0.61 s``, ``38 ms``; ``?`` when unknown."""
    if ms is None or not math.isfinite(ms):
        return "?"
    if ms < 10:
        return f"{ms:.1f} ms"
    return f"{ms:.0f} ms" if ms < 100 else f"{ms / 1000:.2f} s"


def clock(at: float) -> str:
    """``14:02:11`` in local time."""
    return _local("%H:%M:%S", at)


def day_clock(at: float) -> str:
    """``21 Nov 09:00`` in local time."""
    return _local("%d %b %H:%M", at)


def recent_clock(at: float, now: float) -> str:
    """``14:02:11`` of the last 20 hours; what is older, or not yet, with its day: ``21 Nov 09:00``."""
    return clock(at) if 0 <= now - at < 20 * 3600 else day_clock(at)


plural = counted


def _local(pattern: str, at: float) -> str:
    try:
        return time.strftime(pattern, time.localtime(at))
    except (OverflowError, ValueError, OSError):
        return "?"
