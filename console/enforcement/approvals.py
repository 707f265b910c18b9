"""Approvals in the engine: who waits for a human, and what a decision, a deadline, a kill or an end makes of it.

The ledger is the arbiter: nothing is let through before the ledger has said that this approval was good and is used up now.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace

from console.domain import command as c
from console.domain import event as e
from console.domain.agent import Agent, AgentId, AgentState
from console.domain.approval import Approval, ApprovalScope, ApprovalState, digest_of, session_digest
from console.domain.permission import Decision, Verdict
from console.enforcement.permitting import permit
from console.enforcement.state import EngineState

OPENED_MAX = 100
OPENED_S = 60.0
"""Of one tree, so many new requests in so long: one that is changed all the time waits alone, and each of it goes to the disk."""


def opened(state: EngineState, agent: Agent, event: e.CallJudged) -> Iterator[c.Command]:
    """The policy says ask: the request waits, or takes up what was decided for exactly it."""
    approvals = state.approvals
    request, context = event.request, agent.context_id
    digest = digest_of(request, agent.agent_id, context)
    if name := approvals.grants.get((context, session_digest(request, context))):
        allowed = Decision(Verdict.ALLOW, f"approval {name} for this session", "the same request was approved before")
        yield from permit(state, agent.agent_id, event.request_id, request, allowed)
        return
    found = next((a for a in approvals.of_agent(agent.agent_id) if a.digest == digest), None)
    if found is not None:
        # The same request again: its asker lost its connection, or this is the retry after the decision.
        approvals.waiters.setdefault(found.approval_id, []).append(event.request_id)
        if found.state is ApprovalState.APPROVED:
            yield from _use(state, found)
        return
    if request.call_id:
        for other in approvals.of_agent(agent.agent_id):
            if other.request.call_id == request.call_id:
                yield from _close(state, other, ApprovalState.VOID, "the request was changed after it was asked")
    if words := _too_many(state, agent, event.boot_s):
        yield c.AnswerPermission(agent.agent_id, event.request_id, Decision(Verdict.DENY, "too many requests", words))
        return
    approval = Approval(
        approval_id=f"q-{event.request_id}",
        agent_id=agent.agent_id,
        root_id=agent.root_id,
        context_id=context,
        request=request,
        digest=digest,
        rule=event.decision.rule,
        reason=event.decision.reason,
        asked_at=event.at,
        expires_boot=event.boot_s + approvals.ttl_s,
        parts=event.parts,
    )
    approvals.by_id[approval.approval_id] = approval
    approvals.waiters[approval.approval_id] = [event.request_id]
    yield c.KeepApproval(approval, None)
    yield c.NoteEvent(agent.agent_id, "approval", f"waits for approval: {approval.rule}")
    yield from _seen(state, agent.agent_id)


def kept(state: EngineState, event: e.ApprovalKept) -> Iterator[c.Command]:
    """It is on disk."""
    approval = state.approvals.by_id.get(event.approval_id)
    if approval is not None:
        state.approvals.kept.add(event.approval_id)
        yield c.ShowApproval(approval)


def decided(state: EngineState, event: e.ApprovalDecided) -> Iterator[c.Command]:
    """A human decided, and the ledger has it: the first decision is the only one."""
    approvals = state.approvals
    approval = approvals.by_id.get(event.approval_id)
    if approval is None or approval.state is not ApprovalState.WAITING:
        if event.approved:  # it was over before this was heard: what is on disk by now must let nothing through after a restart
            yield c.TakeBackApproval(event.approval_id, "its request was over before it was approved")
        return
    if approval.digest != event.digest:
        return
    approval = replace(
        approval,
        scope=event.scope,
        state=ApprovalState.APPROVED if event.approved else ApprovalState.DENIED,
        decided_by=event.by,
        decided_at=event.at,
        words=event.words,
    )
    approvals.by_id[approval.approval_id] = approval
    yield c.NoteEvent(approval.agent_id, "approval", f"{approval.state} by {event.by}: {event.words or approval.scope}")
    if not event.approved:
        yield from _answer_all(state, approval, Decision(Verdict.DENY, f"approval {approval.approval_id}", _denied(event)))
        _forget(state, approval)
        yield c.ShowApproval(approval)
        yield from _seen(state, approval.agent_id)
        return
    yield c.ShowApproval(approval)
    if approval.scope is ApprovalScope.SESSION:
        yield from _granted(state, approval)
    if approvals.waiters.get(approval.approval_id):
        yield from _use(state, approval)


def used(state: EngineState, event: e.ApprovalUsed) -> Iterator[c.Command]:
    """The ledger's word on a use: good, and over; or not good any more."""
    approvals = state.approvals
    approval = approvals.by_id.get(event.approval_id)
    rule = f"approval {event.approval_id}"
    if not event.ok or approval is None:
        yield c.AnswerPermission(event.agent_id, event.request_id, Decision(Verdict.DENY, rule, event.why or "it is not open any more"))
        return
    rest = approvals.waiters.pop(event.approval_id, [])
    approvals.by_id.pop(event.approval_id, None)
    approvals.kept.discard(event.approval_id)
    yield c.ShowApproval(replace(approval, state=ApprovalState.USED))
    yield from _seen(state, approval.agent_id)
    allowed = Decision(Verdict.ALLOW, rule, f"approved by {approval.decided_by}")
    yield from permit(state, approval.agent_id, event.request_id, approval.request, allowed)
    for request_id in rest:
        if approval.scope is ApprovalScope.SESSION:
            yield from permit(state, approval.agent_id, request_id, approval.request, allowed)
        else:
            yield c.AnswerPermission(
                approval.agent_id, request_id, Decision(Verdict.DENY, rule, "it was used by the same request; ask again")
            )


