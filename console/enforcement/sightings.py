"""What sources saw becomes observed agents. Nothing in a sighting decides who is signalled; an own agent is never shown twice."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace

from console.domain import command as c
from console.domain import event as e
from console.domain.agent import Agent, AgentId, AgentState, ContextId, ControlLevel, SandboxKind, Sighting
from console.domain.budget import Usage
from console.enforcement.state import EngineState


def observed_id(sighting: Sighting) -> AgentId:
    """A stable id made from source and key, so that hostile keys cannot shape it."""
    return AgentId("o-" + hashlib.sha256(f"{sighting.source}\0{sighting.key}".encode("utf-8", "surrogatepass")).hexdigest()[:16])


def sighted(state: EngineState, event: e.Sighted) -> Iterator[c.Command]:
    """New sightings appear, known ones are refreshed, those a working source no longer sees have ended."""
    own = {a.process for i in state.live if (a := state.agents[i]).control_level is not ControlLevel.OBSERVED and a.process}
    for report in event.reports:
        if not report.available:
            continue  # a source that cannot look says nothing about who is gone
        seen: set[AgentId] = set()
        parents = {s.key: observed_id(s) for s in report.sightings}
        for sighting in report.sightings:
            if sighting.process is not None and sighting.process in own:
                continue
            agent_id = observed_id(sighting)
            seen.add(agent_id)
            yield from _show(state, event, sighting, agent_id, parents)
        for gone in state.sighted.get(report.source, set()) - seen:
            agent = state.agents[gone]
            if agent.state.is_live:
                yield c.ShowAgent(state.put(replace(agent, state=AgentState.ENDED, state_reason="no longer seen", ended_at=event.at)))
        state.sighted[report.source] = seen


def _show(state: EngineState, event: e.Sighted, sighting: Sighting, agent_id: AgentId, parents: dict[str, AgentId]) -> Iterator[c.Command]:
    had = state.agents.get(agent_id)
    status = AgentState.WAITING if sighting.status in ("waiting", "idle") else AgentState.RUNNING
    if had is not None and had.state.is_live:
        if had.state is AgentState.ALIVE_AFTER_KILL:
            return
        now = replace(had, state=status, process=sighting.process, name=sighting.name, network_note=sighting.detail)
        now = replace(now, usage=_charged(state, had, sighting))
        if sighting.action and now.usage != had.usage:
            now = replace(now, last_action=sighting.action, last_action_at=event.at)
        if now != had:
            yield c.ShowAgent(state.put(now))
        return
    parent_id = parents.get(sighting.parent_key or "")
    parent = state.agents.get(parent_id) if parent_id else None
    agent = Agent(
        agent_id=agent_id,
        name=sighting.name,
        parent_id=parent.agent_id if parent else None,
        root_id=parent.root_id if parent else agent_id,
        depth=parent.depth + 1 if parent else 1,
        context_id=ContextId(f"o-{agent_id}"[:63]),
        control_level=ControlLevel.OBSERVED,
        sandbox=SandboxKind.NONE,
        started_at=event.at,
        state=status,
        process=sighting.process,
        container_id=sighting.container_id,
        cwd=sighting.cwd,
        source=sighting.source,
        network_note=sighting.detail,
        last_action=f"session {sighting.session}" if sighting.session else "",
        last_action_at=event.at,
    )
    agent = replace(agent, usage=_charged(state, replace(agent, usage=had.usage) if had is not None else agent, sighting))
    yield c.ShowAgent(state.put(agent))
    yield c.Record(
        "supervisor", "agent.sighted", f"{sighting.source} saw {agent_id}", agent_id=agent_id, data={"session": sighting.session[:200]}
    )


def _charged(state: EngineState, agent: Agent, sighting: Sighting) -> Usage:
    """What it used by now, charged to its tree as well; usage only grows, whatever a transcript says next."""
    used, said = agent.usage, sighting.usage
    if said is None:
        return used
    grown = Usage(
        iterations=max(0, said.iterations - used.iterations),
        tokens=max(0, said.tokens - used.tokens),
        cost_usd=max(0.0, said.cost_usd - used.cost_usd),
    )
    if grown == Usage():
        return used
    state.tree_usage[agent.root_id] = state.tree_usage.get(agent.root_id, Usage()).plus(grown)
    return used.plus(grown)
