"""Who is charged for what: an agent, every tree it is in, its session, its project, the day. And what is kept of that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from console.domain.agent import Agent, AgentId
from console.domain.budget import RESERVABLE, Limits, Reservation, Usage, turned
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.ids import ControlLevel
from console.enforcement.state import EngineState, Node

_NOTHING = Usage()
DEEPEST = 100
"""Links followed upward: parents of what is only seen are what files say, and may lead in a circle."""


def ancestry(state: EngineState, agent: Agent) -> list[AgentId]:
    """The agent and all above it."""
    found = [agent.agent_id]
    while (
        len(found) < DEEPEST and (above := state.agents[found[-1]].parent_id) is not None and above in state.agents and above not in found
    ):
        found.append(above)
    return found


def wide_nodes(state: EngineState, agent: Agent) -> list[Node]:
    """Sessions, project and day. A child in a session of its own is charged to those of all above it as well: no way out of a budget."""
    sessions = [str(agent.context_id)]
    if agent.parent_id is not None:
        sessions = list(dict.fromkeys(str(state.agents[i].context_id) for i in ancestry(state, agent)))
    nodes = [*(("session", key) for key in sessions), ("project", agent.charged_project)]
    return [*nodes, ("day", state.budget.day.date)] if state.budget.day.date else nodes


def nodes_of(state: EngineState, agent: Agent) -> list[Node]:
    """Every node that is charged for this agent, its own first."""
    trees: list[Node] = [("tree", str(i)) for i in ancestry(state, agent)]
    return [("agent", str(agent.agent_id)), *trees, *wide_nodes(state, agent)]


def usage_at(state: EngineState, node: Node) -> Usage:
    """What was charged to a node."""
    scope, key = node
    if scope == "agent":
        agent = state.agents.get(AgentId(key))
        return agent.usage if agent is not None else Usage()
    if scope == "tree":
        return state.tree_usage.get(AgentId(key), Usage())
    return state.budget.spent.get(node, Usage())


def limits_at(state: EngineState, node: Node) -> Limits:
    """What bounds a node."""
    scope, key = node
    if scope in ("agent", "tree"):
        agent = state.agents.get(AgentId(key))
        return Limits() if agent is None else agent.limits if scope == "agent" else agent.tree_limits
    return state.budget.of(scope, key)


def turn_day(state: EngineState, event: e.Event) -> None:
    """The day that holds now; what is charged next is charged to it, calls that are under way among it."""
    if state.budget.turned == (event.at, event.boot_s, state.budget.boot_id):
        return  # many are charged at one moment
    before, state.budget.turned = state.budget.day, (event.at, event.boot_s, state.budget.boot_id)
    state.budget.day = turned(before, event.at, event.boot_s, state.budget.boot_id)
    if before.date != state.budget.day.date:
        state.budget.day_over |= state.budget.observed_said
        state.budget.observed_said.clear()  # an agent that is still over another limit is reported again
        for held in list(state.budget.reservations.values()):
            release(state, held)
            hold(state, held)


def hold(state: EngineState, held: Reservation) -> None:
    """Sets its estimate aside at every node that will be charged."""
    agent = state.agents.get(AgentId(held.agent_id))
    nodes = tuple(nodes_of(state, agent)) if agent is not None else ()
    state.budget.reservations[held.reservation_id] = held
    state.budget.held_at[held.reservation_id] = nodes
    _move(state, nodes, held.estimate, 1)


def release(state: EngineState, held: Reservation) -> None:
    """Gives back exactly what was set aside."""
    del state.budget.reservations[held.reservation_id]
    _move(state, state.budget.held_at.pop(held.reservation_id, ()), held.estimate, -1)


def _move(state: EngineState, nodes: Iterable[Node], estimate: Usage, sign: int) -> None:
    for node in nodes:
        had = state.budget.held.get(node, Usage())
        # Floats of many additions and subtractions drift; a remainder below zero would make room that does not exist.
        left = {name: max(0, getattr(had, name) + sign * getattr(estimate, name)) for name in RESERVABLE}
        left["cost_usd"] = round(float(left["cost_usd"]), 9)
        now = replace(had, **left)
        if now == Usage():
            state.budget.held.pop(node, None)
        else:
            state.budget.held[node] = now


def charge(state: EngineState, agent: Agent, spent: Usage, event: e.Event, *, metered: bool = False, history: bool = False) -> Agent:
    """Adds to everybody who pays. ``metered``: transcripts said so; ``history``: of an earlier time, so it is none of today's."""
    turn_day(state, event)
    budget, before = state.budget, agent.usage
    agent = state.put(agent.changed(usage=before.plus(spent)))

    def grown(had: Usage | None) -> Usage:
        # Of a tree, or a session, of one alone the sum is that one's own, the same object: nothing is added up twice.
        is_its_own = had is before or (had is None and before == _NOTHING)
        return agent.usage if is_its_own else (had or _NOTHING).plus(spent)

    for above in ancestry(state, agent):
        state.tree_usage[above] = grown(state.tree_usage.get(above))
    for node in wide_nodes(state, agent):
        if node[0] == "day":
            if history:
                continue
            seen = state.seen.get(agent.agent_id)
            is_inside = seen is not None and seen.inside is not None  # a part of an agent of ours: transcripts of the host leave it out
            if metered and not is_inside and agent.control_level in (ControlLevel.OBSERVED, ControlLevel.ADOPTED):
                budget.day = replace(budget.day, metered_usd=budget.day.metered_usd + spent.cost_usd)
        budget.spent[node] = grown(budget.spent.get(node))
    return agent


def kept(state: EngineState, event: e.Event, agent: Agent, nodes: Iterable[Node], **more: object) -> c.KeepBooks:
    """The books of an agent as they are now. ``nodes``: as ``nodes_of`` says."""
    # Its own row says what it used, and a tree of one is its agent.
    usage = {n: usage_at(state, n) for n in nodes if n[0] != "agent" and (n[0] != "tree" or state.children.get(AgentId(n[1])))}
    return c.KeepBooks(event.boot_s, state.budget.boot_id, (agent,), usage, day=state.budget.day, **more)  # type: ignore[arg-type]


def said(state: EngineState, event: e.Event, agent: Agent, spent: Usage, nodes: list[Node], **more: object) -> Iterator[c.Command]:
    """What follows from a charge: kept in one transaction, metered, shown."""
    yield kept(state, event, agent, nodes, **more)
    if spent != _NOTHING:
        yield c.Charged(event.boot_s, tuple(nodes), spent)
    yield c.ShowAgent(agent)
