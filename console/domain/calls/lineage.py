"""Sequences of calls that are forbidden as a whole: what one call was seen to be, and what a lineage has done so far.

A lineage is everything that was ever joined by a spawn or by a shared session: marks of one of its members are marks of them all.
"""

from __future__ import annotations

from dataclasses import dataclass

UNKNOWN = "*"
"""A table, path or host that could not be told: it is taken for any."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One thing a call does that one step of a pattern describes."""

    step: int
    thing: int
    """Number of the thing within the call: one thing takes no two steps of a pattern."""
    values: tuple[str, ...] = ()
    """What must be the same over all steps (tables, paths, hosts); ``UNKNOWN`` where it could not be told."""


@dataclass(frozen=True, slots=True)
class Match:
    """One pattern of which a call may be a step."""

    pattern: str
    why: str
    steps: tuple[str, ...]
    """Names of all its steps, in order."""
    same: bool
    seen: tuple[Seen, ...]
    tighten: str = ""
    """``NONE``: the sessions of the lineage lose their network with the first step; ``NONE if PROXIED``: those that are proxied."""
    text: str = ""
    """The call, for people. Hostile."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A step that an agent of a lineage has taken. A step is never taken back."""

    pattern: str
    step: str
    value: str
    agent_id: str
    context_id: str
    root_id: str
    at: float
    text: str
    tighten: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is a mark of."""
        return self.pattern, self.step, self.value
