"""Budgets: usage only grows, is charged to the agent and its tree, and a cap that is hit halts in the middle of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from console.domain import command as c
from console.domain import event as e
from console.domain.agent import Agent, AgentId, AgentState, ControlLevel
from console.domain.budget import Breach, Usage, first_breach
from console.enforcement.state import EngineState


def reported(state: EngineState, event: e.UsageReported) -> Iterator[c.Command]:
    """Adds the increments and looks at the caps."""
    agent = state.agents.get(event.agent_id)
    if agent is None or not agent.state.is_live:
        return
    spent = Usage(iterations=event.iterations, tokens=event.tokens, tool_calls=event.tool_calls, cost_usd=event.cost_usd)
    agent = replace(agent, usage=agent.usage.plus(spent))
    if event.action:
        agent = replace(agent, last_action=event.action, last_action_at=event.at)
        yield c.NoteEvent(agent.agent_id, "action", event.action)
    state.tree_usage[agent.root_id] = state.tree_usage.get(agent.root_id, Usage()).plus(spent)
    yield c.ShowAgent(state.put(agent))
    yield from _look(state, agent, event)


def processor(state: EngineState, event: e.ProcessorUsed) -> Iterator[c.Command]:
    """Processor time as the kernel counts it: no report of the agent's is needed, and it only grows."""
    agent = state.agents.get(event.agent_id)
    if agent is None or not agent.state.is_live or event.cpu_s <= agent.usage.cpu_s:
        return
    tree = state.tree_usage.get(agent.root_id, Usage())
    state.tree_usage[agent.root_id] = replace(tree, cpu_s=tree.cpu_s + event.cpu_s - agent.usage.cpu_s)
    agent = state.put(replace(agent, usage=replace(agent.usage, cpu_s=event.cpu_s)))
    yield from _look(state, agent, event)


def ticked(state: EngineState, event: e.ClockTicked) -> Iterator[c.Command]:
    """Wall time on CLOCK_BOOTTIME: neither suspend nor a changed wall clock stretches a budget."""
    for agent_id in sorted(state.live):
        born = state.born_boot.get(agent_id)
        agent = state.agents[agent_id]
        if born is None or agent.control_level is ControlLevel.OBSERVED:
            continue
        wall = max(agent.usage.wall_s, event.boot_s - born)
        agent = state.put(replace(agent, usage=replace(agent.usage, wall_s=wall)))
        tree = state.tree_usage.get(agent.root_id, Usage())
        if agent_id == agent.root_id or wall > tree.wall_s:
            state.tree_usage[agent.root_id] = replace(tree, wall_s=max(tree.wall_s, wall))
        yield from _look(state, agent, event)


def _look(state: EngineState, agent: Agent, event: e.Event) -> Iterator[c.Command]:
    if agent.agent_id in state.halting or not agent.state.is_live or agent.state is AgentState.STARTING:
        return
    if breach := first_breach(agent.usage, agent.limits, "agent"):
        yield from _halt(state, state.subtree(agent.agent_id), breach, event)
    root = state.agents.get(agent.root_id)
    if root is not None and (breach := first_breach(state.tree_usage.get(agent.root_id, Usage()), root.tree_limits, "tree")):
        yield from _halt(state, state.subtree(agent.root_id), breach, event)


def _halt(state: EngineState, agent_ids: list[AgentId], breach: Breach, event: e.Event) -> Iterator[c.Command]:
    # One that is still starting has no ticket yet, so the guard could not prove its end: it is halted at the next tick.
    ready = [i for i in agent_ids if i in state.live and i not in state.halting and state.agents[i].state is not AgentState.STARTING]
    halted = [i for i in ready if state.agents[i].control_level is not ControlLevel.OBSERVED]
    if not halted:
        return
    reason = breach.words()
    state.halting.update(halted)
    # Acts first, records after: what only stops is exempt from "record first" (promise 5).
    yield c.HaltAgents(tuple(halted), reason)
    for agent_id in halted:
        agent = replace(
            state.agents[agent_id], state=AgentState.OVER_BUDGET, state_reason=reason, last_action=reason, last_action_at=event.at
        )
        yield c.ShowAgent(state.put(agent))
        yield c.NoteEvent(agent_id, "budget", reason)
    yield c.Record("supervisor", "budget.halt", reason, verdict="halt", agent_id=halted[0], data={"agents": halted}, must=True)