def broke(state: EngineState, event: e.ApprovalBroke) -> Iterator[c.Command]:
    """Deny an approval that could not be stored: what is not on disk cannot be decided."""
    approvals = state.approvals
    approval = approvals.by_id.get(event.approval_id)
    if approval is not None:
        yield from _answer_all(state, approval, Decision(Verdict.DENY, "approval", f"not recorded: {event.why}"))
        _forget(state, approval)
        yield from _seen(state, approval.agent_id)


def expired(state: EngineState, event: e.ClockTicked) -> Iterator[c.Command]:
    """Deny requests whose time is over, and end approvals that were never used."""
    approvals = state.approvals
    for root in [r for r, times in approvals.opened.items() if times[-1] <= event.boot_s - OPENED_S]:
        del approvals.opened[root]
    for approval in [a for a in approvals.by_id.values() if event.boot_s >= a.expires_boot]:
        yield from _close(state, approval, ApprovalState.EXPIRED, f"not answered within {approvals.ttl_s:g} s")
    # The exit of an observed or halted agent is not reported, so these are looked for here.
    gone = {a.agent_id for a in approvals.by_id.values() if (one := state.agents.get(a.agent_id)) is None or not one.state.is_live}
    if gone:
        yield from voided(state, gone, "its agent has ended")


def voided(state: EngineState, agent_ids: Iterable[AgentId] | None, words: str) -> Iterator[c.Command]:
    """A kill, or the end of an agent (None: everybody): nothing of theirs can be approved any more."""
    approvals = state.approvals
    chosen = None if agent_ids is None else set(agent_ids)
    for approval in [a for a in approvals.by_id.values() if chosen is None or a.agent_id in chosen]:
        approvals.taken.append(approval)
        yield from _close(state, approval, ApprovalState.VOID, words)


def ended(state: EngineState, agent_ids: Iterable[AgentId] | None) -> Iterator[c.Command]:
    """A kill takes back what the sessions of those who are killed were given; one of everything clears the disk, whatever is known here."""
    grants = state.approvals.grants
    if agent_ids is None:
        grants.clear()
        yield c.EndGrants()
        return
    killed = {agent.context_id for i in agent_ids if (agent := state.agents.get(i)) is not None}
    if sessions := sorted({context for context, _ in grants if context in killed}):
        for key in [key for key in grants if key[0] in killed]:
            del grants[key]
        yield c.EndGrants(tuple(sessions))


def left(state: EngineState, event: e.AskerLeft) -> Iterator[c.Command]:
    """The caller has hung up. Its request stays open, and a later, equal one takes it over."""
    for waiting in state.approvals.waiters.values():
        if event.request_id in waiting:
            waiting.remove(event.request_id)
    yield from ()


