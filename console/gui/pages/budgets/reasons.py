"""Why something was halted, as a person says it: ``cost $1.10 of $1.00 (agent limit)`` for ``agent limit cost_usd: 1.1 of 1``."""

from __future__ import annotations

import re
from functools import lru_cache

from console.gui.models.operators import person
from console.gui.pages.budgets.words import LABELS, amount, label

_LIMIT = re.compile(r"\b(agent|tree|session|project|day) limit ([a-z_]{1,40}): ([0-9.e+]{1,24}) of ([0-9.e+]{1,24})")


def plain_reason(words: str) -> str:
    """The same words with every limit named and in its unit, and every operator by name; what is neither stays as it is."""
    return person(_with_limits(words))


@lru_cache(maxsize=4096)
def _with_limits(words: str) -> str:
    return _LIMIT.sub(_said, words) if " limit " in words else words


def _said(found: re.Match[str]) -> str:
    scope, name = found[1], found[2]
    try:
        used, cap = float(found[3].rstrip(".")), float(found[4].rstrip("."))
    except ValueError:
        return found[0]
    stop = "." if found[4].endswith(".") else ""
    return f"{label(name)} {amount(name, used)} of {amount(name, cap)} ({scope} limit){stop}" if name in LABELS else found[0]
