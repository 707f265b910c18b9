"""Decide how much workspaces may hold and how long they stay: pure rules.

Capacity doubles when four fifths are used, up to a maximum. A session without use for its time to live is deleted, unless it is held as
evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

GROW_AT = 0.8
"""Share of the capacity from which on it grows."""
DAY_S = 86400.0


@dataclass(frozen=True, slots=True)
class Growth:
    """The capacity after a look at what is used, in bytes."""

    capacity: int
    grew: bool
    is_full: bool
    """Nothing may be started, and nothing grows any more."""


def grown(used: int, capacity: int, maximum: int) -> Growth:
    """Doubles ``capacity`` until less than four fifths of it are used, at most to ``maximum``."""
    before = capacity = max(1, min(capacity, maximum))
    while used > GROW_AT * capacity and capacity < maximum:
        capacity = min(capacity * 2, maximum)
    return Growth(capacity, capacity != before, used >= maximum)


class Fate(StrEnum):
    """What becomes of a session's workspace."""

    STAYS = "stays"
    HELD = "held"
    GOES = "goes"


@dataclass(frozen=True, slots=True)
class Stay:
    """What is known of a session's workspace, in the ledger's time (seconds since the epoch)."""

    last_used: float
    ttl_days: float
    live_agents: int = 0
    hold: str = ""
    """Why it is held as evidence; its time to live is paused."""
    held_until_now_s: float = 0.0
    """Seconds for which it was held in the past, after it was last used: they do not count."""
    stateless: bool = False
    """Started without a session's name: it goes with its last agent."""
    ended_at: float | None = None
    """When its last agent ended."""


def fate(stay: Stay, now: float) -> Fate:
    """Unused for its time to live, or stateless and over: goes. A clock that went back makes nothing older."""
    if stay.live_agents > 0:
        return Fate.STAYS
    if stay.hold:
        return Fate.HELD
    if stay.stateless and stay.ended_at is not None:
        return Fate.GOES
    idle = now - stay.last_used - stay.held_until_now_s
    return Fate.GOES if idle > stay.ttl_days * DAY_S else Fate.STAYS
