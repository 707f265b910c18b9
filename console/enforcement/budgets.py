"""Budgets: usage only grows, is charged to all who pay for it, and a cap that is hit halts in the middle of a run.

Over a restart what was charged stays charged, what was set aside stays set aside, and time that passed meanwhile counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from console.domain.agent import Agent, AgentId, AgentState
from console.domain.budget import UNCAPPED, Usage, largest, shortfall
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.ids import ControlLevel
from console.enforcement import charging, limiting
from console.enforcement.identity import TELEMETRY
from console.enforcement.reserving import overdue
from console.enforcement.state import EngineState, Node

_NOTHING = Usage()
KEEP_S = 30.0
"""Wall time of sessions and days is written so often when nothing else changes; a restart adds what passed since."""


def reported(state: EngineState, event: e.UsageReported) -> Iterator[c.Command]:
    """Adds the increments and looks at the caps."""
    agent = state.agents.get(event.agent_id)
    if agent is None or not agent.state.is_live:
        return
    spent = Usage(iterations=event.iterations, tokens=event.tokens, tool_calls=event.tool_calls, cost_usd=event.cost_usd)
    agent = charging.charge(state, _worked(state, agent, event, event.action, event.errors), spent, event)
    if event.action:
        yield c.NoteEvent(agent.agent_id, "action", event.action)
    yield from _charged(state, event, agent, spent)


def _worked(state: EngineState, agent: Agent, event: e.Event, action: str, errors: int | None = 0) -> Agent:
    """Note a sign of work: the step's clock starts again, and errors in a row count until a step goes well. The caller stores the agent."""
    state.budget.worked[agent.agent_id] = event.boot_s
    row = 0 if errors == 0 else agent.usage.consecutive_errors + (errors or 0)
    said = {"last_action": action, "last_action_at": event.at} if action else {}
    if (agent.usage.step_s, agent.usage.consecutive_errors) != (0.0, row):
        said["usage"] = replace(agent.usage, step_s=0.0, consecutive_errors=row)
    return agent.changed(**said) if said else agent


def _charged(state: EngineState, event: e.Event, agent: Agent, spent: Usage) -> Iterator[c.Command]:
    """What follows once it was charged: it is kept and shown, and caps that are reached halt."""
    nodes = charging.nodes_of(state, agent)
    yield from charging.said(state, event, agent, spent, nodes)
    yield from limiting.look(state, agent, event, nodes)


def asked(state: EngineState, event: e.PermissionAsked) -> None:
    """Asking is a sign of work as well."""
    if (agent := state.agents.get(event.agent_id)) is not None and agent.state.is_live:
        state.budget.worked[agent.agent_id] = event.boot_s


def metered(
    state: EngineState, agent_id: AgentId, total: Usage, event: e.Event, *, action: str = "", history: bool = False
) -> Iterator[c.Command]:
    """What an agent's own transcripts say it has used so far: by how much that is above what was counted is charged to all who pay.

    The larger of what it reports and what its transcripts say holds, so nothing counts twice, and no transcript that shrinks lowers
    anything. It may come after the agent's end: then it tells by how much the cap was passed. ``action``: what they say it did last.
    ``history``: it was spent before it was seen, so it is not today's.
    """
    agent = state.agents.get(agent_id)
    if agent is None:
        return
    grown = shortfall(total, agent.usage)
    if grown == _NOTHING:
        return
    state.budget.metered.add(agent_id)
    if agent.state.is_live:
        agent = _worked(state, agent, event, action)
    elif action:
        agent = agent.changed(last_action=action, last_action_at=event.at)
    agent = charging.charge(state, agent, grown, event, metered=True, history=history)
    if agent.halt is not None and agent.halt.used_at_end is not None and not agent.state.is_live:
        late = agent.halt.used_at_end + float(getattr(grown, agent.halt.limit))
        agent = state.put(replace(agent, halt=replace(agent.halt, used_at_end=late)))
    yield from _charged(state, event, agent, grown)


def summed(state: EngineState, event: e.TranscriptsSummed) -> Iterator[c.Command]:
    """The day is charged no less than what transcripts of the whole host say of it."""
    charging.turn_day(state, event)
    budget, node = state.budget, ("day", state.budget.day.date)
    missing = event.cost_usd - budget.day.metered_usd
    if missing <= 1e-9 or not node[1]:
        return
    spent = Usage(cost_usd=missing)
    budget.day = replace(budget.day, metered_usd=event.cost_usd)
    budget.spent[node] = budget.spent.get(node, Usage()).plus(spent)
    yield c.KeepBooks(event.boot_s, budget.boot_id, usage={node: budget.spent[node]}, day=budget.day)
    yield from limiting.look_wide(state, node, event)


