"""What is open, by agent and by tree."""

from __future__ import annotations

from dataclasses import replace

from console.domain.agent import AgentId, ContextId
from console.domain.calls.approval import Approval, ApprovalState
from console.domain.calls.permission import PermissionRequest
from console.enforcement.state import Approvals


def test_only_what_waits_counts_against_a_trees_share() -> None:
    one = Approval("q-1", AgentId("a"), AgentId("r"), ContextId("c"), PermissionRequest("t", "x"), "d", "rule", "why", 1.0, 2.0)
    two = replace(one, approval_id="q-2", agent_id=AgentId("b"), state=ApprovalState.APPROVED)
    held = Approvals(by_id={"q-1": one, "q-2": two})
    assert held.waiting_of_tree(AgentId("r")) == 1 and held.waiting_of_tree(AgentId("other")) == 0
    assert held.of_agent(AgentId("b")) == [two]
