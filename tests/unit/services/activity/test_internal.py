"""Our own knowledge of an agent as entries of its feed."""

from __future__ import annotations

from typing import Any

from console.audit.record import GENESIS, Record
from console.domain.activity import PATH_KEPT, Kind
from console.domain.agent import Agent, AgentId, ContextId, SandboxKind
from console.domain.calls.permission import Decision, PermissionRequest, Verdict
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.ids import ControlLevel
from console.domain.network import EgressRecord
from console.services.activity.internal import of_egress, of_record, of_step

A = AgentId("a-1")


def record(kind: str, what: str, **more: Any) -> Record:
    given = {"verdict": "", "agent_id": "a-1", "data": {}} | more
    return Record(7, 5.0, "supervisor", kind, what, previous=GENESIS, hash="h", **given)


def test_a_call_its_verdict_and_its_record_are_one_pair() -> None:
    [(who, call)] = of_step(e.PermissionAsked(5.0, 1.0, A, "r1", PermissionRequest("write_file", "x.txt")), "n")
    [(_, verdict), (_, file)] = of_record(
        record("permission", "write x.txt", verdict="allow", data={"request_id": "r1", "rollback_id": "rb"})
    )
    assert (who, call.kind, call.tool, call.text) == (A, Kind.TOOL_CALL, "write_file", "x.txt")
    assert call.pair == verdict.pair == file.pair == "r1"
    assert (verdict.kind, verdict.verdict, verdict.audit) == (Kind.VERDICT, "allow", 7)
    assert (file.kind, file.ref, file.tool, file.rollback_id) == (Kind.FILE, "x.txt", "write", "rb")


def test_a_call_says_where_it_is_made_and_one_whose_folder_cannot_be_kept_whole_is_not_whole() -> None:
    for cwd, ref, left_out in (("/w/sub", "/w/sub", 0), ("", "", 0), ("/" + "x" * PATH_KEPT, "", PATH_KEPT + 1)):
        [(_, call)] = of_step(e.PermissionAsked(5.0, 1.0, A, "r1", PermissionRequest("shell", "ls", cwd)), "n")
        assert (call.ref, call.left_out) == (ref, left_out)


def test_a_call_that_waits_for_a_human_says_so() -> None:
    for verdict, many in ((Verdict.ASK, 1), (Verdict.ALLOW, 0)):
        judged = e.CallJudged(5.0, 1.0, A, "r1", PermissionRequest("shell", "rm"), Decision(verdict, "rule", "why"))
        found = list(of_step(judged, "n"))
        assert len(found) == many and all((entry.verdict, entry.pair) == ("ask", "r1") for _, entry in found)


def test_usage_is_spend_words_alone_are_a_message_nothing_is_nothing() -> None:
    [(_, spend)] = of_step(e.UsageReported(1.0, 1.0, A, tokens=5, cost_usd=0.25, action="draft"), "n")
    assert (spend.kind, spend.tokens, spend.cost_nano, spend.text) == (Kind.SPEND, 5, 250_000_000, "draft")
    [(_, said)] = of_step(e.UsageReported(1.0, 1.0, A, action="thinks"), "n")
    assert said.kind is Kind.MESSAGE
    assert not list(of_step(e.UsageReported(1.0, 1.0, A), "n")) and not list(of_step(e.ClockTicked(1.0, 1.0), "n"))


def test_a_child_is_its_parents_and_a_record_is_everybodys_it_names() -> None:
    child = Agent(AgentId("a-2"), "<b>x</b>", A, A, 2, ContextId("c"), ControlLevel.MANAGED, SandboxKind.NONE, 9.0)
    [(parent, spawn)] = of_step(c.ShowAgent(child), "n")
    assert (parent, spawn.kind, spawn.ref, spawn.source_id) == (A, Kind.SPAWN, "a-2", "spawn:a-2")
    several = list(of_record(record("freeze", "2 agents", data={"agents": ["a-2", "a-1", 7, None]})))
    assert [who for who, _ in several] == ["a-1", "a-2"] and several[0][1].audit == 7
    assert not list(of_record(record("supervisor.started", "x", agent_id="")))
    [(_, halt)] = of_record(record("budget.halt", "over", verdict="halt"))
    assert halt.kind is Kind.ERROR and halt.failed
    assert list(of_step(c.NoteEvent(A, "freeze", "thawed"), "n")) and not list(of_step(c.NoteEvent(A, "ended", "x"), "n"))


def test_a_blocked_request_stands_out() -> None:
    blocked = EgressRecord(1.0, "a-1", "GET", "evil.example", "/x", 403, 0, 0, False, "not in the allowlist")
    who, entry = of_egress(blocked, "n")
    assert who == "a-1" and entry.failed and "GET evil.example/x: blocked, 403" in entry.text
