"""Limits, usage and breaches: pure arithmetic that never trusts a number an agent reports.

To which calendar day a budget is charged follows a rule that a changed clock cannot fool:

* A day opens once, and never again. After a clock was set back, the latest day goes on.
* A clock set forward opens no day early. The present day lasts until CLOCK_BOOTTIME, which no process can set, has come to its midnight.
* Each day lasts 23 hours at least: the shortest there are, when clocks change for summer.

A wrong clock makes a day too long, but never gives a fresh budget. How fast something is used, and when it is used up: no data is never
zero, and nothing divides by what may be none.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from console.domain.errors import UsageProblem

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


def last_midnight(at: float) -> float:
    """The local midnight at which the day of ``at`` began."""
    return at + until_midnight(at) - 86400


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


MAX_COUNT = 10**15
MAX_COST_USD = 10**9


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps of one agent or one tree; None means not capped."""

    iterations: int | None = None
    tokens: int | None = None
    wall_s: float | None = None
    """Wall time in seconds since birth, on CLOCK_BOOTTIME."""
    tool_calls: int | None = None
    cost_usd: float | None = None
    cpu_s: float | None = None
    """Processor time in seconds of everything the agent ran, as the kernel counts it."""
    step_s: float | None = None
    """Seconds since the last sign of work: the longest that one step, or one tool call, may take."""
    consecutive_errors: int | None = None
    """Errors reported one after another, with no step that went well between them."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What was used so far; every field only ever grows, but for the two gauges at the end."""

    iterations: int = 0
    tokens: int = 0
    wall_s: float = 0.0
    tool_calls: int = 0
    cost_usd: float = 0.0
    cpu_s: float = 0.0
    step_s: float = 0.0
    """Of one agent, now; of a tree or a session it is not kept."""
    consecutive_errors: int = 0
    """The same."""

    def plus(self, other: Usage) -> Usage:
        """Sum of both, except wall time, of which the larger holds (a tree lives as long as its oldest part)."""
        return Usage(
            iterations=self.iterations + other.iterations,
            tokens=self.tokens + other.tokens,
            wall_s=max(self.wall_s, other.wall_s),
            tool_calls=self.tool_calls + other.tool_calls,
            cost_usd=self.cost_usd + other.cost_usd,
            cpu_s=self.cpu_s + other.cpu_s,
            step_s=self.step_s,
            consecutive_errors=self.consecutive_errors,
        )


LIMIT_NAMES = tuple(f.name for f in fields(Limits))
GAUGES = ("step_s", "consecutive_errors")
"""Of one agent at this moment. Set for a tree, a session, a project or a day they bound each agent in it, and halt that one alone."""
SUMMED = tuple(name for name in LIMIT_NAMES if name not in GAUGES)
RESERVABLE = ("iterations", "tokens", "tool_calls", "cost_usd")
"""What a gated call can set aside before it is made."""
UNCAPPED = Limits()
LIMIT_WORDS = {
    "iterations": "iterations",
    "tokens": "tokens",
    "wall": "wall_s",
    "wall_s": "wall_s",
    "tool_calls": "tool_calls",
    "tool-calls": "tool_calls",
    "cost": "cost_usd",
    "cost_usd": "cost_usd",
    "cpu": "cpu_s",
    "cpu_s": "cpu_s",
    "step": "step_s",
    "step_s": "step_s",
    "errors": "consecutive_errors",
    "consecutive_errors": "consecutive_errors",
}
LIMIT_LABELS = "iterations, tokens, wall, step, tool_calls, cost, cpu, errors"
"""The names people type."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A cap that was hit."""

    limit: str
    """A field of Limits."""
    used: float
    cap: float
    scope: str
    """``agent tree session project day``."""
    key: str = ""
    """Which session or project, or which agent's tree; hostile where it is a folder."""

    def words(self) -> str:
        """For example ``agent limit cost_usd: 2.51 of 2.50``, ``session limit tokens: 900 of 800 (ctx-1)``."""
        where = f" ({_shown(self.key)})" if self.key else ""
        return f"{self.scope} limit {self.limit}: {self.used:g} of {self.cap:g}{where}"


@dataclass(frozen=True, slots=True)
class Halt:
    """The breach that halted an agent, measured again once its end was proven."""

    scope: str
    key: str
    limit: str
    cap: float
    used: float
    """When it was halted."""
    used_at_end: float | None = None
    """When its end was proven, and what transcripts said later; None: not proven yet."""

    @property
    def overshoot(self) -> float | None:
        """By how much the cap was passed; None: its end is not proven."""
        return None if self.used_at_end is None else max(0.0, self.used_at_end - self.cap)


@dataclass(frozen=True, slots=True)
class Reservation:
    """What one gated call set aside before it was made."""

    reservation_id: str
    agent_id: str
    estimate: Usage
    expires_boot: float
    """CLOCK_BOOTTIME in seconds: from then on it is counted in full."""
    tool: str = ""
    """In the agent's words; hostile."""


