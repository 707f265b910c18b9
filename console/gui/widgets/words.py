"""Numbers as people read them: money, times, ages, counts."""

from __future__ import annotations

import math

from console.domain import amounts, words


def age(at: float | None, now: float) -> str:
    """``40 s ago``; ``never`` when there is no moment."""
    return "never" if at is None else f"{long_span(now - at)} ago"


def day_clock(at: float) -> str:
    """``21 Nov 09:00`` in local time."""
    return amounts.local("%d %b %H:%M", at)


def recent_clock(at: float, now: float) -> str:
    """``14:02:11`` of the last 20 hours; what is older, or not yet, with its day: ``21 Nov 09:00``."""
    return clock(at) if 0 <= now - at < 20 * 3600 else day_clock(at)


def share_words(share: float | None) -> str:
    """``74%``; ``>999%`` beyond that."""
    if share is None or not math.isfinite(share):
        return "?"
    return f"{share * 100:.0f}%" if share < 9.995 else ">999%"


cap_usd, clock, count, long_span, plural, span, took, usd = (
    amounts.cap_usd,
    amounts.clock,
    amounts.count,
    amounts.long_span,
    words.counted,
    amounts.span,
    amounts.took,
    amounts.usd,
)
