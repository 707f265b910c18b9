"""Budgets over a restart: what was charged stays charged, what was set aside stays set aside, and time that passed meanwhile counts."""

from __future__ import annotations

from dataclasses import replace

from console.domain import event as e
from console.domain.agent import AgentId, ControlLevel
from console.domain.budget import Usage, largest
from console.enforcement import charging
from console.enforcement.budget_state import Node
from console.enforcement.identity import TELEMETRY
from console.enforcement.state import EngineState

_MAY_BE_TWICE = (ControlLevel.OBSERVED, ControlLevel.ADOPTED)


def restored(state: EngineState, event: e.Restored) -> None:
    """Restore the budgets after the agents are known again. Where a stored sum and the sum of the agents differ, the larger one counts.

    Observed agents are in the stored sum already. What they used may also be the use of the adopted agent in whose processes they ran. So
    for them the stored sum alone is right.
    """
    budget, kept = state.budget, event.budget
    budget.boot_id, budget.day = kept.boot_id, kept.day
    budget.limits, budget.defaults = dict(kept.limits), dict(kept.defaults)
    for (scope, key, name), mark in kept.warned.items():
        budget.warned.setdefault((scope, key), {})[name] = mark
    charging.turn_day(state, event)
    sums = _sums(state, event)
    ours = [a for i in state.live if (a := state.agents[i]).control_level is not ControlLevel.OBSERVED]
    live = {node for agent in ours for node in charging.wide_nodes(state, agent)}
    for node, (usage, boot_s, boot_id) in kept.usage.items():
        if node in live and boot_id == kept.boot_id:
            usage = replace(usage, wall_s=usage.wall_s + max(0.0, event.boot_s - boot_s))  # it ran on while nobody looked
        sums[node] = largest(sums.get(node, Usage()), usage)
    today: Node = ("day", budget.day.date)
    sums[today] = largest(sums.get(today, Usage()), Usage(cost_usd=kept.today_usd + budget.day.metered_usd))
    for node, usage in sums.items():
        if node[0] == "tree":
            state.tree_usage[AgentId(node[1])] = usage
        else:
            budget.spent[node] = usage
    for held, boot_id in kept.reservations:
        # Another boot's clock says nothing: such a call is over, and counted in full at the next tick.
        charging.hold(state, held if boot_id == kept.boot_id else replace(held, expires_boot=0.0))
    budget.ticked = event.boot_s


def _sums(state: EngineState, event: e.Restored) -> dict[Node, Usage]:
    """What the agents that are known say by themselves: an older version kept no more."""
    sums: dict[Node, Usage] = {}
    for agent in event.agents:
        if agent.source == TELEMETRY:
            continue  # charged to nobody
        for node in charging.nodes_of(state, agent):
            if node in event.budget.usage and node != ("tree", str(agent.agent_id)) and agent.control_level in _MAY_BE_TWICE:
                continue
            if node[0] not in ("agent", "day"):
                sums[node] = sums.get(node, Usage()).plus(agent.usage)
    return sums
