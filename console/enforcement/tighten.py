"""The ratchet, pure: what makes sessions stricter, who is switched because of it, and what a switch came to. Nothing here loosens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from console.domain.agent import Agent, AgentId, AgentState
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.errors import Conflict, Denied, NotFound
from console.domain.ladder import Reach, Scope
from console.domain.network import NetworkMode, Sensitivity, stricter_mode
from console.domain.words import notice, one_line
from console.enforcement.ladder import members
from console.enforcement.state import EngineState

UNDER_WAY = "it is being switched: whether that holds is not known yet"


@dataclass(frozen=True, slots=True)
class Meant:
    """The agents that a stricter mode would affect now."""

    named: str
    """The session that was named, or the named agent's."""
    contexts: tuple[str, ...]
    """It and every session of what was spawned from it."""
    ids: tuple[AgentId, ...]
    """Living agents in them."""


def meant(state: EngineState, scope: Scope) -> Meant:
    """Return the sessions of an agent and of all it spawned, or a session and all below it. Raises UsageProblem, NotFound.

    A mode belongs to a session, so all agents in these sessions are switched. A session without a living agent can be meant too.
    """
    scope.check()
    if scope.reach is Reach.SESSION:
        if scope.target not in state.known_contexts and scope.target not in state.contexts:
            raise NotFound(f"There is no session {scope.target[:80]!r}.", "watchfloor fleet --json shows each agent's session.")
        named = scope.target
        below = members(state, scope) if _is_lived_in(state, named) else []
        contexts = {named, *(str(state.agents[i].context_id) for i in below)}
    else:
        agent = state.agents.get(AgentId(scope.target))
        if agent is None:
            raise NotFound(f"There is no agent {scope.target[:80]!r}.", "watchfloor fleet lists the agents.")
        named, contexts = agent.context_id, contexts_of(state, agent.agent_id)
    return Meant(named, tuple(sorted(contexts)), tuple(sorted(_living(state, contexts))))


def contexts_of(state: EngineState, agent_id: AgentId) -> set[str]:
    """The sessions of an agent and of everything it spawned: they share its data."""
    return {str(state.agents[i].context_id) for i in state.subtree(agent_id)}


def _is_lived_in(state: EngineState, context_id: str) -> bool:
    return any(state.agents[i].context_id == context_id for i in state.live)


def _living(state: EngineState, contexts: Iterable[str]) -> list[AgentId]:
    wanted = set(contexts)
    return [i for i in state.live if state.agents[i].context_id in wanted]


def refuse_looser(state: EngineState, found: Meant, mode: NetworkMode) -> None:
    """Raises Denied for a mode that would loosen, Conflict for one that would change nothing (promise 4)."""
    has = state.context(found.named)[1]
    loosest = min((state.agents[i].network_mode for i in found.ids), key=lambda m: m.severity, default=has)
    if mode.severity < has.severity or not mode.is_restricted:
        raise Denied(
            f"Session {found.named} is in {has}: {mode} is not stricter, and a mode is never loosened.",
            "Start a new session for other work; an isolation, unlike a mode, can be taken back (watchfloor reconnect).",
        )
    open_ends = [i for i in found.ids if not state.agents[i].network_enforced and state.agents[i].state is not AgentState.STARTING]
    if all(state.context(i)[1].severity >= mode.severity for i in found.contexts) and loosest.severity >= mode.severity and not open_ends:
        raise Conflict(f"Session {found.named} is in {has} already.", "watchfloor network sandboxes shows every agent's mode.")


def private_data(state: EngineState, event: e.PrivateDataRegistered) -> Iterator[c.Command]:
    """An agent registered data: everything it spawned shares it, over every session met there."""
    owner = state.agents.get(event.agent_id)
    if owner is None:
        return
    # What one agent knows its sub-agents can be told, in any session of theirs: data does not stay where it was registered.
    contexts = contexts_of(state, event.agent_id)
    for context_id in sorted(contexts):
        state.raise_context(context_id, event.level, event.mode)
    yield c.Record(
        f"agent:{event.agent_id}",
        "ratchet.raised",
        f"{event.level} data registered in {owner.context_id}: network {event.mode}",
        agent_id=event.agent_id,
        data={"dataset": event.dataset, "source": event.source, "contexts": sorted(contexts)},
        must=True,
    )
    named = f" ({event.dataset[:60]!r})" if event.dataset else ""
    yield from _switch(state, contexts, f"{event.level} data{named} entered its session, registered by {event.agent_id}", event.at)


