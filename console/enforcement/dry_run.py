"""Dry-run in the engine: a call passes every check of a live one, and becomes a line of a plan instead of an allowed call.

An agent below one in dry-run is in dry-run too. Only an operator takes an agent out. An approved plan lets exactly its calls through, each
once, if every check of a live call allows it at that moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from console.domain.agent import Agent, AgentId
from console.domain.calls.approval import digest_of
from console.domain.calls.lineage import Mark
from console.domain.calls.permission import Decision, PermissionRequest, Verdict
from console.domain.engine import command as c
from console.domain.engine import dry_run as d
from console.domain.engine import event as e
from console.domain.words import counted, notice
from console.enforcement import lineages
from console.enforcement.state import EngineState, JudgedAs, Key

# An agent in dry-run may plan calls for days; each mark stays in memory until its plan is over.
MARKS_MAX = 5000
"""Of one head."""
_NOT_A_VERDICT = frozenset({"stop", "agent", "asker", d.RULE})
"""Rules of answers that say nothing about the call."""


def handlers(state: EngineState) -> dict[type[e.Event], Callable[[Any], Iterator[c.Command]]]:
    """What the engine does on its events."""
    return {
        d.DryRunEntered: lambda event: entered(state, event),
        d.DryRunLeft: lambda event: left(state, event),
        d.CallPlanned: lambda event: planned(event),
        d.PlanApproved: lambda event: approved(state, event),
        d.PlanEnded: lambda event: ended(state, event),
        d.PlansRestored: lambda event: restored(state, event),
    }


# --- who is in it


def head_of(state: EngineState, agent: Agent) -> AgentId | None:
    """Return the topmost agent in dry-run at or above this one, by parents and by the agents in which it runs; None: it is live."""
    marked = state.dry_run.marked
    if not marked:
        return None
    found: AgentId | None = None
    seen: set[AgentId] = set()
    queue = [agent.agent_id]
    while queue:
        current = queue.pop(0)
        if current in seen:
            continue
        seen.add(current)
        found = current if current in marked else found
        one, sight = state.agents.get(current), state.seen.get(current)
        queue += [above for above in (one.parent_id if one else None, sight.inside if sight else None) if above is not None]
    return found


def words_of(state: EngineState, agent: Agent) -> str:
    """Who put it into dry-run and why; empty: it is live."""
    if agent.dry_run:
        return agent.dry_run
    head = head_of(state, agent)
    return "" if head is None else d.below(head, state.agents[head].dry_run)


def at_birth(state: EngineState, event: e.LaunchAsked, parent: Agent | None) -> str:
    """A child is never looser than its parent; anybody may be started stricter."""
    head = head_of(state, parent) if parent is not None else None
    if head is not None:
        return d.below(head, state.agents[head].dry_run)
    return f"by {event.by}: at its launch" if event.request.dry_run else ""


def entered(state: EngineState, event: d.DryRunEntered) -> Iterator[c.Command]:
    """Put the agent and all below it into dry-run, at once. Approved plans below it are over: the next plan covers all of them."""
    words = f"by {event.by}: {event.reason}"
    heads = tuple(sorted(one for one in state.subtree(event.agent_id) if one != event.agent_id and _is_own(state, one)))
    done = 0
    for agent_id in state.subtree(event.agent_id):
        agent = state.agents.get(agent_id)
        if agent is None or (agent.dry_run and not (agent_id == event.agent_id and agent.dry_run.startswith(d.BELOW))):
            continue
        mine = words if agent_id == event.agent_id else d.below(event.agent_id, words)
        yield c.ShowAgent(state.put(replace(agent, dry_run=mine)))
        done += 1
        if agent.state.is_live:
            rule = "in dry-run calls are checked and planned, and not executed"
            yield c.TellAgent(agent_id, "dry_run", notice("You are in dry-run.", f"{event.by}: {event.reason}", rule))
    if heads:
        yield from _end(state, heads, f"{event.agent_id}, above it, was put into dry-run")
    what = f"{event.agent_id} and all below it are in dry-run ({counted(done, 'agent')}): {event.reason}"
    yield c.Record(event.by, "dry_run.entered", what, agent_id=event.agent_id, data={"agents": done}, must=True)
    yield c.NoteEvent(event.agent_id, "dry_run", f"entered, {words}"[:300])


def _is_own(state: EngineState, agent_id: AgentId) -> bool:
    """Whether it is in dry-run by itself."""
    words = state.agents[agent_id].dry_run if agent_id in state.agents else ""
    return bool(words) and not words.startswith(d.BELOW)


def left(state: EngineState, event: d.DryRunLeft) -> Iterator[c.Command]:
    """Take the agent out of dry-run, with all that were in it only because of this agent.

    An agent that was put into dry-run by itself stays, with all below it.
    """
    agent = state.agents.get(event.agent_id)
    if agent is None or not agent.dry_run or head_of(state, agent) != event.agent_id:
        return
    for agent_id in state.subtree(event.agent_id):
        one = state.agents.get(agent_id)
        if one is None or not (agent_id == event.agent_id or d.is_below(one.dry_run, event.agent_id)):
            continue
        above = state.agents.get(one.parent_id) if one.parent_id is not None and agent_id != event.agent_id else None
        head = head_of(state, above) if above is not None else None
        state.dry_run.leaving.add(agent_id)
        words = "" if head is None else d.below(head, state.agents[head].dry_run)
        yield c.ShowAgent(state.put(replace(one, dry_run=words)))
        state.dry_run.leaving.discard(agent_id)
        if one.state.is_live and not words:
            rule = "calls that are allowed are live"
            yield c.TellAgent(agent_id, "dry_run", notice("You are out of dry-run.", f"{event.by}: {event.reason}", rule))
    yield c.NoteEvent(event.agent_id, "dry_run", f"left, by {event.by}: {event.reason}"[:300])
    yield from _end(state, (event.agent_id,), f"{event.agent_id} left dry-run")


# --- a call


def judged(state: EngineState, agent: Agent, event: e.CallJudged) -> None:
    """What the rules said is kept until it is answered: the plan shows it."""
    if head_of(state, agent) is not None:
        decision = event.decision
        state.dry_run.judged[event.request_id] = JudgedAs(event.request, decision.verdict, decision.rule, decision.reason, event.parts)


def marks_for(state: EngineState, agent: Agent, request_id: str, request: PermissionRequest) -> Mapping[Key, Mark]:
    """Steps that calls in dry-run would have taken before this one; none for a call that is let through: it is live."""
    head = head_of(state, agent)
    if head is None or request_id in state.dry_run.passed or _release(state, agent, request) is not None:
        return {}
    return state.dry_run.marks.get(head, {})


def stands_for(state: EngineState, agent: Agent, event: e.CallJudged) -> Decision | None:
    """The human's word that this ask waits for, where the approved plan showed exactly this ask; None: it waits in the inbox."""
    release = _release(state, agent, event.request) if head_of(state, agent) is not None else None
    # Rules may have changed since: what a person approved as allowed may be an ask by now, which no person has seen.
    if release is None or (release.verdict, release.rule) != (Verdict.ASK.value, event.decision.rule):
        return None
    return Decision(Verdict.ALLOW, f"plan {release.plan_id}", f"approved by {release.by}, as call {release.seq} of it")


