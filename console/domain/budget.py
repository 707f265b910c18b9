"""Limits, usage and breaches: pure arithmetic that never trusts a number an agent reports."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

from console.domain.errors import UsageProblem

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


@dataclass(frozen=True, slots=True)
class Usage:
    """What was used so far; every field only ever grows."""

    iterations: int = 0
    tokens: int = 0
    wall_s: float = 0.0
    tool_calls: int = 0
    cost_usd: float = 0.0
    cpu_s: float = 0.0

    def plus(self, other: Usage) -> Usage:
        """Sum of both, except wall time, of which the larger holds (a tree lives as long as its oldest part)."""
        return Usage(
            iterations=self.iterations + other.iterations,
            tokens=self.tokens + other.tokens,
            wall_s=max(self.wall_s, other.wall_s),
            tool_calls=self.tool_calls + other.tool_calls,
            cost_usd=self.cost_usd + other.cost_usd,
            cpu_s=self.cpu_s + other.cpu_s,
        )


LIMIT_NAMES = tuple(f.name for f in fields(Limits))
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
}


@dataclass(frozen=True, slots=True)
class Breach:
    """A cap that was hit."""

    limit: str
    """A field of Limits."""
    used: float
    cap: float
    scope: str
    """``agent`` or ``tree``."""

    def words(self) -> str:
        """For example ``agent limit cost_usd: 2.51 of 2.50``."""
        return f"{self.scope} limit {self.limit}: {self.used:g} of {self.cap:g}"


def first_breach(usage: Usage, limits: Limits, scope: str) -> Breach | None:
    """The first cap (in the order of Limits) that usage has reached, or None."""
    for name in LIMIT_NAMES:
        cap = getattr(limits, name)
        if cap is not None and getattr(usage, name) >= cap:
            return Breach(name, float(getattr(usage, name)), float(cap), scope)
    return None


def share_used(usage: Usage, limits: Limits) -> float:
    """Largest share of any cap used, 0.0 upward; 0.0 when nothing is capped."""
    shares = [getattr(usage, n) / cap for n in LIMIT_NAMES if (cap := getattr(limits, n)) is not None and cap > 0]
    zero = [1.0 for n in LIMIT_NAMES if getattr(limits, n) == 0]
    return max([*shares, *zero], default=0.0)


def parse_limit(text: str) -> tuple[str, float]:
    """Reads ``cost=2.50``; raises UsageProblem that lists the names. Returns (field of Limits, value)."""
    name, sign, value = text.partition("=")
    if not sign or name not in LIMIT_WORDS:
        raise UsageProblem(f"Limit {text[:60]!r} is not name=value.", "Names: iterations, tokens, wall, tool_calls, cost, cpu.")
    try:
        number = float(value)
    except ValueError as error:
        raise UsageProblem(f"Limit {name} needs a number, not {value[:40]!r}.", "For example --limit cost=2.50") from error
    if not math.isfinite(number) or number < 0:
        raise UsageProblem(f"Limit {name} must be zero or more and finite.", "For example --limit cost=2.50")
    return LIMIT_WORDS[name], number


def with_limit(limits: Limits, name: str, value: float) -> Limits:
    """``limits`` with one field set; whole-number fields are rounded down."""
    changes: dict[str, Any] = {name: value if name in ("wall_s", "cost_usd", "cpu_s") else int(value)}
    return replace(limits, **changes)


def checked_increment(name: str, value: object) -> float:
    """A reported increment as a number; UsageProblem on NaN, infinity, negatives, wrong types and absurd sizes (U1)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageProblem(f"Usage {name} must be a number.", "Report increments since the last report.")
    cap = MAX_COST_USD if name == "cost_usd" else MAX_COUNT
    if isinstance(value, float) and not math.isfinite(value) or value < 0 or value > cap:
        raise UsageProblem(f"Usage {name} must be finite and between 0 and {cap:g}.", "The report was refused and recorded.")
    if name != "cost_usd" and value != int(value):
        raise UsageProblem(f"Usage {name} must be a whole number.", "Report counts.")
    return value