@dataclass(frozen=True, slots=True)
class KeptBudget:
    """What was kept of budgets over a restart. Nodes are (scope, key)."""

    boot_id: str = ""
    """Of the boot that is now."""
    day: Day = field(default_factory=Day)
    limits: dict[tuple[str, str], Limits] = field(default_factory=dict)
    defaults: dict[str, Limits] = field(default_factory=dict)
    """From the settings: by scope, ``type:NAME`` for an agent type."""
    usage: dict[tuple[str, str], tuple[Usage, float, str]] = field(default_factory=dict)
    """(usage, CLOCK_BOOTTIME when it was kept, of which boot); trees are among them."""
    reservations: tuple[tuple[Reservation, str], ...] = ()
    """With the boot whose CLOCK_BOOTTIME they name."""
    warned: dict[tuple[str, str, str], int] = field(default_factory=dict)
    today_usd: float = 0.0
    """What agents reported since local midnight: the day is charged no less."""


def _shown(key: str) -> str:
    return "".join(x if x.isprintable() else "?" for x in key[-80:])


def first_breach(usage: Usage, limits: Limits, scope: str, key: str = "", names: tuple[str, ...] = LIMIT_NAMES) -> Breach | None:
    """The first cap (in the order of Limits) that usage has reached, or None. Money is compared to a billionth of a dollar."""
    if limits == UNCAPPED:
        return None
    for name in names:
        cap = getattr(limits, name)
        if cap is not None and round(getattr(usage, name), 9) >= cap:
            return Breach(name, float(getattr(usage, name)), float(cap), scope, key)
    return None


def would_pass(usage: Usage, held: Usage, estimate: Usage, limits: Limits, scope: str, key: str = "") -> Breach | None:
    """The first cap that this estimate would pass on top of what is used and held by others; None: there is room for it."""
    if limits == UNCAPPED:
        return None
    for name in RESERVABLE:
        cap, asked = getattr(limits, name), getattr(estimate, name)
        if cap is None or not asked:
            continue
        total = getattr(usage, name) + getattr(held, name)
        if round(total + asked, 9) > cap:
            return Breach(name, float(total), float(cap), scope, key)
    # A call is not begun where anything else is used up already.
    return first_breach(usage, limits, scope, key, SUMMED)


def tightest(one: Limits, other: Limits) -> Limits:
    """Name by name the smaller cap; what neither caps stays uncapped."""
    pairs = {n: (getattr(one, n), getattr(other, n)) for n in LIMIT_NAMES}
    return Limits(**{n: b if a is None else a if b is None else min(a, b) for n, (a, b) in pairs.items()})


def filled(limits: Limits, defaults: Limits) -> Limits:
    """``limits``, with the defaults for what they do not name."""
    return Limits(**{n: d if (v := getattr(limits, n)) is None else v for n in LIMIT_NAMES for d in (getattr(defaults, n),)})


def shortfall(total: Usage, used: Usage) -> Usage:
    """By how much a total is above what is counted already, name by name; what only sums up, nothing below zero."""
    return Usage(
        iterations=max(0, total.iterations - used.iterations),
        tokens=max(0, total.tokens - used.tokens),
        tool_calls=max(0, total.tool_calls - used.tool_calls),
        cost_usd=max(0.0, total.cost_usd - used.cost_usd),
    )


def largest(one: Usage, other: Usage) -> Usage:
    """Name by name the larger number."""
    return Usage(**{f.name: max(getattr(one, f.name), getattr(other, f.name)) for f in fields(Usage)})


def share_used(usage: Usage, limits: Limits) -> float:
    """Largest share of any cap used, 0.0 upward; 0.0 when nothing is capped."""
    if limits is UNCAPPED or limits == UNCAPPED:
        return 0.0
    shares = [getattr(usage, n) / cap for n in LIMIT_NAMES if (cap := getattr(limits, n)) is not None and cap > 0]
    zero = [1.0 for n in LIMIT_NAMES if getattr(limits, n) == 0]
    return max([*shares, *zero], default=0.0)


def parse_limit(text: str) -> tuple[str, float]:
    """Reads ``cost=2.50``; raises UsageProblem that lists the names. Returns (field of Limits, value)."""
    name, sign, value = text.partition("=")
    if not sign or name not in LIMIT_WORDS:
        wrong = f"There is no limit {name[:60]!r}." if sign else f"Limit {text[:60]!r} is not NAME=VALUE, such as cost=2.50."
        raise UsageProblem(wrong, f"Names: {LIMIT_LABELS}.")
    field_name = LIMIT_WORDS[name]
    unit, example = (
        (" of seconds", "600") if field_name.endswith("_s") else (" of dollars", "2.50") if field_name == "cost_usd" else ("", "50")
    )
    try:
        number = float(value)
    except ValueError as error:
        raise UsageProblem(f"Limit {name} needs a number{unit}, not {value[:40]!r}.", f"For example {name}={example}") from error
    if not math.isfinite(number) or number < 0:
        raise UsageProblem(f"Limit {name} must be zero or more and finite.", f"For example {name}={example}")
    if number > MAX_COUNT:
        raise UsageProblem(f"Limit {name} is beyond {MAX_COUNT:g}.", "Leave it out for no limit.")
    return field_name, number


