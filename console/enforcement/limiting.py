"""Caps: warned of at 75 and 90 %, acted on at 100 %, changed while agents run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace

from console.domain.agent import Agent, AgentId, AgentState
from console.domain.budget import (
    GAUGES,
    LIMIT_NAMES,
    RESERVABLE,
    SUMMED,
    UNCAPPED,
    Breach,
    Halt,
    Limits,
    Usage,
    first_breach,
    until_midnight,
)
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.ids import ControlLevel
from console.domain.words import notice
from console.enforcement import charging
from console.enforcement.adoption import instead_of
from console.enforcement.state import EngineState, Node

# The higher mark first: a leap over both is told once, with the one that matters.
MARKS = (90, 75)
FULL = 100
OBSERVED = "observed: no limit stops it"
PASSED = "limit reached, this agent is only observed"
NAMED = 3
"""Agents that a warning of a shared limit names."""
# A session may hold hundreds of agents, and each warning is a message that an agent reads and pays for.
TOLD = 50
"""The most agents of a session or a project that get a warning themselves."""


def look(state: EngineState, agent: Agent, event: e.Event, nodes: list[Node]) -> Iterator[c.Command]:
    """Every cap that this agent's use counts toward. ``nodes``: as ``charging.nodes_of`` says."""
    if agent.state is AgentState.STARTING:
        return
    for node in nodes:
        limits = charging.limits_at(state, node)
        if limits is UNCAPPED or limits == UNCAPPED:
            continue
        yield from _look_at(state, node, limits, agent, event)


def look_own(state: EngineState, agent: Agent, event: e.Event) -> Iterator[c.Command]:
    """The agent's own caps alone."""
    if agent.state is not AgentState.STARTING:
        yield from _look_at(state, ("agent", str(agent.agent_id)), agent.limits, agent, event)


def bounds_steps(state: EngineState, node: Node) -> bool:
    """Whether it bounds single steps of each agent in it."""
    limits = charging.limits_at(state, node)
    return any(getattr(limits, name) is not None for name in GAUGES)


def look_steps(state: EngineState, node: Node, event: e.Event) -> Iterator[c.Command]:
    """Check each agent in a node that limits steps. Only such an agent and what it spawned are halted."""
    limits = charging.limits_at(state, node)
    for agent_id in members(state, node):
        agent = state.agents.get(agent_id)
        if agent is None or not agent.state.is_live or agent.state is AgentState.STARTING:
            continue
        if breach := first_breach(agent.usage, limits, node[0], _key(state, node), GAUGES):
            yield from halt(state, state.subtree(agent_id), breach, event, node)


def look_wide(state: EngineState, node: Node, event: e.Event) -> Iterator[c.Command]:
    """Check a node as a whole, whichever of its agents used it up."""
    limits = charging.limits_at(state, node)
    if limits != UNCAPPED:
        yield from _warned(state, node, limits, None, event)
        if breach := _summed_breach(state, node, limits):
            yield from halt(state, members(state, node), breach, event, node)


def _look_at(state: EngineState, node: Node, limits: Limits, agent: Agent, event: e.Event) -> Iterator[c.Command]:
    yield from _warned(state, node, limits, agent, event)
    if node[0] == "agent":
        breach = first_breach(agent.usage, limits, "agent")
    else:
        breach = _summed_breach(state, node, limits)
    if breach:
        yield from halt(state, members(state, node), breach, event, node)
    elif node[0] != "agent" and (breach := first_breach(agent.usage, limits, node[0], _key(state, node), GAUGES)):
        # A step that takes too long, or fails again and again, is one agent's: it and what it spawned are halted, and no other agent.
        yield from halt(state, state.subtree(agent.agent_id), breach, event, node)


def _summed_breach(state: EngineState, node: Node, limits: Limits) -> Breach | None:
    return first_breach(charging.usage_at(state, node), limits, node[0], _key(state, node), SUMMED)


def _key(state: EngineState, node: Node) -> str:
    """What the words name: of a whole tree its root is known anyway."""
    if node[0] == "agent":
        return ""
    if node[0] == "tree":
        agent = state.agents.get(AgentId(node[1]))
        return "" if agent is None or agent.root_id == agent.agent_id else node[1]
    return node[1]


def members(state: EngineState, node: Node) -> list[AgentId]:
    """Return the agents that a breach of the node halts, with all that they spawned."""
    scope, key = node
    if scope in ("agent", "tree"):
        return state.subtree(AgentId(key))
    if scope == "day":
        return sorted(state.live)
    # Those below one that has ended are in it as well.
    return [i for i in sorted(state.live) if (scope, key) in charging.wide_nodes(state, state.agents[i])]


def spent_out(state: EngineState, nodes: list[Node]) -> Breach | None:
    """The first of these nodes that is used up: nothing starts in it."""
    for node in nodes:
        limits = charging.limits_at(state, node)
        if limits != UNCAPPED and (breach := _summed_breach(state, node, limits)):
            return breach
    return None


