"""Settle agents that were gone when the supervisor started. Each has ended once the guard or a rearm has confirmed it (promise 1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from console.domain.agent import Agent, AgentState
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.engine.event import LOOKED_OVER, NOT_ANSWERED, NOT_IN_RECORD, OPEN_END, WENT, EndsLearnt
from console.enforcement.state import EngineState


def gone(agent: Agent, at: float) -> Agent:
    """Mark an agent that is gone and was not followed. One that ran behind a ticket of the guard may still live."""
    if agent.process is None:
        return replace(agent, state=AgentState.LOST, state_reason=WENT, ended_at=at)
    return replace(agent, state=AgentState.LOST, state_reason=NOT_ANSWERED, ended_at=None)


def learnt(state: EngineState, event: EndsLearnt) -> Iterator[c.Command]:
    """Only of those whose end is still open: a receipt that came in between has said more."""
    for agent_id, why in event.why:
        if agent_id in state.open_ends and state.agents[agent_id].state_reason != why:
            yield from _said(state, state.agents[agent_id], why, event.at)


def looked_over(state: EngineState, event: e.Rearmed) -> Iterator[c.Command]:
    """End the agents that the guard's record lacks: before a rearm the guard checks every process of the host for them."""
    for agent_id in sorted(state.open_ends):
        if state.agents[agent_id].state_reason == NOT_IN_RECORD:
            yield from _said(state, state.agents[agent_id], LOOKED_OVER, event.at)


def _said(state: EngineState, agent: Agent, why: str, at: float) -> Iterator[c.Command]:
    is_open = why.startswith(OPEN_END)
    yield c.ShowAgent(state.put(replace(agent, state_reason=why, ended_at=None if is_open else at)))
    yield c.Record("supervisor", "agent.lost", f"{agent.agent_id}: {why}", verdict="not_proven" if is_open else "", agent_id=agent.agent_id)
