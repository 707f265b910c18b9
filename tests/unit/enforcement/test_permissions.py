"""Who is stopped is not judged; everybody else is, and the verdict decides."""

from __future__ import annotations

import pytest

from console.domain.agent import AgentId
from console.domain.calls.permission import Decision, PermissionRequest, Verdict
from console.domain.engine import command as c
from console.domain.engine import event as e
from tests.fakes.playbook import Playbook


def ask(book: Playbook, tool: str, argument: str = "x") -> Playbook:
    return book >> e.PermissionAsked(book.at, book.boot, AgentId("a"), "r1", PermissionRequest(tool, argument))


def judge(book: Playbook, verdict: Verdict, tool: str = "run") -> Playbook:
    return book >> e.CallJudged(book.at, book.boot, AgentId("a"), "r1", PermissionRequest(tool, "x"), Decision(verdict, "rule", "why"))


@pytest.mark.parametrize("tool", ["run_python", "", "WRITE_FILE", "write_file ", "send_email", "x" * 100])
def test_every_live_agents_call_is_judged(tool: str) -> None:
    assert (ask(Playbook().run("a"), tool) << c.JudgeCall).request.tool == tool


def test_unknown_killed_stopped_and_frozen_are_denied_before_and_after_they_are_judged() -> None:
    book = Playbook()
    assert (ask(book, "write_file") << c.AnswerPermission).decision.verdict is Verdict.DENY
    assert (judge(book, Verdict.ALLOW) << c.AnswerPermission).decision.verdict is Verdict.DENY
    book.run("a")

    def both(word: str) -> None:
        for verdict in (None, Verdict.ALLOW, Verdict.ASK):
            told = ask(book, "write_file") if verdict is None else judge(book, verdict, "write_file")
            decision = (told << c.AnswerPermission).decision
            assert decision.verdict is Verdict.DENY and word in (decision.rule, decision.reason)

    book >> e.FrozenSetChanged(book.at, book.boot, {AgentId("a"): ("operator",)})
    both("frozen")
    book >> e.FrozenSetChanged(book.at, book.boot, {})
    book >> e.SoftStopChanged(book.at, book.boot, "no kill file")
    both("stop")
    book >> e.KillStarted(book.at, book.boot, "k", None, "r", "b")
    both("killed")


def test_a_denial_is_answered_with_its_rule_and_an_ask_waits() -> None:
    book = Playbook().run("a")
    assert (judge(book, Verdict.DENY) << c.AnswerPermission).decision == Decision(Verdict.DENY, "rule", "why")
    judge(book, Verdict.ASK).none(c.AnswerPermission)
    book << c.KeepApproval