def held_by(state: EngineState, agent: Agent, request_id: str) -> AgentId | None:
    """Return the agent because of which this call is not executed.

    None: the call is live, or its place in an approved plan is already used for it.
    """
    return None if request_id in state.dry_run.passed else head_of(state, agent)


def instead(
    state: EngineState, agent: Agent, head: AgentId, request_id: str, request: PermissionRequest, decision: Decision
) -> Iterator[c.Command]:
    """Handle an allowed call in dry-run: an approved plan lets it through, or it becomes a line of the plan."""
    dry = state.dry_run
    release = dry.releases.pop(_key(agent, request), None)
    if release is not None:
        yield d.UseRelease(release, request_id, request, decision)
        return
    marks = lineages.would_take(state.lineages, agent, request_id, dry.marks.get(head, {}))
    if len(held := dry.marks.setdefault(head, {})) < MARKS_MAX:  # what is not seen here is still seen when the call is live
        held.update({mark.key: mark for mark in marks})
    said = dry.judged.get(request_id) or JudgedAs(request, decision.verdict, decision.rule, decision.reason, ())
    yield d.PlanCall(
        agent.agent_id, head, request_id, request, said.verdict, said.rule, said.reason, said.parts, decision=decision, marks=marks
    )


def planned(event: d.CallPlanned) -> Iterator[c.Command]:
    """The call is in the plan, on disk: answer the caller now."""
    yield c.AnswerPermission(event.agent_id, event.request_id, event.decision)