def halt(state: EngineState, agent_ids: list[AgentId], breach: Breach, event: e.Event, node: Node) -> Iterator[c.Command]:
    """Through the guard, verified. What is only observed cannot be stopped, and that is said."""
    # One that is still starting has no ticket yet, so the guard could not prove its end: it is halted at the next tick.
    ready = [i for i in agent_ids if i in state.live and i not in state.halting and state.agents[i].state is not AgentState.STARTING]
    halted = [i for i in ready if state.agents[i].control_level is not ControlLevel.OBSERVED]
    reason = breach.words()
    state.budget.warned.setdefault(node, {})[breach.limit] = FULL
    if halted:
        state.halting.update(halted)
        # Acts first, records after: what only stops is exempt from "record first" (promise 5).
        yield c.HaltAgents(tuple(halted), reason)
        measure = Halt(breach.scope, node[1] if node[0] != "agent" else "", breach.limit, breach.cap, breach.used)
        for agent_id in halted:
            agent = state.agents[agent_id]
            agent = replace(
                agent, state=AgentState.OVER_BUDGET, state_reason=reason, last_action=reason, last_action_at=event.at, halt=measure
            )
            yield c.ShowAgent(state.put(agent))
            yield c.NoteEvent(agent_id, "budget", reason)
        data = {"agents": halted[:500], "agents_n": len(halted), "scope": breach.scope, "key": node[1], "limit": breach.limit}
        yield c.Record("supervisor", "budget.halt", reason, verdict="halt", agent_id=halted[0], data=data, must=True)
        who = halted[0] if len(halted) == 1 else f"{len(halted)} agents"
        yield c.Announce(f"{who} halted, {reason}{_spenders(state, node, breach.limit, event.at)}", "red")
        yield c.WriteHaltNote(tuple(halted), event.at, reason)
        yield _mark(state, node, breach.limit, FULL, event)
    # What is only seen inside an agent that is halted ends with it.
    seen = [i for i in ready if i not in halted and not set(charging.ancestry(state, state.agents[i])[1:]) & state.halting]
    yield from _only_seen(state, seen, reason)


def _only_seen(state: EngineState, agent_ids: list[AgentId], reason: str) -> Iterator[c.Command]:
    new = [i for i in agent_ids if i not in state.budget.observed_said]
    for agent_id in new:
        state.budget.observed_said.add(agent_id)
        words = f"{reason}; {PASSED}: {_way_out(state, agent_id)}"
        yield c.ShowAgent(state.agents[agent_id])
        yield c.NoteEvent(agent_id, "budget", words)
        yield c.Record("supervisor", "budget.over", f"{agent_id}: {words}", verdict="not_stopped", agent_id=agent_id, must=True)
    if len(new) == 1:
        yield c.Announce(f"{new[0]} is over its budget and goes on: {reason}; {PASSED}: {_way_out(state, new[0])}", "red")
    elif new:
        yield c.Announce(f"{len(new)} observed agents are over a limit and go on: {reason}. Each row says how to stop its agent.", "red")


def _way_out(state: EngineState, agent_id: AgentId) -> str:
    return instead_of(state, agent_id) or f"adopt or kill it (watchfloor adopt {agent_id}, or watchfloor kill {agent_id})"


def passed_words(state: EngineState, agent: Agent) -> str:
    """What an operator reads of an agent that has reached a limit and goes on, because it is only observed; empty for any other."""
    goes_on = agent.state.is_live and agent.control_level is ControlLevel.OBSERVED and agent.agent_id in state.budget.observed_said
    return f"{PASSED}: {_way_out(state, agent.agent_id)}" if goes_on else ""


def _mark(state: EngineState, node: Node, name: str, mark: int, event: e.Event) -> c.KeepBooks:
    return c.KeepBooks(event.boot_s, state.budget.boot_id, warned={(*node, name): mark})


def _warned(state: EngineState, node: Node, limits: Limits, agent: Agent | None, event: e.Event) -> Iterator[c.Command]:
    """Each mark once; one that is taken back by a higher limit is said again when it is passed again."""
    said = state.budget.warned.get(node, {})
    for name in LIMIT_NAMES:
        cap = getattr(limits, name)
        if cap is None or (name in GAUGES and (node[0] != "agent" or agent is None)):
            continue
        used = float(getattr(charging.usage_at(state, node), name))
        mark, had = _mark_of(used, float(cap)), said.get(name, 0)
        if mark in (had, FULL) or (name in GAUGES and mark < had):
            continue
        said = state.budget.warned.setdefault(node, said)
        said[name] = mark
        if mark > had:
            yield from _say(state, node, name, mark, used, float(cap), agent, event)
        yield _mark(state, node, name, mark, event)