def processor(state: EngineState, event: e.ProcessorUsed) -> Iterator[c.Command]:
    """Processor time as the kernel counts it: no report of the agent's is needed, and it only grows."""
    agent = state.agents.get(event.agent_id)
    if agent is None or not agent.state.is_live or event.cpu_s <= agent.usage.cpu_s:
        return
    agent = charging.charge(state, agent, Usage(cpu_s=event.cpu_s - agent.usage.cpu_s), event)
    agent = state.put(agent.changed(usage=replace(agent.usage, cpu_s=event.cpu_s)))
    yield from limiting.look(state, agent, event, charging.nodes_of(state, agent))


def ticked(state: EngineState, event: e.ClockTicked) -> Iterator[c.Command]:
    """Wall time on CLOCK_BOOTTIME: neither suspend nor a changed wall clock stretches a budget. Time spent frozen counts."""
    budget = state.budget
    charging.turn_day(state, event)
    passed = max(0.0, event.boot_s - budget.ticked) if budget.ticked else 0.0
    budget.ticked = event.boot_s
    ours = sorted(state.held)
    yield from overdue(state, event)
    yield from (c.ShowAgent(state.agents[i]) for i in sorted(budget.day_over - budget.observed_said) if i in state.agents)
    budget.day_over.clear()
    open_nodes = {node for i in ours for node in charging.wide_nodes(state, state.agents[i])}
    for node in open_nodes:
        # Of a session, a project or a day: how long anything of it was running.
        used = budget.spent.get(node, Usage())
        budget.spent[node] = replace(used, wall_s=used.wall_s + passed)
    trees: set[Node] = set()
    for agent_id in ours:
        if agent_id in state.live and (born := state.born_boot.get(agent_id)) is not None:
            agent = _aged(state, agent_id, event, born, passed)
            trees.update(("tree", i) for i in charging.ancestry(state, agent) if state.agents[i].tree_limits != UNCAPPED)
            if agent.limits != UNCAPPED:
                yield from limiting.look_own(state, agent, event)
    # What many share is looked at once, not once for each of them.
    shared = sorted(n for n in trees | open_nodes if charging.limits_at(state, n) != UNCAPPED)
    for node in shared:
        yield from limiting.look_wide(state, node, event)
    for node in (n for n in shared if limiting.bounds_steps(state, n)):
        yield from limiting.look_steps(state, node, event)
    if event.boot_s - budget.kept_boot >= KEEP_S and open_nodes:
        budget.kept_boot = event.boot_s
        yield c.KeepBooks(event.boot_s, budget.boot_id, usage={n: budget.spent[n] for n in open_nodes}, day=budget.day)


def _aged(state: EngineState, agent_id: AgentId, event: e.ClockTicked, born: float, passed: float) -> Agent:
    agent, budget = state.agents[agent_id], state.budget
    wall = max(agent.usage.wall_s, event.boot_s - born)
    if agent.state is AgentState.FROZEN or agent.state is AgentState.STARTING:
        # What cannot run cannot work: its step stands still. Its wall time does not.
        budget.worked[agent_id] = budget.worked.get(agent_id, event.boot_s - passed) + passed
    step = max(0.0, event.boot_s - budget.worked.setdefault(agent_id, event.boot_s))
    agent = state.put(agent.changed(usage=replace(agent.usage, wall_s=wall, step_s=step)))
    for above in charging.ancestry(state, agent):
        tree = state.tree_usage.get(above, Usage())
        if wall > tree.wall_s:
            state.tree_usage[above] = replace(tree, wall_s=wall)
    return agent


def measured(state: EngineState, agent: Agent) -> Agent:
    """A halted agent whose end is proven: by how much its cap was passed by then."""
    if agent.halt is None or agent.halt.used_at_end is not None:
        return agent
    node = (agent.halt.scope, agent.halt.key or str(agent.root_id if agent.halt.scope == "tree" else agent.agent_id))
    used = float(getattr(charging.usage_at(state, node), agent.halt.limit))
    if agent.halt.limit in ("step_s", "consecutive_errors"):
        used = float(getattr(agent.usage, agent.halt.limit))
    return replace(agent, halt=replace(agent.halt, used_at_end=max(used, agent.halt.used)))


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