def parse_limits(texts: Iterable[str]) -> dict[str, float]:
    """Several of them: field of Limits to value. Raises UsageProblem, also for one that is given twice."""
    caps: dict[str, float] = {}
    for text in texts:
        name, value = parse_limit(text)
        if name in caps:
            raise UsageProblem(f"Limit {text.partition('=')[0]} is given twice.", "Give each limit once.")
        caps[name] = value
    return caps


_FRACTIONS = ("wall_s", "cost_usd", "cpu_s", "step_s")


def with_limit(limits: Limits, name: str, value: float) -> Limits:
    """``limits`` with one field set; whole-number fields are rounded down."""
    changes: dict[str, Any] = {name: value if name in _FRACTIONS else int(value)}
    return replace(limits, **changes)


def checked_increment(name: str, value: object) -> float:
    """A reported increment as a number; UsageProblem on NaN, infinity, negatives, wrong types and absurd sizes."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageProblem(f"Usage {name} must be a number.", "Report increments since the last report.")
    cap = MAX_COST_USD if name == "cost_usd" else MAX_COUNT
    if isinstance(value, float) and not math.isfinite(value) or value < 0 or value > cap:
        raise UsageProblem(f"Usage {name} must be finite and between 0 and {cap:g}.", "The report was refused and recorded.")
    if name != "cost_usd" and value != int(value):
        raise UsageProblem(f"Usage {name} must be a whole number.", "Report counts.")
    return value


MINUTES = 60
HALF_LIFE_MIN = 15.0
"""A minute counts half as much as one that is so many minutes younger."""
LEAST_MIN = 0.25
"""Of less than this nothing is concluded."""
FAR_S = 10 * 365 * 86400.0
"""What would last longer than this has no end that could be named."""
BLOCK = 5
"""Minutes of one block, of which the band of a forecast is made."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a sum will be at a later moment, with a band."""

    low: float
    middle: float
    high: float


def rate_per_h(minutes: Sequence[float], known_min: float) -> float | None:
    """Use per hour: a weighted mean of the last minutes, the younger the heavier. None: not known.

    ``minutes``: use in each of the last minutes, oldest first, the last one still running. ``known_min``: for how many minutes,
    fractions included, anybody has looked; what lies before is not taken as zero.
    """
    if known_min < LEAST_MIN or not minutes:
        return None
    known = min(known_min, float(len(minutes)))
    weights, total, left = 0.0, 0.0, known
    part = known_min % 1.0 or 1.0  # how much of the running minute has passed
    for age, amount in enumerate(reversed(minutes)):
        length = min(left, part if age == 0 else 1.0)
        if length <= 0:
            break
        weight = 0.5 ** (age / HALF_LIFE_MIN)
        weights += weight * length
        total += weight * amount
        left -= length
    return total / weights * 60 if weights > 0 else None


def idle_words(known_min: float, verb: str) -> str:
    """Why there is no rate: nothing was ``verb`` (spent, used) in the time that anybody has looked, which may be less than the hour."""
    if known_min >= MINUTES - 1:
        return f"nothing was {verb} in the last hour"
    if known_min < 1:
        return "it was not measured for long enough"
    return f"nothing was {verb} in {int(known_min)} min"


def ends_in_s(cap: float, used: float, per_h: float | None) -> float | None:
    """Seconds until the cap is reached at this rate; 0: it is; None: not known, or it is not reached at this rate."""
    if round(used, 9) >= cap:
        return 0.0
    if per_h is None or per_h <= 0:
        return None
    seconds = (cap - used) / per_h * 3600
    return seconds if seconds < FAR_S else None


def forecast(used: float, minutes: Sequence[float], known_min: float, left_s: float) -> Forecast | None:
    """``used`` after ``left_s`` more seconds; the band: the lower and upper quarter of the last hour's blocks of five minutes."""
    rate = rate_per_h(minutes, known_min)
    if rate is None:
        return None
    whole = int(min(known_min, len(minutes))) // BLOCK
    recent = list(minutes)[len(minutes) - whole * BLOCK :] if whole else []
    blocks = sorted(sum(recent[n : n + BLOCK]) * 60 / BLOCK for n in range(0, len(recent), BLOCK))
    low = blocks[len(blocks) // 4] if blocks else 0.0
    high = blocks[(3 * len(blocks)) // 4] if blocks else 2 * rate
    hours = max(0.0, left_s) / 3600
    return Forecast(used + min(low, rate) * hours, used + rate * hours, used + max(high, rate) * hours)
