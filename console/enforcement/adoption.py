"""An observed agent that the guard holds from now on: the same row, another control level."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from console.domain.agent import Agent, AgentId, AgentState
from console.domain.budget import Usage, shortfall
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.ids import ControlLevel
from console.enforcement.charging import ancestry, kept, nodes_of
from console.enforcement.state import EngineState

NOTE = "adopted: it stays on the network it was started with"
JUDGED = (AgentState.KILLED, AgentState.HALTED, AgentState.ALIVE_AFTER_KILL)
"""A kill came in between, and its receipt is here first: what that says stays."""
NO_CGROUP = "there is no writable cgroup here (watchfloor doctor)"
TICKS = 100
"""proc(5): start times count a hundred to the second."""


def instead_of(state: EngineState, agent_id: AgentId, why_not: str = "") -> str:
    """Return what stops an agent that is only observed where it cannot be adopted, for people; empty: adopt it.

    ``why_not``: why the guard would refuse it, where that was asked.
    """
    why_not = why_not or ("" if state.can_adopt else NO_CGROUP)
    if not why_not:
        return ""
    way = f"kill it (watchfloor kill {agent_id})" if agent_id in state.kill_observed else "end it where it was started"
    return f"{way}; it cannot be adopted: {why_not}"


def adopted(state: EngineState, event: e.Adopted) -> Iterator[c.Command]:
    """It is held: kill and freeze reach it, and its wall time counts from its own start."""
    agent = state.agents.get(event.agent_id)
    if agent is None or agent.control_level is not ControlLevel.OBSERVED:
        return
    state.born_boot[agent.agent_id] = event.process.start_ticks / TICKS
    state.best_effort[agent.agent_id] = event.best_effort
    state.pids[agent.agent_id] = event.moved
    if agent.state not in JUDGED:
        back = AgentState.RUNNING if not agent.state.is_live else agent.state
        agent = replace(agent, state=back, state_reason="", ended_at=None)
    usage = _with_parts(state, agent)
    agent = replace(agent, control_level=ControlLevel.ADOPTED, process=event.process, network_note=NOTE, usage=usage)
    yield c.ShowAgent(state.put(replace(agent, last_action="adopted", last_action_at=event.at)))
    yield c.NoteEvent(
        agent.agent_id, "adopted", f"by {event.by}: {event.moved} processes" + (f"; {event.best_effort}" if event.best_effort else "")
    )
    data = {"pid": event.process.pid, "start_ticks": event.process.start_ticks, "moved": event.moved, "best_effort": event.best_effort}
    what = f"{agent.agent_id} is adopted: {event.moved} processes" + (f", best effort: {event.best_effort}" if event.best_effort else "")
    yield c.Record(event.by, "adopt.done", what, verdict="ok", agent_id=agent.agent_id, data=data, must=True)


def _with_parts(state: EngineState, agent: Agent) -> Usage:
    """Return what the agent used, its sub-agents included. They were charged as rows of their own, and are not charged again."""
    usage = agent.usage
    for part in [state.agents[i] for i, seen in state.seen.items() if seen.part and seen.inside is None and i in state.agents]:
        if part.agent_id != agent.agent_id and agent.agent_id in ancestry(state, part):
            usage = usage.plus(_charged(part))
            state.taken_in[part.agent_id] = agent.agent_id, _charged(part)
    return usage


def _charged(agent: Agent) -> Usage:
    """Of what it used, that which transcripts tell."""
    return Usage(iterations=agent.usage.iterations, tokens=agent.usage.tokens, cost_usd=agent.usage.cost_usd)


def taken_in(state: EngineState, event: e.Sighted, agent_id: AgentId, names: Iterable[str]) -> Iterator[c.Command]:
    """Join rows that are seen inside an adopted agent for the first time: its session, and sub-agents. Each was a row of its own before.

    What was charged for them counts as the agent's own use from now on, and is not charged again. ``names``: under which sources know what
    is seen inside it now.
    """
    agent = state.agents[agent_id]
    if agent.control_level is not ControlLevel.ADOPTED:
        return
    found = {state.rows[name] for name in names if name in state.rows} - {agent_id}
    if not (grown := [i for i in sorted(found) if _is_new_inside(state, i)]):
        return  # sources look one after the other: of a row that one of them still shows by itself more may come
    for other in grown:
        part = state.agents[other]
        more = shortfall(_charged(part), state.taken_in.get(other, (agent_id, Usage()))[1])
        state.taken_in[other] = agent_id, _charged(part)
        agent = state.put(replace(agent, usage=agent.usage.plus(more)))
        above = ancestry(state, part)
        for node in ancestry(state, agent):
            if node not in above:
                state.tree_usage[node] = state.tree_usage.get(node, Usage()).plus(more)
    state.budget.metered.add(agent_id)
    yield kept(state, event, agent, nodes_of(state, agent))
    yield c.ShowAgent(agent)


def _is_new_inside(state: EngineState, agent_id: AgentId) -> bool:
    """Return whether the agent was charged as a row of its own until now. Use that only telemetry reported was never charged."""
    agent, seen = state.agents.get(agent_id), state.seen.get(agent_id)
    is_own = agent is not None and agent.control_level is ControlLevel.OBSERVED and seen is not None and seen.inside is None
    return is_own and agent_id in state.budget.metered
