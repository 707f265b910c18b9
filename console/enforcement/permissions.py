"""What an agent may do: judged by the policy outside the engine, then allowed, denied, or put before a human."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from console.domain import command as c
from console.domain import dry_run as d
from console.domain import event as e
from console.domain.permission import Decision, Verdict
from console.enforcement import approvals, dry_run, lineages
from console.enforcement.permitting import NOT_ALIVE, forbidden, permit, stopped
from console.enforcement.state import EngineState


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