def tightened(state: EngineState, event: e.Tightened) -> Iterator[c.Command]:
    """An operator's word; it is on record already."""
    contexts = set(event.contexts)
    if event.agent_id is not None and event.agent_id in state.agents:
        contexts |= contexts_of(state, event.agent_id)
    for context_id in sorted(contexts):
        state.raise_context(context_id, event.level, event.mode)
    yield from _switch(state, contexts, event.why, event.at, again=event.mode.is_restricted)


def joined(state: EngineState, newcomer: Agent, at: float) -> Iterator[c.Command]:
    """An agent starts in a session with others: these become as strict as the session is now."""
    others = [i for i in _living(state, {newcomer.context_id}) if i != newcomer.agent_id]
    level, mode = state.context(newcomer.context_id)
    if any((state.agents[i].sensitivity, state.agents[i].network_mode) != (level, mode) for i in others):
        yield from _switch(state, {newcomer.context_id}, f"{newcomer.agent_id} brought {level} data or {mode} into its session", at)


def _switch(state: EngineState, contexts: set[str], why: str, at: float, *, again: bool = False) -> Iterator[c.Command]:
    """Switch each agent that is looser than its session now. With ``again``: also agents on which an earlier switch failed."""
    for agent_id in sorted(_living(state, contexts)):
        agent = state.agents[agent_id]
        level, mode = state.context(agent.context_id)
        wanted = stricter_mode(agent.network_mode, mode)
        changed = wanted is not agent.network_mode
        rose = level.level > agent.sensitivity.level and wanted.has_portal  # what it may reach depends on it
        agent = replace(agent, sensitivity=level, network_mode=wanted)
        if changed or rose:
            agent = replace(agent, network_why=why)
        if changed:
            agent = replace(agent, network_since=at)
        if changed or rose:  # what held is no proof of what is asked for now
            agent = replace(agent, network_enforced=False, network_note=UNDER_WAY)
        yield c.ShowAgent(state.put(agent))
        if changed or rose or (again and _is_open(agent)):
            yield c.SwitchNetwork(agent_id, wanted, f"{why} ({agent.context_id})")


def _is_open(agent: Agent) -> bool:
    return agent.network_mode.is_restricted and not agent.network_enforced


def switched(state: EngineState, event: e.NetworkSwitched) -> Iterator[c.Command]:
    """What was really enforced, as it was verified; the agent is told."""
    agent = state.agents.get(event.agent_id)
    if agent is None:
        return
    mode = stricter_mode(agent.network_mode, event.mode)
    state.raise_context(agent.context_id, agent.sensitivity, event.mode)
    held = event.enforced and event.mode is mode  # a proof of less is no proof of what was asked for since
    agent = state.put(replace(agent, network_mode=mode, network_enforced=held, network_note=event.note))
    yield c.ShowAgent(agent)
    why = event.note or f"{event.mode} is, {mode} was asked for meanwhile"
    words = f"network {mode}" + ("" if held else f", not enforced: {why}")
    yield c.Record("supervisor", "network.switched", f"{event.agent_id}: {words}", agent_id=event.agent_id, must=True)
    yield c.NoteEvent(event.agent_id, "network", words)
    yield c.KeepNetworkChange(agent.agent_id, agent.context_id, event.at, "enforced", mode, "supervisor", event.note, held, event.ms)
    yield c.TellAgent(event.agent_id, "network", _told(state, agent, why if not held else ""))


def _told(state: EngineState, agent: Agent, not_held: str) -> str:
    mode = agent.network_mode
    data = agent.sensitivity
    if data is not Sensitivity.PUBLIC and state.modes.of(data) is mode:
        rule = f"a session with {data} data has network {mode}, and a mode is never loosened"
    else:
        rule = "a session has the strictest network that was asked for, and a mode is never loosened"
    what = notice(f"Network access is now {mode}.", agent.network_why or "its session became stricter", rule)
    reach = mode.rules.reach
    if not_held:
        reach = f"It could not be enforced ({one_line(not_held)})."
    return f"{what} {reach} Local files and computation still work.{state.words_for(agent)}"
