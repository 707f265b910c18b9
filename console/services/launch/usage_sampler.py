"""When whose processor time is read: each second where a cap may be hit or work is done, seldom where neither is so."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from console.domain.agent import Agent, AgentId
from console.enforcement.charging import ancestry
from console.enforcement.state import EngineState
from console.sandbox.bounds import processor_file, processor_seconds_in

IDLE_S = 5.0
"""Between two looks at an agent that no cap on processor time bounds and that did next to nothing."""
IDLE_SHARE = 0.02
"""Of one core: what counts as next to nothing."""
TELL_S = 0.05
"""So much more is told at once, where no cap bounds it; less of it after TOLD_S."""
TOLD_S = 30.0


@dataclass(slots=True)
class _Clock:
    pid: int
    file: str = ""
    read_at: float = 0.0
    seen: float = -1.0
    """As last read, in seconds; below 0: never."""
    told: float = 0.0
    told_at: float = 0.0
    next_at: float = 0.0


class Processor:
    """``due`` and ``news`` on the loop's thread, ``read`` in any, one after the other."""

    __slots__ = ("_clocks",)

    def __init__(self) -> None:
        self._clocks: dict[AgentId, _Clock] = {}

    def due(self, state: EngineState, pids: Mapping[AgentId, int]) -> list[AgentId]:
        """Return the agents to read now, of those with these first processes."""
        now, clocks = time.monotonic(), self._clocks
        for gone in clocks.keys() - pids.keys():
            del clocks[gone]
        for agent_id, pid in pids.items():
            if (clock := clocks.get(agent_id)) is None or clock.pid != pid:
                clocks[agent_id] = _Clock(pid)
        everybody = bounds_many(state)
        return [i for i, clock in clocks.items() if clock.next_at <= now or everybody or is_capped(state, i)]

    def read(self, ids: list[AgentId]) -> None:
        """Reads them. Blocks for some microseconds each."""
        for agent_id in ids:
            clock = self._clocks.get(agent_id)
            if clock is None:
                continue
            clock.file = clock.file or processor_file(clock.pid)
            seconds = processor_seconds_in(clock.file) if clock.file else None
            now = time.monotonic()
            if seconds is None:
                clock.file, clock.next_at = "", now + IDLE_S / 2
                continue
            is_idle = clock.seen >= 0 and seconds - clock.seen < IDLE_SHARE * (now - clock.read_at)
            clock.seen, clock.read_at, clock.next_at = seconds, now, now + IDLE_S if is_idle else now

    def news(self, state: EngineState, ids: list[AgentId]) -> dict[AgentId, float]:
        """What is to be said of those that were just read, in seconds since each began."""
        now, found = time.monotonic(), dict[AgentId, float]()
        everybody = bounds_many(state)
        for agent_id in ids:
            clock = self._clocks.get(agent_id)
            if clock is None or clock.seen <= clock.told:
                continue
            is_much = clock.seen - clock.told >= TELL_S or now - clock.told_at >= TOLD_S
            if is_much or everybody or is_capped(state, agent_id):
                found[agent_id], clock.told, clock.told_at = clock.seen, clock.seen, now
        return found


def bounds_many(state: EngineState) -> bool:
    """Whether the processor time of any session, project, day or agent type is capped."""
    budget = state.budget
    return any(limits.cpu_s is not None for limits in (*budget.limits.values(), *budget.defaults.values()))


def is_capped(state: EngineState, agent_id: AgentId) -> bool:
    """Whether its own processor time is capped, or that of a tree it is in."""
    agent = state.agents.get(agent_id)
    if agent is None:
        return False
    if agent.parent_id is None:
        return _caps(agent)
    return agent.limits.cpu_s is not None or any(_caps(state.agents[i]) for i in ancestry(state, agent))


def _caps(agent: Agent) -> bool:
    return agent.limits.cpu_s is not None or agent.tree_limits.cpu_s is not None