def answered(state: EngineState, event: e.Event, commands: list[c.Command]) -> list[c.Command]:
    """What was answered is forgotten; a denial that the rules or a human gave is a line of the plan too."""
    dry, more = state.dry_run, list[c.Command]()
    if isinstance(event, e.AskerLeft):
        dry.judged.pop(event.request_id, None)
    for command in commands:
        if not isinstance(command, c.AnswerPermission | c.SnapshotThenAnswer | c.JudgeUrl):
            continue
        # Once answered it counts no more: the same id must not carry another call past the plan.
        dry.passed.discard(command.request_id)
        said, agent = dry.judged.pop(command.request_id, None), state.agents.get(command.agent_id)
        head = head_of(state, agent) if agent is not None else None
        if said is None or head is None or not isinstance(command, c.AnswerPermission):
            continue
        if command.decision.verdict is Verdict.DENY and command.decision.rule not in _NOT_A_VERDICT:
            told = (said.request, said.verdict, said.rule, said.reason, said.parts, command.decision)
            more.append(d.NoteRefused(command.agent_id, head, command.request_id, *told))
    return more


# --- a plan


def approved(state: EngineState, event: d.PlanApproved) -> Iterator[c.Command]:
    """Its calls may be made now, by those who live and are in dry-run still."""
    dry = state.dry_run
    dry.releases = {key: one for key, one in dry.releases.items() if one.head != event.head}  # one plan of a head at a time
    if state.killed:
        yield from _end(state, (event.head,), "killed")
        return
    told: set[AgentId] = set()
    for release in event.releases:
        agent = state.agents.get(AgentId(release.agent_id))
        if agent is not None and agent.state.is_live and head_of(state, agent) == event.head and agent.agent_id not in state.killing:
            dry.releases[release.agent_id, release.digest] = release
            told.add(agent.agent_id)
    dry.marks.pop(event.head, None)  # what was planned before is over: the next plan begins anew
    for agent_id in sorted(told):
        what = f"Plan {event.plan_id} was approved: make its calls again."
        rule = "each call once and exactly as before; all else stays dry-run"
        yield c.TellAgent(agent_id, "dry_run", notice(what, f"approved by {event.by}", rule))
    yield c.NoteEvent(event.head, "dry_run", f"plan {event.plan_id} approved by {event.by}: {counted(len(event.releases), 'call')}")


def ended(state: EngineState, event: d.PlanEnded) -> Iterator[c.Command]:
    """Nothing of it is let through any more."""
    dry = state.dry_run
    dry.releases = {key: one for key, one in dry.releases.items() if one.plan_id != event.plan_id}
    dry.marks.pop(event.head, None)
    yield c.NoteEvent(event.head, "dry_run", f"plan {event.plan_id} was thrown away")


def expired(state: EngineState, event: e.ClockTicked) -> Iterator[c.Command]:
    """An approval that was not used in time is over."""
    late = {one.plan_id for one in state.dry_run.releases.values() if event.boot_s >= one.expires_boot}
    for plan_id in sorted(late):
        yield d.EndPlans(None, d.PlanState.EXPIRED, "its approval was not used in time", plan_id)
    if late:
        state.dry_run.releases = {key: one for key, one in state.dry_run.releases.items() if one.plan_id not in late}


def voided(state: EngineState, agent_ids: Iterable[AgentId] | None, words: str) -> Iterator[c.Command]:
    """A kill: nothing of the plans of those who are killed (None: of anybody) is let through any more."""
    if agent_ids is None:
        state.dry_run.releases.clear()
        state.dry_run.marks.clear()
        yield d.EndPlans(None, d.PlanState.VOID, words)
        return
    heads = {head for i in agent_ids if (one := state.agents.get(i)) is not None and (head := head_of(state, one)) is not None}
    if heads:
        yield from _end(state, tuple(sorted(heads)), words)


def restored(state: EngineState, event: d.PlansRestored) -> Iterator[c.Command]:
    """As it was before the restart, for those who live."""
    for release in event.releases:
        agent = state.agents.get(AgentId(release.agent_id))
        if agent is not None and agent.state.is_live and not state.killed and head_of(state, agent) == release.head:
            state.dry_run.releases[release.agent_id, release.digest] = release
    for head, marks in event.marks.items():
        state.dry_run.marks[head] = {mark.key: mark for mark in marks}
    yield from ()


def _end(state: EngineState, heads: tuple[AgentId, ...], words: str) -> Iterator[c.Command]:
    dry = state.dry_run
    dry.releases = {key: one for key, one in dry.releases.items() if one.head not in heads}
    for head in heads:
        dry.marks.pop(head, None)
    yield d.EndPlans(tuple(heads), d.PlanState.VOID, words)


def _key(agent: Agent, request: PermissionRequest) -> tuple[str, str]:
    return str(agent.agent_id), digest_of(request, agent.agent_id, agent.context_id)


def _release(state: EngineState, agent: Agent, request: PermissionRequest) -> d.Release | None:
    return state.dry_run.releases.get(_key(agent, request)) if state.dry_run.releases else None
