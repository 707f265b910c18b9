"""What an agent may do, in the simplest honest form: files inside its workspace, URLs by the allowlist, nothing else (deny is default)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from console.domain import command as c
from console.domain import event as e
from console.domain.permission import Decision, Verdict
from console.enforcement.state import EngineState

_DESTRUCTIVE = {"write_file": "file_write", "delete_file": "file_delete"}


def asked(state: EngineState, event: e.PermissionAsked) -> Iterator[c.Command]:
    """One verdict, always with rule and reason; a destructive call gets its rollback record first (promise 5)."""
    agent = state.agents.get(event.agent_id)
    tool, argument = event.request.tool, event.request.argument
    if agent is None or not agent.state.is_live:
        yield c.AnswerPermission(event.agent_id, event.request_id, Decision(Verdict.DENY, "agent", "the agent is not alive"))
        return
    if state.killed or state.soft_stop or agent.causes:
        decision = Decision(Verdict.DENY, "stop", "killed" if state.killed else state.soft_stop or "frozen")
        yield c.AnswerPermission(event.agent_id, event.request_id, decision)
        return
    yield c.ShowAgent(state.put(replace(agent, last_action=f"asks {tool} {argument}"[:200], last_action_at=event.at)))
    if kind := _DESTRUCTIVE.get(tool):
        allow = Decision(Verdict.ALLOW, f"{tool} in the workspace", "a rollback record was written first")
        yield c.SnapshotThenAnswer(event.agent_id, agent.context_id, event.request_id, kind, argument, allow)
    elif tool == "http_request":
        yield c.JudgeUrl(event.agent_id, event.request_id, argument, agent.effective_mode)
    else:
        decision = Decision(Verdict.DENY, "default", f"no rule allows {tool[:100]}")
        yield c.AnswerPermission(event.agent_id, event.request_id, decision)
