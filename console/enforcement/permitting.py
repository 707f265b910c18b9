"""Check what still stands between an allowed call and its answer: a stop that came meanwhile, a rollback record, the network."""

from __future__ import annotations

from collections.abc import Iterator

from console.domain import command as c
from console.domain.agent import Agent, AgentId
from console.domain.permission import Decision, PermissionRequest, Verdict
from console.domain.profile import OBSERVE
from console.enforcement import dry_run, lineages
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