def restored(state: EngineState, event: e.ApprovalsRestored) -> Iterator[c.Command]:
    """What waited before a restart of the supervisor waits again, for those who live; its askers come back with the same request."""
    approvals = state.approvals
    approvals.grants.update({(grant.context_id, grant.digest): grant.approval_id for grant in event.grants})
    for approval in event.open:
        approvals.by_id[approval.approval_id] = approval
        approvals.kept.add(approval.approval_id)
        agent = state.agents.get(approval.agent_id)
        if state.killed or agent is None or not agent.state.is_live:
            yield from _close(state, approval, ApprovalState.VOID, "killed" if state.killed else "its agent has ended")
        else:
            yield from _seen(state, approval.agent_id)
    if state.killed:
        yield from ended(state, None)


def shown(state: EngineState, agent: Agent) -> Agent:
    """The agent with the state that people see: it needs an OK while anything of it waits."""
    approvals = state.approvals
    waits = any(a.state is ApprovalState.WAITING for a in approvals.of_agent(agent.agent_id))
    if waits and agent.state in (AgentState.RUNNING, AgentState.WAITING):
        return replace(agent, state=AgentState.NEEDS_OK, state_reason="waits for an approval")
    if not waits and agent.state is AgentState.NEEDS_OK:
        return replace(agent, state=AgentState.RUNNING, state_reason="")
    return agent


def _too_many(state: EngineState, agent: Agent, boot_s: float) -> str:
    """Why this tree may put nothing more before a human now; empty: it may, and it is counted."""
    approvals = state.approvals
    if approvals.waiting_of_tree(agent.root_id) >= approvals.waiting_max:
        return f"{approvals.waiting_max} requests of this tree wait for a human already"
    times = approvals.opened.setdefault(agent.root_id, deque(maxlen=OPENED_MAX))
    if len(times) == OPENED_MAX and times[0] > boot_s - OPENED_S:
        return f"this tree asked {OPENED_MAX} times within {OPENED_S:g} s"
    times.append(boot_s)
    return ""


def _seen(state: EngineState, agent_id: AgentId) -> Iterator[c.Command]:
    agent = state.agents.get(agent_id)
    if agent is not None and (now := shown(state, agent)) is not agent:
        yield c.ShowAgent(state.put(now))


def _granted(state: EngineState, approval: Approval) -> Iterator[c.Command]:
    """Approve for the whole session: equal requests of its other agents need no decision any more."""
    approvals = state.approvals
    digest = session_digest(approval.request, approval.context_id)
    approvals.grants[approval.context_id, digest] = approval.approval_id
    allowed = Decision(Verdict.ALLOW, f"approval {approval.approval_id} for this session", f"approved by {approval.decided_by}")
    for other in list(approvals.by_id.values()):
        same = other.context_id == approval.context_id and session_digest(other.request, other.context_id) == digest
        if not same or other.state is not ApprovalState.WAITING:
            continue
        waiting = approvals.waiters.pop(other.approval_id, [])
        yield from _close(state, other, ApprovalState.VOID, f"approved with {approval.approval_id}, for the whole session")
        for request_id in waiting:
            yield from permit(state, other.agent_id, request_id, other.request, allowed)


def _use(state: EngineState, approval: Approval) -> Iterator[c.Command]:
    approvals = state.approvals
    waiting = approvals.waiters.get(approval.approval_id) or []
    if waiting:
        yield c.UseApproval(approval, waiting.pop(0))


def _close(state: EngineState, approval: Approval, end: ApprovalState, words: str) -> Iterator[c.Command]:
    was = approval.state
    approval = replace(approval, state=end, words=words)
    yield from _answer_all(state, approval, Decision(Verdict.DENY, f"approval {approval.approval_id}", words))
    _forget(state, approval)
    yield c.KeepApproval(approval, was)
    yield c.NoteEvent(approval.agent_id, "approval", f"{end}: {words}")
    yield from _seen(state, approval.agent_id)


def _answer_all(state: EngineState, approval: Approval, decision: Decision) -> Iterator[c.Command]:
    approvals = state.approvals
    for request_id in approvals.waiters.pop(approval.approval_id, []):
        yield c.AnswerPermission(approval.agent_id, request_id, decision)


def _forget(state: EngineState, approval: Approval) -> None:
    approvals = state.approvals
    approvals.by_id.pop(approval.approval_id, None)
    approvals.kept.discard(approval.approval_id)
    approvals.waiters.pop(approval.approval_id, None)


def _denied(event: e.ApprovalDecided) -> str:
    return f"denied by {event.by}" + (f": {event.words}" if event.words else "")
