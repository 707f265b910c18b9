"""Classes of dangerous operations: what a person should know first of a request."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

UNRANKED = 9
"""The rank of what belongs to no class."""


class DangerClass(StrEnum):
    """Worst first: what cannot be undone, then what gives an agent more, then what reaches others, then what stays."""

    DESTROYS = "destroys"
    ESCALATES = "escalates"
    SPENDS = "spends"
    PUBLISHES = "publishes"
    PERSISTS = "persists"


def rank_of(danger: str) -> int:
    """1 for the worst class; ``UNRANKED`` for what is none."""
    return _RANKS.get(danger, UNRANKED)


def worst_of(dangers: Iterable[str]) -> str:
    """The worst of some classes; empty: there is none."""
    return min((one for one in dangers if one), key=rank_of, default="")


_RANKS: dict[str, int] = {one.value: at for at, one in enumerate(DangerClass, 1)}
