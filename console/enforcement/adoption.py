"""An observed agent that the guard holds from now on: the same row, another control level."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from console.domain import command as c
from console.domain import event as e
from console.domain.agent import Agent, AgentState, ControlLevel
from console.domain.budget import Usage
from console.enforcement.charging import ancestry
from console.enforcement.state import EngineState

NOTE = "adopted: it stays on the network it was started with"
JUDGED = (AgentState.KILLED, AgentState.HALTED, AgentState.ALIVE_AFTER_KILL)
"""A kill came in between, and its receipt is here first: what that says stays."""
TICKS = 100
"""proc(5): start times count a hundred to the second."""


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
    """What it used, its sub-agents included: they were charged as rows of their own, and are its own use from now on, to nobody again."""
    usage = agent.usage
    for part in [state.agents[i] for i, seen in state.seen.items() if seen.part and seen.inside is None and i in state.agents]:
        if part.agent_id != agent.agent_id and agent.agent_id in ancestry(state, part):
            usage = usage.plus(Usage(iterations=part.usage.iterations, tokens=part.usage.tokens, cost_usd=part.usage.cost_usd))
    return usage
