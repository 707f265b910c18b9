"""Handle gated calls: room is set aside before a call and settled after it.

The engine takes one step at a time, so of a hundred calls for the last place exactly one gets it. Each decision is on disk before its
caller is answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from console.domain.agent import Agent, AgentId
from console.domain.budget import Breach, Reservation, Usage, would_pass
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.errors import Conflict, ConsoleError, Denied, Killed, TooMany
from console.enforcement import charging, limiting
from console.enforcement.state import EngineState

# Each one is kept in memory and on disk until it is settled, and an agent decides how many it opens.
MOST = 1000
"""Calls of one agent that may be under way at once."""
_TAKEN = Conflict("Another call is under way under this key.", "Settle it, or use a new key.")


def asked(state: EngineState, event: e.ReservationAsked) -> Iterator[c.Command]:
    """Sets aside at every node that will be charged, or at none."""
    wanted = event.reservation
    agent = state.agents.get(AgentId(wanted.agent_id))
    if agent is None:
        return
    charging.turn_day(state, event)
    state.budget.worked[agent.agent_id] = event.boot_s
    known = state.budget.reservations.get(wanted.reservation_id)
    if known is not None:  # asked again, since the answer was lost: it holds as it was made, and for nothing else
        same = (known.agent_id, known.estimate) == (wanted.agent_id, wanted.estimate)
        yield c.AnswerReservation(wanted.reservation_id, None if same else _TAKEN)
        return
    error = _refusal(state, agent, wanted)
    if error is not None:
        yield from _denied(state, agent, wanted, error)
        return
    # Held before the answer: the next call in line must not find the same room.
    charging.hold(state, wanted)
    yield c.KeepBooks(event.boot_s, state.budget.boot_id, held={wanted.reservation_id: wanted})
    yield c.AnswerReservation(wanted.reservation_id, None)


def _refusal(state: EngineState, agent: Agent, wanted: Reservation) -> ConsoleError | None:
    if state.killed or agent.agent_id in state.killing or agent.agent_id in state.halting or not agent.state.is_live:
        return Killed("This agent is being stopped.", "")
    if sum(r.agent_id == agent.agent_id for r in state.budget.reservations.values()) >= MOST:
        return TooMany(f"{MOST} calls of this agent are under way already.", "Settle them: what is not settled is counted in full.")
    breach = _no_room(state, agent, wanted.estimate)
    if breach is None:
        return None
    return Denied(f"No room: {breach.words()}, with what is set aside.", "Wait until calls under way are settled, or ask for less.")


def _no_room(state: EngineState, agent: Agent, estimate: Usage) -> Breach | None:
    for node in charging.nodes_of(state, agent):
        limits, used = charging.limits_at(state, node), charging.usage_at(state, node)
        key = "" if node[0] == "agent" or node == ("tree", agent.root_id) else node[1]
        if breach := would_pass(used, limiting.held_at(state, node), estimate, limits, node[0], key):
            return breach
    return None


def _denied(state: EngineState, agent: Agent, wanted: Reservation, error: ConsoleError) -> Iterator[c.Command]:
    """On record once for each agent and reason: it may ask as often as it likes."""
    mark = (agent.agent_id, error.what.partition(":")[2].partition(":")[0])
    if mark not in state.budget.denied:
        state.budget.denied.add(mark)
        yield c.Record(f"agent:{agent.agent_id}", "budget.denied", error.what, verdict="deny", agent_id=agent.agent_id)
        yield c.NoteEvent(agent.agent_id, "budget", f"call refused: {error.what}")
    yield c.AnswerReservation(wanted.reservation_id, error)


def settled(state: EngineState, event: e.ReservationSettled) -> Iterator[c.Command]:
    """What was set aside is given back and what was really used is charged, in one step and one transaction."""
    held = state.budget.reservations.get(event.reservation_id)
    if held is not None:
        yield from _close(state, held, event.used, event, event.errors)


def overdue(state: EngineState, event: e.Event) -> Iterator[c.Command]:
    """Count a call in full when it was not settled in time, or cannot be settled any more."""
    for held in list(state.budget.reservations.values()):
        agent = state.agents.get(AgentId(held.agent_id))
        if event.boot_s >= held.expires_boot or agent is None or not agent.state.is_live:
            words = f"a call was not settled{' in time' if agent is not None and agent.state.is_live else ''}: counted in full"
            yield c.NoteEvent(AgentId(held.agent_id), "budget", words)
            yield from _close(state, held, held.estimate, event, None)


def _close(state: EngineState, held: Reservation, used: Usage, event: e.Event, errors: int | None) -> Iterator[c.Command]:
    # Released before it is charged: counted twice for a moment, it could pass a limit that was never reached.
    charging.release(state, held)
    agent = state.agents.get(AgentId(held.agent_id))
    if agent is None:
        yield c.KeepBooks(event.boot_s, state.budget.boot_id, held={held.reservation_id: None})
        return
    if errors is not None and agent.state.is_live:
        state.budget.worked[agent.agent_id] = event.boot_s
        row = agent.usage.consecutive_errors + errors if errors else 0
        agent = state.put(replace(agent, usage=replace(agent.usage, step_s=0.0, consecutive_errors=row)))
    agent = charging.charge(state, agent, used, event)
    nodes = charging.nodes_of(state, agent)
    yield from charging.said(state, event, agent, used, nodes, held={held.reservation_id: None})
    yield from limiting.look(state, agent, event, nodes)
