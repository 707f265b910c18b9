"""Decide to which calendar day a budget is charged, by a rule that a changed clock cannot fool.

* A day opens once, and never again. After a clock was set back, the latest day goes on.
* A clock set forward opens no day early. The present day lasts until CLOCK_BOOTTIME, which no process can set, has come to its midnight.
* Each day lasts 23 hours at least: the shortest there are, when clocks change for summer.

A wrong clock makes a day too long, but never gives a fresh budget.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

SLACK_S = 120.0
"""The two clocks drift: so much before its midnight a day may end."""
SHORTEST_S = 23 * 3600.0


@dataclass(frozen=True, slots=True)
class Day:
    """The day that is open now."""

    date: str = ""
    """``YYYY-MM-DD``, local time; empty: none was opened yet."""
    ends_boot: float = 0.0
    """CLOCK_BOOTTIME of its midnight, in seconds."""
    boot_id: str = ""
    """Of which boot ``ends_boot`` is."""
    metered_usd: float = 0.0
    """Of what it was charged: money that transcripts of agents which were not started here said."""


def turned(day: Day, at: float, boot_s: float, boot_id: str) -> Day:
    """The day that holds at this moment; ``day`` itself when it goes on."""
    today = time.strftime("%Y-%m-%d", time.localtime(at))
    if day.date and today <= day.date:
        return day
    if day.boot_id != boot_id:  # another boot: its counter says nothing, and the calendar moved on
        return Day(today, boot_s + until_midnight(at), boot_id)
    if day.date and boot_s < day.ends_boot - SLACK_S:
        return day
    ends = max(boot_s + until_midnight(at), day.ends_boot + SHORTEST_S if day.date else 0.0)
    return Day(today, ends, boot_id)


def until_midnight(at: float) -> float:
    """Seconds until the next local midnight."""
    there = time.localtime(at)
    midnight = time.mktime((there.tm_year, there.tm_mon, there.tm_mday + 1, 0, 0, 0, 0, 0, -1))
    return max(1.0, midnight - at)


def note(day: Day, at: float) -> str:
    """What to say when clock and day disagree, or nothing."""
    today = time.strftime("%Y-%m-%d", time.localtime(at))
    if not day.date or today == day.date:
        return ""
    if today < day.date:
        return f"the clock says {today}, but {day.date} was open already: it goes on, no day opens twice"
    return f"the clock says {today}, but {day.date} is not over by the time that has passed: it goes on until then"
