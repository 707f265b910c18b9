"""Gauges and rows of the Budgets page: how much of each limit is used, and which ends first. Pure, from values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from console.api.budgets import GaugeView
from console.domain.budget import GAUGES, LIMIT_NAMES, RESERVABLE, Limits, Usage, ends_in_s, idle_words, rate_per_h

Level = Literal["within", "above_75", "above_90", "over"]
SHOWN = ("cost_usd", "tokens", "wall_s", "tool_calls", "iterations", "step_s", "consecutive_errors", "cpu_s")
"""In the order of the page."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one node."""

    usage: Usage
    limits: Limits
    held: Usage = field(default_factory=Usage)
    live: bool = True
    minutes: Callable[[str], list[float]] = lambda _name: []
    """Use in each of the last minutes, by limit."""
    known_min: float = 0.0
    inherited: str = ""
    still: bool = False
    """It lives, and nothing of it may use anything now: all of it is frozen."""
    unread: str = ""
    """Why nothing reads what it spends; empty: it is read."""
    over_in_s: float | None = None
    """When all of it begins again at zero: of a day at midnight."""


def level_of(share: float) -> Level:
    """By the marks of the page."""
    if share >= 1.0:
        return "over"
    return "above_90" if share >= 0.9 else "above_75" if share >= 0.75 else "within"


def gauge(facts: Facts, name: str) -> GaugeView:
    """One limit of one node."""
    used, held, cap = float(getattr(facts.usage, name)), float(getattr(facts.held, name)), getattr(facts.limits, name)
    rate, why = _rate(facts, name)
    view = GaugeView(limit=name, used=round(used, 9), held=round(held, 9), rate_per_h=rate)
    if cap is None:
        return view
    view.cap = float(cap)
    view.share = (used + held) / cap if cap > 0 else 1.0
    view.inherited = facts.inherited
    if facts.unread and name in ("cost_usd", "tokens") and not used and not held:
        view.share, view.why = None, f"not measured: {facts.unread}"
    elif name in GAUGES:
        view.why = "counts one step, then starts again at zero"
    elif not facts.live:
        view.why = "nothing of it runs"
    else:
        view.ends_in_s = ends_in_s(float(cap), used, rate)
        if view.ends_in_s is None:
            view.why = why or "not within ten years at this rate"
        elif facts.over_in_s is not None and view.ends_in_s > facts.over_in_s:
            view.ends_in_s, view.why = None, "not today at this rate"
    return view


def _rate(facts: Facts, name: str) -> tuple[float | None, str]:
    """Use per hour, or why it is not known."""
    if not facts.live or name in GAUGES:
        return None, ""
    if name == "wall_s":
        return 3600.0, ""
    if name == "cpu_s":
        wall = facts.usage.wall_s
        return (facts.usage.cpu_s / wall * 3600 if wall >= 15 else None), "unknown: it has not run for long enough"
    if facts.still:
        return 0.0, "nothing of it runs now"
    minutes = facts.minutes(name)
    if not minutes:
        return None, f"unknown: {idle_words(facts.known_min, 'used')}"
    rate = rate_per_h(minutes, facts.known_min)
    return rate, "unknown: it was not measured for long enough" if rate is None else ""


def gauges(facts: Facts) -> list[GaugeView]:
    """Every limit, capped or not, in the order of the page."""
    return [gauge(facts, name) for name in SHOWN if name in LIMIT_NAMES]


@dataclass(frozen=True, slots=True)
class Nearest:
    """Which limit ends first, and how much of any is used."""

    ends_in_s: float | None
    limit: str
    why: str
    share: float


def nearest(all_facts: Iterable[Facts]) -> Nearest:
    """Over every node that bounds one thing (an agent's own limits and those of its tree)."""
    capped = [g for facts in all_facts for n in LIMIT_NAMES if getattr(facts.limits, n) is not None for g in (gauge(facts, n),)]
    share = max((g.share or 0.0 for g in capped), default=0.0)
    ending = sorted((g for g in capped if g.ends_in_s is not None), key=lambda g: g.ends_in_s or 0.0)
    if ending:
        return Nearest(ending[0].ends_in_s, ending[0].limit, "", share)
    if not capped:
        return Nearest(None, "", "no limit is set", share)
    first = max(capped, key=lambda g: g.share or 0.0)
    return Nearest(None, first.limit, next((g.why for g in capped if g.limit in RESERVABLE and g.why), first.why), share)
