"""What states, modes and limits of an agent are called, and the shape that goes with each."""

from __future__ import annotations

import math

from console.api.messages import AgentView
from console.gui.models.row import OVER
from console.gui.widgets.words import long_span, usd
from console.wording.limits import amount, cap_amount

STATES: dict[str, tuple[str, str, str]] = {
    "starting": ("Starting", "ring", "ok"),
    "running": ("Running", "dot", "ok"),
    "waiting": ("Waiting", "ring", "text2"),
    "needs_ok": ("Needs OK", "triangle", "warn"),
    "frozen": ("Frozen", "pause", "text2"),
    "over_budget": ("Over budget", "diamond", "danger"),
    "halted": ("Halted", "cross", "text2"),
    "killed": ("Killed", "cross", "text2"),
    "alive_after_kill": ("Not confirmed", "pause", "warn"),
    "ended": ("Done", "check", "text2"),
    "failed": ("Failed", "cross", "warn"),
    "lost": ("Lost", "triangle", "warn"),
}
"""state -> (word, shape, colour); a state this console does not know is amber."""
ALIVE = ("Still alive", "pause", "warn")
"""An agent that runs although everything was stopped."""
DRY = ("starting", "running", "waiting", "needs_ok", "frozen")
"""States of which it matters that what is allowed is not executed."""
NO_LIMIT = "no limit"
_BURN_S, _LEAST_S = 300.0, 30.0
"""``burn_usd_per_h`` is of so many seconds; of an agent that is younger it is of its age, and of no less than the second."""
UNKNOWN = ("Unknown", "triangle", "warn")
ENDED = ("Ended", "ring", "text2")
"""Its exit code is not known: a tick would claim that it succeeded."""
UNVERIFIED = ("Unverified", "triangle", "warn")
"""Its source could not prove that it runs."""
LIMITS: dict[str, str] = {
    "cost_usd": "Cost",
    "tokens": "Tokens",
    "wall_s": "Wall time",
    "cpu_s": "Processor time",
    "tool_calls": "Tool calls",
    "iterations": "Iterations",
    "step_s": "Step time",
    "consecutive_errors": "Errors in a row",
}


def has_limit(view: AgentView) -> bool:
    """Whether any cap is near or far: a share of none would read as plenty left."""
    return view.budget_share != 0 or any(cap is not None for caps in (view.limits, view.tree_limits) for cap in caps.values())


def is_unmeasured(view: AgentView) -> bool:
    """Whether its limits are on a cost that nothing measures, so that no share of them is known."""
    is_limited = any(limits.get("cost_usd") is not None for limits in (view.limits, view.tree_limits))
    return view.cost_usd is None and is_limited and view.budget_share == 0


def state_words(view: AgentView) -> tuple[str, str, str]:
    """(word, shape, colour) of an agent's state; one in dry-run has ``dry`` behind it."""
    word, shape, colour = STATES.get(view.state, UNKNOWN)
    if view.state == "ended" and view.exit_code != 0:
        word, shape, colour = ENDED if view.exit_code is None else STATES["failed"]
    if view.seen_status == "unverified" and view.control_level == "observed" and view.state in ("running", "waiting"):
        word, shape, colour = UNVERIFIED
    return (f"{word}, dry" if view.dry_run and view.state in DRY else word), shape, colour


def gauges(view: AgentView) -> list[tuple[str, str, str, float, str]]:
    """(title, used, of cap, share, note) of every limit of the agent and of its tree that has a cap."""
    lines = []
    for words, usage, limits in (("", view.usage, view.limits), (", tree", view.tree_usage, view.tree_limits)):
        for name, title in LIMITS.items():
            cap = limits.get(name)
            if cap is None:
                continue
            used = usage.get(name, 0.0)
            if usage and name not in usage and cap > 0:
                lines.append((f"{title}{words}", "unknown", f"of {cap_amount(name, cap)}", 0.0, view.cost_unknown or "not known"))
                continue
            share = used / cap if cap > 0 else 1.0
            per_h = _cost_per_h(view) if name == "cost_usd" and not words else 0.0  # what a tree spends is no figure of one agent's
            note = _note(view, name, cap - used, per_h)
            lines.append((f"{title}{words}", amount(name, used), f"of {cap_amount(name, cap)}", share, note))
    return lines


def _cost_per_h(view: AgentView) -> float:
    """USD per hour over the last 5 minutes, or since it began where that is less."""
    lived = view.usage.get("wall_s") or _BURN_S
    return view.burn_usd_per_h * _BURN_S / min(max(lived, _LEAST_S), _BURN_S)


def _note(view: AgentView, name: str, left: float, per_h: float) -> str:
    if not math.isfinite(left):
        return "not known"
    if left <= 0:
        return "at the limit"
    if per_h > 0 and view.state not in OVER:
        return f"limit in about {long_span(left / per_h * 3600)} at {usd(per_h)}/h"
    return f"{amount(name, left)} left"
