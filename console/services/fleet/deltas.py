"""Who changed, told to every console: whole once, then only what is other than was told last."""

from __future__ import annotations

from typing import Any

from console.api.agents.fleet_changes import CHUNK
from console.domain.agent import AgentId
from console.services.fleet.core import Core
from console.services.fleet.views import agent_fields

SHIFT = 5
"""So many seconds until everybody's turn has come."""
WHOLE = 3
"""So many turns until all of an agent is compared."""


class AgentDeltas:
    """Lives on the loop's thread. ``tell`` sends what is dirty; ``forget`` makes the next word of an agent a whole one."""

    __slots__ = ("_core", "_told")

    def __init__(self, core: Core) -> None:
        self._core = core
        self._told: dict[AgentId, dict[str, Any]] = {}
        """What the consoles have received of each living agent."""

    def forget(self) -> None:
        """Forget what was sent of changing agents: a console reads the whole fleet, and may get newer values than those."""
        for agent_id in self._core.dirty:
            self._told.pop(agent_id, None)

    def pass_time(self, beat: int, at: float) -> None:
        """Once a second: mark the agents that must be sent again because time alone changes something of them. Every agent comes each 5 s.

        An agent that is only observed, without parent or children, is sent when its burn changed. The rest of it is compared each 15 s.
        """
        core = self._core
        state = core.state
        for agent_id in sorted(state.live)[beat % SHIFT :: SHIFT]:
            if agent_id in state.held or state.agents[agent_id].parent_id is not None or state.children.get(agent_id):
                core.dirty.add(agent_id)
                continue
            told, meter = self._told.get(agent_id), core.meters.by_agent.get(agent_id)
            if told is None or beat // SHIFT % WHOLE == hash(agent_id) % WHOLE or (meter is not None and told["burn"] != meter.burn(at)):
                core.dirty.add(agent_id)

    def tell(self, at: float) -> None:
        """Publishes every dirty agent, in messages of at most CHUNK; the totals with the first."""
        core = self._core
        dirty, core.dirty = core.dirty, set()
        totals = {
            "spend_today_usd": round(core.meters.spent_today(at), 6),
            "burn_usd_per_h": round(core.meters.rate(at, core.state.spending), 4),
        }
        known = sorted(i for i in dirty if i in core.state.agents)
        for start in range(0, len(known) or 1, CHUNK):
            whole: list[dict[str, Any]] = []
            changed: list[tuple[AgentId, dict[str, Any]]] = []
            for agent_id in known[start : start + CHUNK]:
                self._tell_one(agent_id, at, whole, changed)
            core.hub.publish("agents", {"upsert": whole, "patch": changed, "remove": [], **totals})

    def _tell_one(self, agent_id: AgentId, at: float, whole: list[dict[str, Any]], changed: list[tuple[AgentId, dict[str, Any]]]) -> None:
        core = self._core
        new = agent_fields(core.state.agents[agent_id], core.state, core.meters, at)
        told = self._told.get(agent_id)
        if told is None or told.keys() != new.keys():
            whole.append(new)
        else:
            fields = {name: value for name, value in new.items() if told[name] != value}
            if fields:
                changed.append((agent_id, fields))
        if agent_id in core.state.live:
            self._told[agent_id] = new
        else:
            self._told.pop(agent_id, None)
