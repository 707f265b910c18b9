"""Verdicts are values, and only one of them means go ahead."""

from __future__ import annotations

from console.domain.calls.permission import Decision, PermissionRequest, Verdict


def test_a_decision_names_its_rule_and_carries_no_snapshot_unless_given() -> None:
    decision = Decision(Verdict.ALLOW, "workspace-write", "inside the workspace")
    assert decision.rollback_id is None
    assert [v for v in Verdict if v is Verdict.ALLOW] == [Verdict.ALLOW]
    assert PermissionRequest("write_file", "a.txt").argument == "a.txt"
