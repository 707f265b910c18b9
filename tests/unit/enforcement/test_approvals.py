"""Approvals as dialogues: who waits, who decides, and what a deadline, a kill, an end, a change or a restart makes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from console.domain.agent import AgentId, AgentState
from console.domain.calls.approval import Approval, ApprovalScope, ApprovalState, Grant, digest_of, session_digest
from console.domain.calls.permission import Decision, PermissionRequest, Verdict
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.enforcement.approvals import OPENED_MAX, OPENED_S
from tests.fakes.playbook import Playbook

ASK = Decision(Verdict.ASK, "shell(cargo publish:*)", "a rule asks a person")
CALL = PermissionRequest("run", "cargo publish")


def judged(book: Playbook, request_id: str, request: PermissionRequest = CALL, agent: str = "a", decision: Decision = ASK) -> Playbook:
    return book >> e.CallJudged(book.at, book.boot, AgentId(agent), request_id, request, decision)


def decide(book: Playbook, approval: Approval, approved: bool = True, scope: ApprovalScope = ApprovalScope.ONCE, **fields: Any) -> Playbook:
    digest = fields.get("digest", approval.digest)
    return book >> e.ApprovalDecided(
        book.at, book.boot, approval.approval_id, digest, approved, scope, "operator:0", fields.get("words", "")
    )


def use(book: Playbook, ok: bool = True) -> Playbook:
    command = book << c.UseApproval
    event = e.ApprovalUsed(
        book.at, book.boot, command.approval.agent_id, command.approval.approval_id, command.request_id, ok, "" if ok else "was used"
    )
    return book >> event


def waiting(book: Playbook, request_id: str = "0123456789abcdef", request: PermissionRequest = CALL, agent: str = "a") -> Approval:
    judged(book, request_id, request, agent)
    found: Approval = (book << c.KeepApproval).approval
    return found


def test_an_ask_waits_and_is_shown_on_the_agent() -> None:
    book = Playbook().run("a")
    approval = waiting(book)
    assert (approval.approval_id, approval.digest) == ("q-0123456789abcdef", digest_of(CALL, "a", approval.context_id))
    book.none(c.AnswerPermission)
    assert book.agent("a").state is AgentState.NEEDS_OK


def test_an_approval_lets_exactly_one_call_through_and_only_after_the_ledger_said_so() -> None:
    book = Playbook().run("a")
    approval = waiting(book)
    decide(book, approval).none(c.AnswerPermission)
    answer = use(book) << c.AnswerPermission
    assert (answer.request_id, answer.decision.verdict) == ("0123456789abcdef", Verdict.ALLOW)
    assert book.agent("a").state is AgentState.RUNNING
    again = waiting(book, "f" * 16)
    assert again.approval_id != approval.approval_id  # the same request, once more: it waits anew


def test_a_use_that_the_ledger_refuses_is_denied() -> None:
    book = Playbook().run("a")
    decide(book, waiting(book))
    assert (use(book, ok=False) << c.AnswerPermission).decision.verdict is Verdict.DENY


def test_a_denial_carries_its_reason() -> None:
    book = Playbook().run("a")
    decide(book, waiting(book), approved=False, words="not on a Friday")
    answer = book << c.AnswerPermission
    assert answer.decision == Decision(Verdict.DENY, "approval q-0123456789abcdef", "denied by operator:0: not on a Friday")
    decide(book, (book << c.ShowApproval).approval).none(c.UseApproval)


def test_a_decision_on_another_content_is_no_decision() -> None:
    book = Playbook().run("a")
    approval = waiting(book)
    decide(book, approval, digest="0" * 64)
    assert book.out == [] and book.agent("a").state is AgentState.NEEDS_OK


def test_a_request_that_changes_under_its_name_makes_the_first_one_void() -> None:
    book = Playbook().run("a")
    first = waiting(book, "1" * 16, replace(CALL, call_id="toolu_1"))
    judged(book, "2" * 16, replace(CALL, argument="cargo publish; curl evil", call_id="toolu_1"))
    closed, opened = book.all(c.KeepApproval)
    assert (closed.approval.approval_id, closed.approval.state, closed.was) == (
        first.approval_id,
        ApprovalState.VOID,
        ApprovalState.WAITING,
    )
    assert opened.approval.request.argument.endswith("evil")
    assert (book << c.AnswerPermission).request_id == "1" * 16
    decide(book, first)
    assert [type(x) for x in book.out] == [c.TakeBackApproval]  # nothing goes through, nor after a restart


def test_the_same_request_again_takes_up_what_was_decided_meanwhile() -> None:
    book = Playbook().run("a")
    approval = waiting(book, "1" * 16)
    book >> e.AskerLeft(book.at, book.boot, "1" * 16)
    decide(book, approval).none(c.UseApproval)  # nobody is there to be let through
    judged(book, "2" * 16)
    assert (book << c.UseApproval).request_id == "2" * 16


def test_of_two_equal_requests_one_is_let_through() -> None:
    book = Playbook().run("a")
    approval = waiting(book, "1" * 16)
    judged(book, "2" * 16).none(c.KeepApproval)
    decide(book, approval)
    use(book)
    assert {x.request_id: x.decision.verdict for x in book.all(c.AnswerPermission)} == {"1" * 16: Verdict.ALLOW, "2" * 16: Verdict.DENY}


def test_for_a_session_equal_requests_pass_in_it_and_in_no_other() -> None:
    book = Playbook().run("a", context_id="c").run("b", context_id="c").run("x", context_id="d")
    approval = waiting(book, "1" * 16)
    waiting(book, "2" * 16, agent="b")
    decide(book, approval, scope=ApprovalScope.SESSION)
    assert (book << c.AnswerPermission).request_id == "2" * 16 and (book << c.AnswerPermission).decision.verdict is Verdict.ALLOW
    use(book)
    assert (judged(book, "3" * 16, agent="b") << c.AnswerPermission).decision.verdict is Verdict.ALLOW
    judged(book, "4" * 16, agent="x").none(c.AnswerPermission)
    judged(book, "5" * 16, replace(CALL, argument="cargo publish --force"), agent="b").none(c.AnswerPermission)


def test_a_deny_of_the_policy_is_never_loosened_by_a_grant() -> None:
    book = Playbook().run("a", context_id="c")
    decide(book, waiting(book), scope=ApprovalScope.SESSION)
    use(book)
    answer = judged(book, "3" * 16, decision=Decision(Verdict.DENY, "shell(cargo:*)", "blocked by rule")) << c.AnswerPermission
    assert answer.decision.verdict is Verdict.DENY


def test_the_clock_runs_down_to_a_denial() -> None:
    book = Playbook().run("a")
    waiting(book)
    book.tick(599)
    book.none(c.AnswerPermission)
    book.tick(2)
    assert (book << c.AnswerPermission).decision.reason == "not answered within 600 s"
    assert (book << c.KeepApproval).approval.state is ApprovalState.EXPIRED and book.agent("a").state is AgentState.RUNNING


def test_an_approval_that_nobody_took_up_is_over_too() -> None:
    book = Playbook().run("a")
    approval = waiting(book, "1" * 16)
    book >> e.AskerLeft(book.at, book.boot, "1" * 16)
    decide(book, approval)
    book.tick(601)
    assert (book << c.KeepApproval).was is ApprovalState.APPROVED
    judged(book, "2" * 16).none(c.UseApproval)


@pytest.mark.parametrize("target", [None, (AgentId("a"),)])
def test_a_kill_voids_what_waits_and_ends_what_the_sessions_of_the_killed_were_given(target: Any) -> None:
    book = Playbook().run("a", context_id="c").run("b", context_id="c")
    decide(book, waiting(book), scope=ApprovalScope.SESSION)
    use(book)
    other = replace(CALL, argument="rm -r x")
    waiting(book, "1" * 16, other)
    waiting(book, "2" * 16, other, agent="b")
    book >> e.KillStarted(book.at, book.boot, "k", target, "r", "b")
    assert {x.request_id for x in book.all(c.AnswerPermission)} == ({"1" * 16, "2" * 16} if target is None else {"1" * 16})
    assert (book << c.EndGrants).sessions == (() if target is None else ("c",)) and book.state.approvals.grants == {}
    assert [x.request for x in book.state.approvals.open_or_taken({AgentId("a")})] == [other]  # for the evidence of the kill


def test_a_kill_leaves_what_another_session_was_given_and_one_of_everything_clears_the_disk_whatever_is_known_here() -> None:
    book = Playbook().run("a", context_id="c").run("b", context_id="d")
    decide(book, waiting(book), scope=ApprovalScope.SESSION)
    use(book)
    book >> e.KillStarted(book.at, book.boot, "k", (AgentId("b"),), "r", "b")
    assert book.all(c.EndGrants) == [] and len(book.state.approvals.grants) == 1
    book = Playbook().run("a")
    book >> e.KillStarted(book.at, book.boot, "k", None, "r", "b")
    assert (book << c.EndGrants).sessions == ()  # a grant may be on its way to the disk, or could not be read at the start


@pytest.mark.parametrize("approved", [True, False])
def test_a_decision_that_comes_too_late_is_taken_back_on_disk(approved: bool) -> None:
    book = Playbook().run("a")
    approval = waiting(book)
    book >> e.AgentExited(book.at, book.boot, AgentId("a"), 0)
    decide(book, approval, approved)
    taken = book.all(c.TakeBackApproval)
    assert [t.approval_id for t in taken] == ([approval.approval_id] if approved else [])
    book.none(c.UseApproval)


def test_nobody_fills_the_disk_with_requests_that_change_all_the_time() -> None:
    book = Playbook().run("a").run("b")

    def opened(number: int, agent: str = "a") -> int:
        judged(book, f"{number:016x}", replace(CALL, argument=f"rm {number}", call_id=f"{agent}-call"), agent)
        return len([k for k in book.all(c.KeepApproval) if k.was is None])

    assert [opened(n) for n in range(OPENED_MAX + 1)] == [1] * OPENED_MAX + [0]
    assert book.all(c.AnswerPermission)[-1].decision == Decision(Verdict.DENY, "too many requests", "this tree asked 100 times within 60 s")
    assert opened(200, "b") == 1  # another tree is not touched
    book.tick(OPENED_S + 1)
    assert opened(201) == 1
    book.tick(OPENED_S + 1)
    assert book.state.approvals.opened == {}


def test_who_is_thawed_while_it_waits_still_needs_an_ok() -> None:
    book = Playbook().run("a")
    waiting(book)
    book >> e.FrozenSetChanged(book.at, book.boot, {AgentId("a"): ("operator",)})
    assert book.agent("a").state is AgentState.FROZEN
    book >> e.FrozenSetChanged(book.at, book.boot, {})
    assert book.agent("a").state is AgentState.NEEDS_OK


def test_a_press_between_the_decision_and_its_use_wins() -> None:
    book = Playbook().run("a")
    decide(book, waiting(book))
    command = book << c.UseApproval
    book >> e.KillStarted(book.at, book.boot, "k", None, "r", "b")
    book >> e.ApprovalUsed(book.at, book.boot, AgentId("a"), command.approval.approval_id, command.request_id, True)
    assert (book << c.AnswerPermission).decision.verdict is Verdict.DENY


def test_who_is_frozen_meanwhile_is_not_let_through() -> None:
    book = Playbook().run("a")
    decide(book, waiting(book))
    command = book << c.UseApproval
    book >> e.FrozenSetChanged(book.at, book.boot, {AgentId("a"): ("operator",)})
    book >> e.ApprovalUsed(book.at, book.boot, AgentId("a"), command.approval.approval_id, command.request_id, True)
    assert (book << c.AnswerPermission).decision.reason == "frozen"


def test_an_end_takes_its_requests_along() -> None:
    book = Playbook().run("a")
    approval = waiting(book)
    book >> e.AgentExited(book.at, book.boot, AgentId("a"), 0)
    assert (book << c.AnswerPermission).decision.reason == "its agent has ended"
    decide(book, approval)
    assert [type(x) for x in book.out] == [c.TakeBackApproval]


@pytest.mark.parametrize("end", [AgentState.ENDED, AgentState.LOST, AgentState.HALTED])
def test_nobody_is_asked_for_one_who_is_gone_however_it_went(end: AgentState) -> None:
    book = Playbook().run("a")
    approval = waiting(book)
    book.state.put(replace(book.agent("a"), state=end))  # as sightings and halts do: no exit is heard of
    book.tick(1)
    closed = book << c.KeepApproval
    assert (closed.approval.approval_id, closed.approval.state) == (approval.approval_id, ApprovalState.VOID)
    assert (book << c.AnswerPermission).decision.reason == "its agent has ended" and book.agent("a").state is end


def test_nobody_sees_what_is_not_on_disk_yet() -> None:
    book = Playbook().run("a")
    approval = waiting(book)
    assert book.state.approvals.kept == set()
    book >> e.ApprovalKept(book.at, book.boot, approval.approval_id)
    assert (book << c.ShowApproval).approval == approval and book.state.approvals.kept == {approval.approval_id}
    book.tick(601)
    assert book.state.approvals.kept == set()
    book >> e.ApprovalKept(book.at, book.boot, approval.approval_id)  # too late
    assert book.out == [] and book.state.approvals.kept == set()


def test_what_cannot_be_written_down_is_denied() -> None:
    book = Playbook().run("a")
    approval = waiting(book)
    book >> e.ApprovalBroke(book.at, book.boot, approval.approval_id, "the disk is full")
    assert (book << c.AnswerPermission).decision.reason == "not recorded: the disk is full"


def test_nobody_buries_what_matters_under_a_flood() -> None:
    book = Playbook().run("a").run("b")
    for number in range(book.state.approvals.waiting_max):
        waiting(book, f"{number:016x}", replace(CALL, argument=f"rm {number}"))
    judged(book, "f" * 16, replace(CALL, argument="rm one more"))
    assert (book << c.AnswerPermission).decision.rule == "too many requests"
    waiting(book, "e" * 16, agent="b")  # another tree is not touched


def test_after_a_restart_what_waited_waits_and_what_was_given_holds() -> None:
    before = Playbook().run("a", context_id="c")
    approval = waiting(before)
    book = Playbook().run("a", context_id="c")
    given = replace(CALL, argument="make test")
    grant = Grant(approval.context_id, session_digest(given, "c"), "q-9", "operator:0", 1.0)
    book >> e.ApprovalsRestored(book.at, book.boot, (approval,), (grant,))
    assert book.agent("a").state is AgentState.NEEDS_OK
    assert (judged(book, "1" * 16, given) << c.AnswerPermission).decision.verdict is Verdict.ALLOW
    judged(book, "2" * 16).none(c.KeepApproval)  # its asker is back
    decide(book, approval)
    assert (use(book) << c.AnswerPermission).decision.verdict is Verdict.ALLOW


def test_after_a_restart_while_killed_nothing_is_left() -> None:
    approval = waiting(Playbook().run("a"))
    book = Playbook()
    book.state.killed = True
    book >> e.ApprovalsRestored(book.at, book.boot, (approval,), (Grant(approval.context_id, "d", "q-9", "o", 1.0),))
    assert (book << c.KeepApproval).approval.state is ApprovalState.VOID
    book << c.EndGrants


class Ledger(RuleBasedStateMachine):
    """Whatever happens in whatever order: no request is allowed but by a decision on exactly it, and no decision allows two."""

    def __init__(self) -> None:
        super().__init__()
        self.book = Playbook().run("a").run("b")
        self.asked: dict[str, tuple[str, str]] = {}
        self.answered: dict[str, Verdict] = {}
        self.approved: dict[tuple[str, str], int] = {}
        self.allowed: dict[tuple[str, str], int] = {}
        self.uses: list[c.UseApproval] = []
        self.on_disk: dict[str, ApprovalState] = {}
        self.number = 0

    def follow(self) -> None:
        for command in self.book.out:
            if isinstance(command, c.KeepApproval):
                name = command.approval.approval_id
                if command.was is None or self.on_disk.get(name) is command.was:
                    self.on_disk[name] = command.approval.state
            elif isinstance(command, c.UseApproval):
                self.uses.append(command)
            elif isinstance(command, c.AnswerPermission):
                assert command.request_id not in self.answered
                self.answered[command.request_id] = command.decision.verdict
                if command.decision.verdict is Verdict.ALLOW:
                    key = self.asked[command.request_id]
                    self.allowed[key] = self.allowed.get(key, 0) + 1

    @rule(agent=st.sampled_from("ab"), what=st.sampled_from(["x", "y"]))
    def ask(self, agent: str, what: str) -> None:
        self.number += 1
        request_id = f"{self.number:016x}"
        self.asked[request_id] = (agent, what)
        judged(self.book, request_id, PermissionRequest("run", what, call_id=f"{agent}-call"), agent)
        self.follow()

    @rule(index=st.integers(0, 9), approved=st.booleans())
    def decide(self, index: int, approved: bool) -> None:
        names = [name for name, state in self.on_disk.items() if state is ApprovalState.WAITING]
        if not names:
            return
        approval = self.book.state.approvals.by_id.get(names[index % len(names)])
        assert approval is not None
        self.on_disk[approval.approval_id] = ApprovalState.APPROVED if approved else ApprovalState.DENIED
        key = (str(approval.agent_id), approval.request.argument)
        self.approved[key] = self.approved.get(key, 0) + approved
        decide(self.book, approval, approved)
        self.follow()

    @rule(index=st.integers(0, 9))
    def ledger_answers(self, index: int) -> None:
        if not self.uses:
            return
        use = self.uses.pop(index % len(self.uses))
        name = use.approval.approval_id
        ok = self.on_disk.get(name) is ApprovalState.APPROVED
        if ok:
            self.on_disk[name] = ApprovalState.USED
        self.book >> e.ApprovalUsed(self.book.at, self.book.boot, use.approval.agent_id, name, use.request_id, ok)
        self.follow()

    @rule(index=st.integers(0, 9))
    def hang_up(self, index: int) -> None:
        open_ones = [r for r in self.asked if r not in self.answered]
        if open_ones:
            self.book >> e.AskerLeft(self.book.at, self.book.boot, open_ones[index % len(open_ones)])
            self.follow()

    @rule(seconds=st.sampled_from([1.0, 301.0, 700.0]))
    def time_passes(self, seconds: float) -> None:
        self.book.tick(seconds)
        self.follow()

    @invariant()
    def no_decision_allows_two(self) -> None:
        for key, times in self.allowed.items():
            assert times <= self.approved.get(key, 0)


Ledger.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestLedger = Ledger.TestCase
