"""The ladder, pure: who a scope means, what a rung would do to each, and what an isolation changes. One plan feeds preview and act."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from console.domain.agent import Agent, AgentId, AgentState
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.errors import Conflict, NotFound
from console.domain.ids import ControlLevel
from console.domain.ladder import Reach, Rung, Scope
from console.domain.network import stricter_mode
from console.domain.words import counted, notice
from console.enforcement.adoption import instead_of
from console.enforcement.state import NOT_CONFIRMED, EngineState, Seen

SHARED = "it shares the host's network, so its own traffic cannot be cut: its requests are denied and what it starts has no network"
SEEN = "Watchfloor did not start it: its process and every process below it are killed, but their end cannot be confirmed"
ADOPT_FIRST = ". Adopt it first to have the kill confirmed"
ONLY_SEEN = "it is only observed: Watchfloor did not start it"
MISSING = "there is no such agent, or no agent in that session"
NAMED = 200
"""Agents named in one record; the count is always whole."""


class Treatment(StrEnum):
    """What can be promised of one agent."""

    CERTAIN = "certain"
    BEST_EFFORT = "best_effort"
    EXCLUDED = "excluded"


@dataclass(frozen=True, slots=True)
class Line:
    """One agent of a plan."""

    agent: Agent
    treatment: Treatment
    why: str = ""
    """Why it is excluded or best effort; for a certain one what to expect, or empty."""

    @property
    def acts(self) -> bool:
        """Whether the rung touches it."""
        return self.treatment is not Treatment.EXCLUDED


@dataclass(frozen=True, slots=True)
class Plan:
    """What a rung over a scope will do, now."""

    rung: Rung
    scope: Scope
    lines: tuple[Line, ...]
    missing: tuple[str, ...] = ()
    """Of several named: the ids of no agent, or of a session without one. They keep the others from nothing."""
    instead: str = ""
    """What to do about the one agent that it leaves alone because it is only observed; empty: there is no such agent."""

    @property
    def ids(self) -> list[AgentId]:
        """Return the agents that it stops, parents before children."""
        return [line.agent.agent_id for line in self.lines if line.acts]

    @property
    def excluded(self) -> dict[str, str]:
        """Return the agents that it leaves alone, and why."""
        return {line.agent.agent_id: line.why for line in self.lines if not line.acts} | dict.fromkeys(self.missing, MISSING)

    @property
    def latches(self) -> bool:
        """Whether nothing starts any more afterwards, until you rearm."""
        return self.rung is Rung.KILL and self.scope.reach is Reach.ALL

    def counts(self) -> dict[str, dict[str, int]]:
        """Control level -> treatment -> how many."""
        found: dict[str, Counter[str]] = {}
        for line in self.lines:
            found.setdefault(line.agent.control_level.value, Counter())[line.treatment.value] += 1
        if self.missing:
            found["unknown"] = Counter({Treatment.EXCLUDED.value: len(self.missing)})
        return {level: dict(counter) for level, counter in sorted(found.items())}

    def refuse_if_idle(self) -> None:
        """Raise Conflict when it would stop no agent. A panic is never refused: it blocks new agents."""
        if self.ids or self.latches:
            return
        if len(self.lines) == 1:
            only = self.lines[0]
            raise Conflict(f"{self.rung} is not possible: {only.why}.", self.instead or "watchfloor fleet shows its state.")
        whys = Counter(line.why for line in self.lines)
        words = "; ".join(f"{counted(n, 'agent')}: {why}" for why, n in whys.most_common(3))
        raise Conflict(f"{self.rung} of {self.scope.words()} stops no agent ({words}).", "watchfloor fleet shows the states.")


def takes_over(state: EngineState, agent_id: AgentId, why_not: str = "") -> str:
    """Return how an agent that is only observed comes to be held, or what stops it where the guard would refuse that (``why_not``)."""
    words = instead_of(state, agent_id, why_not).rstrip(".")
    return f"{words[0].upper()}{words[1:]}." if words else f"watchfloor adopt {agent_id} takes it over first."


def members(state: EngineState, scope: Scope) -> list[AgentId]:
    """Return the agents that are meant: the living, parents before children. A named agent counts even when it has ended.

    Raises NotFound for an unknown agent or session, or for a scope without a living agent.
    """
    found: dict[AgentId, None] = {}
    match scope.reach:
        case Reach.AGENT | Reach.TREE:
            named = [AgentId(target) for target in scope.targets if target in state.agents]
            if not named:
                raise NotFound(f"There is no agent {scope.target[:80]!r}.", "watchfloor fleet lists the agents.")
            for root in sorted(named, key=lambda i: state.agents[i].depth):
                below = state.subtree(root)[1:] if scope.reach is Reach.TREE else []
                found |= dict.fromkeys([root, *(i for i in below if i in state.live)])
            return list(found)
        case Reach.SESSION:
            for target in scope.targets:
                found |= dict.fromkeys(_of_session(state, target))
            if not found:
                raise NotFound(f"No agent lives in session {scope.target[:80]!r}.", "watchfloor session list shows the sessions.")
            return list(found)
        case Reach.HOST | Reach.ALL:
            return sorted(state.live, key=lambda i: (state.agents[i].depth, i))
        case _:
            assert_never(scope.reach)


def _of_session(state: EngineState, context_id: str) -> list[AgentId]:
    found: dict[AgentId, None] = {}
    for agent_id in sorted(state.live, key=lambda i: (state.agents[i].depth, i)):
        if state.agents[agent_id].context_id == context_id:
            found.update((i, None) for i in state.subtree(agent_id) if i in state.live)
    # One whose parent of this session has ended is below it all the same.
    for agent_id in sorted(state.live):
        if agent_id not in found and _has_ancestor_in(state, agent_id, context_id):
            found[agent_id] = None
    return list(found)


def _has_ancestor_in(state: EngineState, agent_id: AgentId, context_id: str) -> bool:
    above = state.agents[agent_id].parent_id
    while above is not None and above in state.agents:
        if state.agents[above].context_id == context_id:
            return True
        above = state.agents[above].parent_id
    return False


def already_ended(state: EngineState, scope: Scope) -> list[Agent]:
    """Return the named agents that have ended, with all below them in a tree, where that is known."""
    if scope.reach not in (Reach.AGENT, Reach.TREE):
        return []
    named = [agent for target in scope.targets if (agent := state.agents.get(AgentId(target))) is not None]
    over = [agent for agent in named if not agent.state.is_live and agent.agent_id not in state.open_ends]
    return [a for a in over if scope.reach is Reach.AGENT or not any(i in state.live for i in state.subtree(a.agent_id))]


def plan(state: EngineState, rung: Rung, scope: Scope, doubts: Mapping[str, str] | None = None) -> Plan:
    """Return what the stop would do now. ``doubts``: agents that the kernel cannot confirm dead, and why (from the guard's registry).

    The agents that it stops never depend on the doubts. Raises UsageProblem, NotFound.
    """
    scope.check()
    ids = members(state, scope)
    if not ids and not (rung is Rung.KILL and scope.reach is Reach.ALL):
        raise NotFound(f"No agent lives here: there is nothing to {rung}.", "watchfloor fleet lists the agents.")
    lines = tuple(_line(state, rung, scope, state.agents[i], doubts or {}) for i in ids)
    missing = tuple(target for target in scope.targets if not _is_known(state, scope.reach, target)) if scope.others else ()
    is_seen = len(lines) == 1 and lines[0].why == ONLY_SEEN
    return Plan(rung, scope, lines, missing, takes_over(state, lines[0].agent.agent_id) if is_seen else "")


def _is_known(state: EngineState, reach: Reach, target: str) -> bool:
    return bool(_of_session(state, target)) if reach is Reach.SESSION else target in state.agents


def _line(state: EngineState, rung: Rung, scope: Scope, agent: Agent, doubts: Mapping[str, str]) -> Line:
    if why := why_not(state, rung, agent, scope):
        return Line(agent, Treatment.EXCLUDED, why)
    if rung is Rung.ISOLATE and _shares_network(agent):
        return Line(agent, Treatment.BEST_EFFORT, SHARED)
    if agent.control_level is ControlLevel.OBSERVED:
        return Line(agent, Treatment.BEST_EFFORT, f"{SEEN}{ADOPT_FIRST if state.can_adopt else ''}")
    if agent.agent_id in state.open_ends:
        return Line(agent, Treatment.BEST_EFFORT, agent.state_reason)
    if rung in (Rung.KILL, Rung.FREEZE) and agent.agent_id in doubts:
        return Line(agent, Treatment.BEST_EFFORT, doubts[agent.agent_id])
    return Line(agent, Treatment.CERTAIN, _expect(state, rung, agent))


def _shares_network(agent: Agent) -> bool:
    return agent.state is not AgentState.STARTING and not agent.network_enforced


def _expect(state: EngineState, rung: Rung, agent: Agent) -> str:
    if rung is Rung.THAW and (others := [cause for cause in agent.causes if cause != "operator"]):
        return f"it stays frozen: {', '.join(others)}"
    if rung is Rung.RECONNECT:
        mode = stricter_mode(agent.network_mode, state.context(agent.context_id)[1])
        if agent.cut_off:
            return "it was started while isolated and has no network to give back: start it again"
        return f"its session allows {mode}" if not mode.is_closed else "it stays without network: its session allows none"
    if rung is Rung.ISOLATE and agent.state is AgentState.STARTING:
        return "it is starting: its launch gives up, or it starts without network"
    return ""


def _why_not_gone(state: EngineState, rung: Rung, agent: Agent) -> str:
    if agent.agent_id in state.open_ends:
        return "" if rung is Rung.KILL else agent.state_reason
    return "it has ended"


def why_not(state: EngineState, rung: Rung, agent: Agent, scope: Scope | None = None) -> str:
    """Why the rung does not touch an agent; empty when it does."""
    if not agent.state.is_live:
        return _why_not_gone(state, rung, agent)
    if agent.control_level is ControlLevel.OBSERVED:
        return _why_not_observed(state, rung, agent, scope)
    match rung:
        case Rung.KILL:
            return ""
        case Rung.FREEZE:
            # A freeze that no kernel or engine has confirmed may be asked for again.
            is_so = "operator" in agent.causes and not agent.state_reason.startswith(NOT_CONFIRMED)
            return "it is frozen already" if is_so else ""
        case Rung.THAW:
            return "" if "operator" in agent.causes else "no operator froze it"
        case Rung.ISOLATE:
            return _why_not_isolate(agent)
        case Rung.RECONNECT:
            return _why_not_reconnect(state, agent, scope)
        case _:
            assert_never(rung)


def _why_not_observed(state: EngineState, rung: Rung, agent: Agent, scope: Scope | None) -> str:
    seen = state.seen.get(agent.agent_id, Seen())
    match scope.reach if scope is not None and rung is Rung.KILL else None:
        case Reach.ALL:
            is_reached = agent.agent_id in state.press_observed
        case Reach.AGENT | Reach.TREE | Reach.SESSION:
            is_reached = agent.agent_id in state.kill_observed and seen.inside is None and not seen.part
        case _:
            is_reached = False
    if is_reached:
        return ""
    if seen.inside is not None:
        return f"it runs inside {seen.inside} and stops with it, never alone"
    return "it is a sub-agent in the process of its session and stops with it, never alone" if seen.part else ONLY_SEEN


def _why_not_isolate(agent: Agent) -> str:
    if agent.control_level is ControlLevel.ADOPTED:
        return "it was adopted: it stays on the network it was started with"
    if agent.isolated and agent.network_enforced:
        return f"it is isolated already ({agent.isolated})"
    if agent.effective_mode.is_closed and agent.network_enforced:
        return "it has no network already"
    return ""


def _why_not_reconnect(state: EngineState, agent: Agent, scope: Scope | None) -> str:
    if not agent.isolated:
        return "no operator isolated it"
    if agent.context_id in state.isolated and not _lifts(scope, agent.context_id):
        return f"its session {agent.context_id} is isolated as a whole: reconnect the session"
    return ""


def _lifts(scope: Scope | None, context_id: str) -> bool:
    return scope is not None and (scope.is_everything or (scope.reach is Reach.SESSION and context_id in scope.targets))


def lifted_sessions(state: EngineState, scope: Scope) -> tuple[str, ...]:
    """Sessions that a reconnection over this scope no longer isolates as such."""
    return tuple(context_id for context_id in sorted(state.isolated) if _lifts(scope, context_id))


def isolated(state: EngineState, event: e.Isolated) -> Iterator[c.Command]:
    """Cuts first, records after: it only tightens. The ratchet is not touched, so that it can be taken back."""
    words = f"{event.by}: {event.reason}" if event.reason else event.by
    for context_id in event.contexts:
        state.isolated.setdefault(context_id, words)
    ids = [i for i in event.agent_ids if i in state.live and state.agents[i].control_level is not ControlLevel.OBSERVED]
    for agent_id in ids:
        agent = state.agents[agent_id]
        agent = state.put(replace(agent, isolated=agent.isolated or words, network_since=event.at))
        if agent.state is not AgentState.STARTING:  # a launch sees it before it opens the gate
            yield c.CutEgress(agent_id)
    for agent_id in ids:
        yield c.ShowAgent(state.agents[agent_id])
        yield c.NoteEvent(agent_id, "isolated", words)
        yield _kept(state.agents[agent_id], event.at, "isolated", event.by, event.reason)
        what = notice("Your network is cut.", words, "an operator's isolation, until an operator reconnects you")
        yield c.TellAgent(agent_id, "network", f"{what} Local files and computation still work.")
    yield _record(event.by, "isolate", event.reason, ids, event.contexts)


def reconnected(state: EngineState, event: e.Reconnected) -> Iterator[c.Command]:
    """Takes the operator's isolation away, nothing else: what the session's ratchet forbids stays forbidden (promise 4)."""
    for context_id in event.contexts:
        state.isolated.pop(context_id, None)
    for agent_id in event.agent_ids:
        agent = state.agents.get(agent_id)
        if agent is None or not agent.isolated or agent.context_id in state.isolated:
            continue
        mode = stricter_mode(agent.network_mode, state.context(agent.context_id)[1])
        agent = state.put(replace(agent, isolated="", network_mode=mode, network_since=event.at))
        yield c.ShowAgent(agent)
        yield _kept(agent, event.at, "reconnected", event.by, event.reason)
        yield c.NoteEvent(agent_id, "reconnected", f"{event.by}: {event.reason}" if event.reason else event.by)
        if agent.state.is_live and agent.state is not AgentState.STARTING:
            yield c.GiveEgress(agent_id)


def egress_changed(state: EngineState, event: e.EgressChanged) -> Iterator[c.Command]:
    """What was really enforced, as it was verified."""
    agent = state.agents.get(event.agent_id)
    if agent is None or not agent.state.is_live:
        return
    agent = state.put(replace(agent, network_enforced=event.enforced, network_note=event.note))
    words = f"network {agent.effective_mode}" + ("" if event.enforced else f", not enforced: {event.note}")
    yield c.ShowAgent(agent)
    yield c.Record("supervisor", "network.isolation", f"{event.agent_id}: {words}", agent_id=event.agent_id, must=True)
    yield c.NoteEvent(event.agent_id, "network", words)
    yield replace(_kept(agent, event.at, "enforced", "supervisor", event.note), enforced=event.enforced)
    if not agent.isolated:
        rule = "what the mode of its session allows, no more"
        yield c.TellAgent(
            event.agent_id, "network", notice(f"Network access is now {agent.effective_mode}.", "an operator ended an isolation", rule)
        )


def _kept(agent: Agent, at: float, what: str, by: str, words: str) -> c.KeepNetworkChange:
    return c.KeepNetworkChange(agent.agent_id, agent.context_id, at, what, agent.effective_mode, by, words)


def _record(by: str, kind: str, reason: str, ids: list[AgentId], contexts: tuple[str, ...]) -> c.Record:
    where = f"session {', '.join(contexts)}, " if contexts else ""
    data = {"agents": [str(i) for i in ids[:NAMED]], "n": len(ids), "sessions": list(contexts), "reason": reason}
    what = f"{kind} {where}{counted(len(ids), 'agent')}" + (f": {reason}" if reason else "")
    return c.Record(by, kind, what, verdict="asked", agent_id=ids[0] if ids else "", data=data, must=True)
