"""Dry-run as dialogues: what is allowed becomes a line of a plan; an approved plan lets exactly its calls through, once, past nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from console.domain.agent import AgentId, LaunchRequest
from console.domain.calls.approval import digest_of
from console.domain.calls.lineage import Match, Seen
from console.domain.calls.permission import Decision, PermissionRequest, Verdict
from console.domain.engine import command as c
from console.domain.engine import dry_run as d
from console.domain.engine import event as e
from console.enforcement.dry_run import head_of, words_of
from console.enforcement.state import Seen as SeenRow
from tests.fakes.playbook import Playbook

ALLOW, ASK, DENY = (Decision(verdict, "rule", "why") for verdict in (Verdict.ALLOW, Verdict.ASK, Verdict.DENY))
CALL = PermissionRequest("run", "make it")


def enter(book: Playbook, agent: str = "a") -> Playbook:
    return book >> d.DryRunEntered(book.at, book.boot, AgentId(agent), "operator:0", "look")


def leave(book: Playbook, agent: str = "a") -> Playbook:
    return book >> d.DryRunLeft(book.at, book.boot, AgentId(agent), "operator:0", "enough")


def judge(
    book: Playbook, decision: Decision = ALLOW, request: PermissionRequest = CALL, name: str = "r1", agent: str = "a", **more: Any
) -> Playbook:
    return book >> e.CallJudged(book.at, book.boot, AgentId(agent), name, request, decision, **more)


def release(book: Playbook, request: PermissionRequest = CALL, agent: str = "a", head: str = "a", **fields: Any) -> d.Release:
    digest = digest_of(request, agent, book.agent(agent).context_id)
    return replace(d.Release("p-1", head, 1, agent, digest, "allow", "rule", "operator:0", book.boot + 600), **fields)


def approve(book: Playbook, *releases: d.Release, head: str = "a") -> Playbook:
    return book >> d.PlanApproved(book.at, book.boot, "p-1", AgentId(head), releases or (release(book),), "operator:0")


def use(book: Playbook, ok: bool = True) -> Playbook:
    command = book << d.UseRelease
    event = (AgentId(command.release.agent_id), command.request_id, command.request, command.decision)
    return book >> d.ReleaseUsed(book.at, book.boot, *event, ok=ok, why="" if ok else "it was made already")


def test_what_is_allowed_is_planned_and_answered_only_once_it_is_written_down() -> None:
    book = enter(Playbook().run("a"))
    judge(book)
    command = book << d.PlanCall
    assert (command.head, command.verdict, command.decision) == ("a", Verdict.ALLOW, ALLOW)
    book.none(c.AnswerPermission)
    told = Decision(Verdict.DENY, d.RULE, "not executed")
    book >> d.CallPlanned(book.at, book.boot, AgentId("a"), "r1", told)
    assert (book << c.AnswerPermission).decision == told
    book.none(d.NoteRefused)


def test_files_and_urls_leave_no_record_and_reach_nothing() -> None:
    book = enter(Playbook().run("a"))
    for tool in ("write_file", "delete_file", "http_request", "read_file"):
        judge(book, request=PermissionRequest(tool, "x"), name=tool)
        book << d.PlanCall
        for kind in (c.SnapshotThenAnswer, c.JudgeUrl, c.AnswerPermission, c.KeepMarks):
            book.none(kind)


def test_what_is_denied_is_answered_as_live_and_noted() -> None:
    book = enter(Playbook().run("a"))
    judge(book, DENY)
    assert (book << c.AnswerPermission).decision == DENY and (book << d.NoteRefused).verdict is Verdict.DENY
    judge(Playbook().run("a"), DENY).none(d.NoteRefused)


def test_an_ask_waits_and_what_the_human_says_is_planned() -> None:
    book = enter(Playbook().run("a"))
    judge(book, ASK)
    approval = (book << c.KeepApproval).approval
    book >> e.ApprovalDecided(book.at, book.boot, approval.approval_id, approval.digest, True, approval.scope, "operator:0", "")
    used = book << c.UseApproval
    book >> e.ApprovalUsed(book.at, book.boot, AgentId("a"), used.approval.approval_id, used.request_id, True, "")
    planned = book << d.PlanCall
    assert planned.verdict is Verdict.ASK and planned.rule == "rule" and planned.decision.rule.startswith("approval ")
    judge(book, ASK, PermissionRequest("run", "other"), name="r2")
    approval = (book << c.KeepApproval).approval
    book >> e.ApprovalDecided(book.at, book.boot, approval.approval_id, approval.digest, False, approval.scope, "operator:0", "no")
    assert (book << d.NoteRefused).verdict is Verdict.ASK


def test_an_approved_call_goes_through_once_after_the_ledger_said_so() -> None:
    book = approve(enter(Playbook().run("a")))
    judge(book)
    book.none(c.AnswerPermission)
    assert (use(book) << c.AnswerPermission).decision == ALLOW
    judge(book, name="r2")
    book << d.PlanCall
    assert book.state.dry_run.passed == set() and not book.state.dry_run.judged.keys() - {"r2"}


def test_two_at_once_take_one_place() -> None:
    book = approve(enter(Playbook().run("a")))
    judge(book, name="r1") << d.UseRelease
    judge(book, name="r2") << d.PlanCall


def test_what_the_ledger_does_not_call_good_is_not_executed() -> None:
    book = approve(enter(Playbook().run("a")))
    decision = (use(judge(book), ok=False) << c.AnswerPermission).decision
    assert decision.verdict is Verdict.DENY and "made already" in decision.reason


def test_only_exactly_the_same_request_of_the_same_agent() -> None:
    book = Playbook().run("a").run("b", parent_id=AgentId("a"))
    approve(enter(book))
    others = [replace(CALL, argument="make it "), replace(CALL, tool="Run"), replace(CALL, cwd="/"), replace(CALL, detail="{}")]
    for number, request in enumerate(others):
        judge(book, request=request, name=f"r{number}") << d.PlanCall
    judge(book, agent="b", name="b1") << d.PlanCall
    judge(book, request=replace(CALL, says="other words", call_id="x"), name="same") << d.UseRelease


def test_a_file_written_by_an_approved_call_gets_its_record_first() -> None:
    book = enter(Playbook().run("a"))
    request = PermissionRequest("write_file", "x")
    approve(book, release(book, request))
    judge(book, request=request)
    assert (use(book) << c.SnapshotThenAnswer).path == "x"


def test_the_plan_stands_for_the_ask_that_it_showed_and_for_no_other() -> None:
    book = enter(Playbook().run("a"))
    approve(book, release(book, verdict="ask"))
    assert (use(judge(book, ASK)) << c.AnswerPermission).decision.rule == "plan p-1"
    for verdict, name in (("allow", "rule"), ("ask", "another")):
        book = enter(Playbook().run("a"))
        approve(book, release(book, verdict=verdict, rule=name))
        judge(book, ASK) << c.KeepApproval
        book.none(d.UseRelease)


def test_rules_kills_freezes_and_deadlines_win_over_an_approved_plan() -> None:
    book = approve(enter(Playbook().run("a")))
    assert (judge(book, DENY) << c.AnswerPermission).decision == DENY
    book >> e.FrozenSetChanged(book.at, book.boot, {AgentId("a"): ("operator",)})
    assert (judge(book, name="r2") << c.AnswerPermission).decision.rule == "stop"
    book = approve(enter(Playbook().run("a")))
    book.tick(601)
    assert (book << d.EndPlans).plan_id == "p-1"
    judge(book) << d.PlanCall
    book = approve(enter(Playbook().run("a")))
    judge(book)
    asked = book << d.UseRelease
    book >> e.KillStarted(book.at, book.boot, "k", (AgentId("a"),), "why", "operator:0")
    assert (book << d.EndPlans).heads == ("a",) and not book.state.dry_run.releases
    event = (AgentId("a"), asked.request_id, asked.request, asked.decision)
    book >> d.ReleaseUsed(book.at, book.boot, *event, ok=True)
    assert (book << c.AnswerPermission).decision.verdict is Verdict.DENY
    book = approve(enter(Playbook().run("a")))
    book >> e.KillStarted(book.at, book.boot, "k", None, "why", "operator:0")
    assert (book << d.EndPlans).heads is None
    approve(book)
    assert not book.state.dry_run.releases, "what was approved while the kill came lets nothing through"


def test_children_are_in_it_and_leave_it_with_whoever_they_are_in_it_with() -> None:
    book = Playbook().run("a").run("b", parent_id=AgentId("a"))
    enter(book)
    assert words_of(book.state, book.agent("b")).startswith("below a: ")
    book.run("c", parent_id=AgentId("b"), request=LaunchRequest(("x",), parent_id=AgentId("b"), dry_run=False))
    assert d.is_below(book.agent("c").dry_run, "a")
    leave(book, "b")
    assert book.agent("b").dry_run and book.agent("c").dry_run, "nobody leaves before whoever is above"
    enter(book, "b")
    leave(book, "a")
    assert book.agent("a").dry_run == "" and book.agent("b").dry_run.startswith("by ") and d.is_below(book.agent("c").dry_run, "b")
    leave(book, "b")
    assert not book.state.dry_run.marked and head_of(book.state, book.agent("c")) is None


def test_whoever_runs_inside_somebody_in_dry_run_is_in_it() -> None:
    book = enter(Playbook().run("a").run("b"))
    assert head_of(book.state, book.agent("b")) is None
    book.state.seen[AgentId("b")] = SeenRow(inside=AgentId("a"))
    judge(book, agent="b") << d.PlanCall
    book.state.put(replace(book.agent("a"), parent_id=AgentId("b")))  # files may name each other in a circle
    assert head_of(book.state, book.agent("b")) == "a"


def test_one_is_started_in_it_by_whoever_asks_and_the_end_of_its_parent_does_not_let_it_out() -> None:
    book = Playbook().run("a", dry_run=True)
    assert book.agent("a").dry_run == "by operator:0: at its launch"
    book.run("b", parent_id=AgentId("a"))
    book >> e.AgentExited(book.at, book.boot, AgentId("a"), 0)
    judge(book, agent="b") << d.PlanCall


def test_nothing_that_was_approved_below_goes_through_once_all_of_a_tree_is_put_into_it() -> None:
    book = Playbook().run("a").run("b", parent_id=AgentId("a"))
    approve(enter(book, "b"), release(book, agent="b", head="b"), head="b")
    enter(book, "a")
    ended = book << d.EndPlans
    assert (ended.heads, ended.state) == (("b",), d.PlanState.VOID)
    judge(book, agent="b")
    assert (book << d.PlanCall).head == "a", "as after a restart"


def test_steps_of_a_sequence_count_in_dry_run_alone_and_are_forgotten_with_it() -> None:
    def match(step: int) -> tuple[Match, ...]:
        return (Match("p", "why", ("read", "send"), False, (Seen(step, 0),), "", "text"),)

    book = enter(Playbook().run("a"))
    assert (judge(book, matches=match(0)) << d.PlanCall).marks
    decision = (judge(book, name="r2", matches=match(1)) << c.AnswerPermission).decision
    assert decision.rule == "sequence p" and not book.state.lineages.of(book.agent("a")).marks
    leave(book)
    assert (judge(book, name="r3", matches=match(1)) << c.AnswerPermission).decision == ALLOW
    # A call that is let through takes its step for good.
    book = approve(enter(Playbook().run("a")))
    judge(book, matches=match(0))
    assert (use(book) << c.KeepMarks).marks


def test_after_a_restart_what_was_approved_holds_for_those_who_live_and_are_in_it() -> None:
    book = enter(Playbook().run("a")).run("b")
    rest = (release(book), release(book, agent="b", head="b"), replace(release(book), agent_id="gone"))
    book >> d.PlansRestored(book.at, book.boot, rest)
    assert list(book.state.dry_run.releases) == [("a", release(book).digest)]


class Storm(RuleBasedStateMachine):
    """Whatever happens in whatever order: nobody in dry-run is answered allow but for a call that the ledger said was good, each once."""

    def __init__(self) -> None:
        super().__init__()
        self.book = Playbook().run("a").run("b", parent_id=AgentId("a"))
        self.number = 0
        self.pending: list[d.UseRelease] = []
        self.good: set[str] = set()
        self.dry_before: set[str] = set()

    def step(self, event: e.Event) -> None:
        self.dry_before = {i for i in ("a", "b") if head_of(self.book.state, self.book.agent(i)) is not None}
        self.book >> event
        self.pending += self.book.all(d.UseRelease)
        for kind in (c.AnswerPermission, c.SnapshotThenAnswer, c.JudgeUrl):
            for answer in self.book.all(kind):
                allows = kind is not c.AnswerPermission or answer.decision.verdict is Verdict.ALLOW
                if allows and answer.agent_id in self.dry_before:
                    assert answer.request_id in self.good, "allowed in dry-run, past the ledger"
                    self.good.discard(answer.request_id)

    @rule(agent=st.sampled_from("ab"), what=st.sampled_from(("x", "y")), decision=st.sampled_from((ALLOW, ASK, DENY)))
    def asks(self, agent: str, what: str, decision: Decision) -> None:
        self.number += 1
        request = PermissionRequest("write_file" if what == "y" else "run", what)
        self.step(e.CallJudged(self.book.at, self.book.boot, AgentId(agent), f"r{self.number}", request, decision))

    @rule(agent=st.sampled_from("ab"))
    def enters(self, agent: str) -> None:
        self.step(d.DryRunEntered(self.book.at, self.book.boot, AgentId(agent), "operator:0", "x"))

    @rule(agent=st.sampled_from("ab"))
    def leaves(self, agent: str) -> None:
        self.step(d.DryRunLeft(self.book.at, self.book.boot, AgentId(agent), "operator:0", "x"))

    @rule(
        head=st.sampled_from("ab"), agent=st.sampled_from("ab"), what=st.sampled_from(("x", "y")), verdict=st.sampled_from(("allow", "ask"))
    )
    def approves(self, head: str, agent: str, what: str, verdict: str) -> None:
        request = PermissionRequest("write_file" if what == "y" else "run", what)
        one = release(self.book, request, agent, head, verdict=verdict)
        self.step(d.PlanApproved(self.book.at, self.book.boot, "p-1", AgentId(head), (one,), "operator:0"))

    @rule(ok=st.booleans())
    def ledger_says(self, ok: bool) -> None:
        if self.pending:
            one = self.pending.pop(0)
            if ok:
                self.good.add(one.request_id)
            event = (AgentId(one.release.agent_id), one.request_id, one.request, one.decision)
            self.step(d.ReleaseUsed(self.book.at, self.book.boot, *event, ok=ok, why="" if ok else "no"))

    @rule(seconds=st.sampled_from((1.0, 700.0)))
    def passes(self, seconds: float) -> None:
        self.book.later(seconds)
        self.step(e.ClockTicked(self.book.at, self.book.boot))

    @rule(approved=st.booleans())
    def human(self, approved: bool) -> None:
        waiting = [one for one in self.book.state.approvals.by_id.values() if one.state.value == "waiting"]
        if waiting:
            one = waiting[0]
            self.step(e.ApprovalDecided(self.book.at, self.book.boot, one.approval_id, one.digest, approved, one.scope, "operator:0", ""))
            for use_it in self.book.all(c.UseApproval):
                event = (use_it.approval.agent_id, use_it.approval.approval_id, use_it.request_id)
                self.step(e.ApprovalUsed(self.book.at, self.book.boot, *event, True, ""))

    @invariant()
    def nothing_piles_up(self) -> None:
        dry = self.book.state.dry_run
        assert len(dry.releases) <= 2 and dry.passed == set()
        assert head_of(self.book.state, self.book.agent("b")) is not None or not self.book.agent("a").dry_run


TestStorm = Storm.TestCase
TestStorm.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
