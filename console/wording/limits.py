"""Limits as people read them in window and command line: what each is called, and an amount of it in its unit."""

from __future__ import annotations

import re
from functools import lru_cache

from console.domain.amounts import cap_usd, count, fine_usd, long_span, usd

LABELS = {
    "cost_usd": "Cost",
    "tokens": "Tokens",
    "wall_s": "Wall time",
    "tool_calls": "Tool calls",
    "iterations": "Iterations",
    "step_s": "Step time",
    "consecutive_errors": "Errors in a row",
    "cpu_s": "Processor time",
}
"""In the order of the Budgets page."""
TIMES = ("wall_s", "step_s", "cpu_s")
_LIMIT = re.compile(r"\b(agent|tree|session|project|day) limit ([a-z_]{1,40}): ([0-9.e+]{1,24}) of ([0-9.e+]{1,24})")


def label(limit: str) -> str:
    """``cost``, ``wall time``; a limit this console does not know by its own name."""
    return LABELS.get(limit, limit.replace("_", " ")[:40]).lower()


def amount(limit: str, value: float) -> str:
    """``$118.90``, ``19 h 02 min``, ``31.4 M``."""
    if limit == "cost_usd":
        return usd(value)
    return long_span(value) if limit in TIMES else count(value)


def cap_amount(limit: str, value: float) -> str:
    """The same of a limit, whose parts of a cent are shown."""
    return cap_usd(value) if limit == "cost_usd" else amount(limit, value)


@lru_cache(maxsize=4096)
def with_limits(words: str) -> str:
    """Why something was halted, as a person says it: ``cost $1.10 of $1.00 (agent limit)`` for ``agent limit cost_usd: 1.1 of 1``."""
    return _LIMIT.sub(_said, words) if " limit " in words else words


def _said(found: re.Match[str]) -> str:
    scope, name = found[1], found[2]
    try:
        used, cap = float(found[3].rstrip(".")), float(found[4].rstrip("."))
    except ValueError:
        return found[0]
    stop = "." if found[4].endswith(".") else ""
    of = cap_amount(name, cap)
    spent = amount(name, used) if of == amount(name, cap) else fine_usd(used)
    return f"{label(name)} {spent} of {of} ({scope} limit){stop}" if name in LABELS else found[0]
