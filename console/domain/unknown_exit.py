"""Values for agents that were gone when a supervisor started and whose end is not confirmed yet."""

from __future__ import annotations

from dataclasses import dataclass

from console.domain.agent import AgentId
from console.domain.event import Event

OPEN_END = "whether it ended is not known"
"""How the reason of such an agent begins, also on disk: the next supervisor asks on. What follows says why."""
NOT_ANSWERED = f"{OPEN_END}: the guard has not answered yet; it is asked again"
STILL_RUNS = f"{OPEN_END}: the guard reports that a process of it still runs"
NOT_IN_RECORD = f"{OPEN_END}: the guard's record has none of it; a rearm takes a look at everything"
WENT = "gone while no supervisor ran"
STOPPED = "stopped, because no supervisor followed it after a restart"
LOOKED_OVER = f"{WENT}; before a rearm every process was checked, and none of it was found"


@dataclass(frozen=True, slots=True)
class EndsLearnt(Event):
    """What the guard said of agents whose end was open: reasons, each of them one of those above."""

    why: tuple[tuple[AgentId, str], ...]
