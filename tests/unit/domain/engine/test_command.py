"""Commands carry what the runner needs; records do not share their data."""

from __future__ import annotations

from console.domain.agent import AgentId
from console.domain.calls.permission import Decision, Verdict
from console.domain.engine.command import Record, SnapshotThenAnswer


def test_two_records_do_not_share_their_data() -> None:
    assert Record("a", "k", "w").data is not Record("a", "k", "w").data
    assert Record("a", "k", "w").must is False


def test_an_allow_waits_for_its_snapshot() -> None:
    wanted = SnapshotThenAnswer(AgentId("a"), "c", "q", "file_write", "x", Decision(Verdict.ALLOW, "r", "why"))
    assert wanted.decision.rollback_id is None
