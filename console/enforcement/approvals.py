"""What an agent may do: judged by the policy outside the engine, then allowed, denied, or put before a human.

Decides who waits for a human, and what a decision, a deadline, a kill or an end makes of it. It decides too what still stands between
an allowed call and its answer: a stop that came meanwhile, a rollback record, the network.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace

from console.domain.agent import Agent, AgentId, AgentState
from console.domain.calls.approval import Approval, ApprovalScope, ApprovalState, digest_of, session_digest
from console.domain.calls.permission import Decision, PermissionRequest, Verdict
from console.domain.calls.profile import OBSERVE
from console.domain.engine import command as c
from console.domain.engine import dry_run as d
from console.domain.engine import event as e
from console.enforcement import approvals, dry_run, lineages
from console.enforcement.state import EngineState

NOT_ALIVE = Decision(Verdict.DENY, "agent", "the agent is not alive")
_DESTRUCTIVE = {"write_file": "file_write", "delete_file": "file_delete"}


def stopped(state: EngineState, agent: Agent | None) -> Decision | None:
    """Why nothing at all is allowed to this agent now; None: it may be judged."""
    if agent is None or not agent.state.is_live:
        return NOT_ALIVE
    if state.killed or state.soft_stop or agent.causes:
        return Decision(Verdict.DENY, "stop", "killed" if state.killed else state.soft_stop or "frozen")
    if agent.agent_id in state.killing or agent.agent_id in state.halting:
        return Decision(Verdict.DENY, "stop", "being stopped")
    return None


def forbidden(state: EngineState, agent: Agent, request_id: str, request: PermissionRequest) -> Decision | None:
    """Why no approval lets a call through: it completes a forbidden sequence. Of an agent that is only observed, nothing is blocked."""
    if state.profiles.of(agent) == OBSERVE:
        return None
    return lineages.forbidden(state.lineages, agent, request_id, dry_run.marks_for(state, agent, request_id, request))


def permit(state: EngineState, agent_id: AgentId, request_id: str, request: PermissionRequest, decision: Decision) -> Iterator[c.Command]:
    """Answers an allow; a destructive call gets its rollback record first (promise 5), a URL the allowlist's word."""
    agent = state.agents.get(agent_id)
    why_not = stopped(state, agent)  # asked again: whatever was pressed while it was judged, or while a human thought, wins
    if agent is not None and why_not is None:
        why_not = forbidden(state, agent, request_id, request)
    if agent is None or why_not is not None:
        yield c.AnswerPermission(agent_id, request_id, why_not or NOT_ALIVE)
    elif head := dry_run.held_by(state, agent, request_id):
        yield from dry_run.instead(state, agent, head, request_id, request, decision)
    elif step := lineages.takes(state.lineages, agent, request_id, request, decision, lambda name: state.context(name)[1]):
        yield step  # on disk before it is answered; it comes back here
    elif kind := _DESTRUCTIVE.get(request.tool):
        yield c.SnapshotThenAnswer(agent_id, agent.context_id, request_id, kind, request.argument, decision)
    elif request.tool == "http_request":
        yield c.JudgeUrl(agent_id, request_id, request.argument, agent.effective_mode)
    else:
        yield c.AnswerPermission(agent_id, request_id, decision)


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
    # A flood of requests is an attack on the operator's attention, and hides the one that matters.
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
    # On disk before it is shown: what a person could decide must survive a restart of the supervisor.
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
    # The operator decided on other text than what waits now: a decision binds to exactly what was shown.
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


def asked(state: EngineState, event: e.PermissionAsked) -> Iterator[c.Command]:
    """Deny the call of a stopped agent. Every other call is checked by the rules in force."""
    agent = state.agents.get(event.agent_id)
    denied = stopped(state, agent)
    if agent is None or denied is not None:
        yield c.AnswerPermission(event.agent_id, event.request_id, denied or NOT_ALIVE)
        return
    words = f"asks {event.request.tool} {event.request.argument}"[:200]
    yield c.ShowAgent(state.put(replace(agent, last_action=words, last_action_at=event.at)))
    yield c.JudgeCall(event.agent_id, event.request_id, event.request)


def judged(state: EngineState, event: e.CallJudged) -> Iterator[c.Command]:
    """The policy's verdict: deny before ask before allow was decided there; here it becomes an answer, or waits."""
    agent = state.agents.get(event.agent_id)
    denied = stopped(state, agent)
    if agent is not None and denied is None:
        dry_run.judged(state, agent, event)
    if agent is not None and denied is None and event.decision.verdict is not Verdict.DENY:
        state.lineages.matches[event.request_id] = event.matches
        denied = forbidden(state, agent, event.request_id, event.request)  # nobody approves what no approval can loosen
    if agent is None or denied is not None:
        yield c.AnswerPermission(event.agent_id, event.request_id, denied or NOT_ALIVE)
    elif event.decision.verdict is Verdict.ALLOW:
        yield from permit(state, event.agent_id, event.request_id, event.request, event.decision)
    elif event.decision.verdict is Verdict.ASK and (stands := dry_run.stands_for(state, agent, event)) is not None:
        yield from permit(state, event.agent_id, event.request_id, event.request, stands)
    elif event.decision.verdict is Verdict.ASK:
        yield from approvals.opened(state, agent, event)
    else:
        yield c.AnswerPermission(event.agent_id, event.request_id, event.decision)


def marks_kept(state: EngineState, event: e.MarksKept) -> Iterator[c.Command]:
    """A call's step of a forbidden sequence is on disk. The call goes on, unless another agent's step came between."""
    agent = state.agents.get(event.agent_id)
    if agent is None or event.why_not:
        words = Decision(Verdict.DENY, "sequence", event.why_not)
        yield c.AnswerPermission(event.agent_id, event.request_id, words if event.why_not else NOT_ALIVE)
        return
    lineages.kept(state.lineages, agent, event)
    yield from permit(state, event.agent_id, event.request_id, event.request, event.decision)


def released(state: EngineState, event: d.ReleaseUsed) -> Iterator[c.Command]:
    """The ledger's word on a call of an approved plan: used up, so it goes on through all that is left of a live call; or not good."""
    if event.ok:
        state.dry_run.passed.add(event.request_id)
        yield from permit(state, event.agent_id, event.request_id, event.request, event.decision)
    else:
        yield c.AnswerPermission(event.agent_id, event.request_id, Decision(Verdict.DENY, d.RULE, f"not executed: {event.why}"))