def _spenders(state: EngineState, node: Node, name: str, at: float) -> str:
    """Of a limit that many share: the agents that used most of it, by name; those that ended today are among them."""
    scope, key = node
    if scope == "agent" or name not in RESERVABLE:
        return ""
    if scope == "tree":
        agents = [state.agents[i] for i in state.subtree(AgentId(key)) if i in state.agents]
    elif scope == "day":
        midnight = at + until_midnight(at) - 86400
        agents = [a for a in state.agents.values() if a.state.is_live or (a.ended_at or 0.0) >= midnight]
    else:
        agents = [a for a in state.agents.values() if node in charging.wide_nodes(state, a)]
    if scope == "tree" and len(agents) == 1:
        return ""
    used = [(float(getattr(a.usage, name)), a.name or str(a.agent_id)) for a in agents]
    most = sorted((u for u in used if u[0] > 0), key=lambda u: (-u[0], u[1]))[:NAMED]
    shape = "${:,.2f}" if name == "cost_usd" else "{:g}"
    return f". Most by {', '.join(f'{who[:40]} ({shape.format(amount)})' for amount, who in most)}" if most else ""


def _mark_of(used: float, cap: float) -> int:
    if round(used, 9) >= cap:
        return FULL
    return next((mark for mark in MARKS if used * 100 >= cap * mark), 0)


def _say(
    state: EngineState, node: Node, name: str, mark: int, used: float, cap: float, agent: Agent | None, event: e.Event
) -> Iterator[c.Command]:
    """On record before it is marked as said: a crash may say it twice, never not at all."""
    scope, key = node
    where = "" if scope == "agent" else f" ({Breach(name, used, cap, scope, key).words().rpartition(' (')[2]}" if key else ""
    words = f"{mark} % of the {scope} limit {name}: {used:g} of {cap:g}{where}"
    named = f"{words}{_spenders(state, node, name, event.at)}"  # to people alone: an agent's name is no word to another agent
    agent_id = agent.agent_id if agent is not None else AgentId("")
    yield c.Record("supervisor", "budget.warned", named, verdict="warn", agent_id=agent_id, data={"scope": scope, "key": key, "mark": mark})
    if agent is not None:
        yield c.NoteEvent(agent.agent_id, "budget", words)
    yield c.Announce(f"{agent.agent_id}: {named}" if agent is not None else named)
    inside = [i for i in members(state, node) if i in state.live and state.agents[i].control_level is not ControlLevel.OBSERVED]
    for told in inside[:TOLD]:
        rule = f"at 100 % of {'an' if scope == 'agent' else 'a'} {scope} limit you are halted"
        yield c.TellAgent(told, "budget", notice("Your budget runs out.", words, rule))


def changed(state: EngineState, event: e.LimitsChanged) -> Iterator[c.Command]:
    """New limits hold at once: who has used more than they allow is halted now."""
    node = (event.scope, event.key)
    if event.scope in ("agent", "tree"):
        agent = state.agents.get(AgentId(event.key))
        if agent is None:
            return
        fields = {"limits": event.limits} if event.scope == "agent" else {"tree_limits": event.limits}
        agent = state.put(replace(agent, **fields))  # type: ignore[arg-type]
        yield charging.kept(state, event, agent, charging.nodes_of(state, agent))
        yield c.ShowAgent(agent)
        yield c.NoteEvent(agent.agent_id, "budget", f"{event.scope} limits set by {event.by}: {event.reason}")
        caps = ", ".join(f"{one} {cap:g}" for one, cap in asdict(event.limits).items() if cap is not None) or "none"
        what = f"Your {event.scope} limits were changed: {caps}."
        yield c.TellAgent(agent.agent_id, "budget", notice(what, f"{event.by}: {event.reason}", "who passes a limit is halted"))
    else:
        state.budget.limits[node] = event.limits
        yield c.KeepBooks(event.boot_s, state.budget.boot_id, limits={node: event.limits})
        if event.scope == "type":
            return
    charging.turn_day(state, event)
    node = node if event.scope != "day" else ("day", state.budget.day.date)
    state.budget.denied.clear()
    inside = members(state, node)
    freed = state.budget.observed_said & set(inside)
    state.budget.observed_said -= freed
    for name, mark in list(state.budget.warned.get(node, {}).items()):
        cap = getattr(event.limits, name)
        now = 0 if cap is None else _mark_of(float(getattr(charging.usage_at(state, node), name)), float(cap))
        if now < mark:
            state.budget.warned[node][name] = now
            yield _mark(state, node, name, now, event)
    for agent_id in inside:
        if (below := state.agents.get(agent_id)) is not None and below.state.is_live:
            yield from look(state, below, event, charging.nodes_of(state, below))
    yield from (c.ShowAgent(state.agents[i]) for i in freed - state.budget.observed_said if i in state.agents)
    yield from look_wide(state, node, event) if event.scope not in ("agent", "tree") else ()


def held_at(state: EngineState, node: Node) -> Usage:
    """What calls that are under way have set aside there."""
    return state.budget.held.get(node, Usage())
