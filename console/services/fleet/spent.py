"""Report what an agent spent: the burn that the window shows, the sum of the day, and the samples that a restart reads back."""

from __future__ import annotations

from console.domain.agent import AgentId
from console.services.fleet.core import Core
from console.services.records.record_writer import Scribe


def tell_spend(core: Core, scribe: Scribe, agent_id: AgentId, at: float, cost_usd: float, tokens: int) -> None:
    """``cost_usd`` and ``tokens`` since it was told last; nothing of both is not told. The agent is known."""
    if cost_usd or tokens:
        core.meters.add(agent_id, at, cost_usd)
        scribe.spend(agent_id, core.state.agents[agent_id].root_id, at, cost_usd, tokens)
