"""What is decided of a call before it is executed, and what may have changed since."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from console.domain.agent import AgentId
from console.domain.calls.permission import Decision, PermissionRequest, Verdict
from console.domain.engine import event as e
from console.domain.errors import Conflict, Denied
from console.policy.rules.verdicts import Judgement, Step
from console.services.execute.judgement import CallJudging
from console.services.policy.evaluate import Judged

STEP = Step(("cat", "a"), "/usr/bin/cat", "/w", file=(1, 2, 3))
REQUEST = PermissionRequest("shell", "cat a")
ALLOWED = Decision(Verdict.ALLOW, "shell(cat:*)", "allowed by rule")


class Engine:
    """Answers as it is told to, and says what was judged."""

    def __init__(self, decision: Decision | None, judged: Judged | None) -> None:
        self.answers: dict[str, asyncio.Future[object]] = {}
        self.wanted: dict[str, Judged | None] = {}
        self.posted: list[Any] = []
        self._decision, self._judged = decision, judged

    def post(self, event: Any) -> None:
        self.posted.append(event)
        if isinstance(event, e.PermissionAsked) and self._decision is not None:
            self.wanted[event.request_id] = self._judged
            self.settle_answer(event.request_id, self._decision)

    def settle_answer(self, request_id: str, answer: object) -> None:
        self.answers.pop(request_id).set_result(answer)


def judging(engine: Engine, found: Judgement | None = None) -> CallJudging:
    judge: Any = lambda agent, request: found  # noqa: E731
    return CallJudging(engine, SimpleNamespace(wanted=engine.wanted), judge)  # type: ignore[arg-type]


async def stays() -> bool:
    return False


async def leaves() -> bool:
    return True


async def test_an_allow_gives_what_was_judged_for_it() -> None:
    judged = Judged(ALLOWED, steps=(STEP,))
    engine = Engine(ALLOWED, judged)
    assert await judging(engine).decided(AgentId("a-1"), REQUEST, stays) == (ALLOWED, judged)
    assert not engine.wanted, "nothing is kept"


@pytest.mark.parametrize("decision", [Decision(Verdict.DENY, "shell(rm:*)", "no"), Decision(Verdict.ASK, "x", "y")])
async def test_all_else_is_refused_with_its_rule(decision: Decision) -> None:
    with pytest.raises(Denied, match=f"Not executed: {decision.rule[:5]}"):
        await judging(Engine(decision, Judged(decision))).decided(AgentId("a-1"), REQUEST, stays)


async def test_an_allow_of_which_nobody_knows_what_was_judged_is_none() -> None:
    with pytest.raises(Denied):
        await judging(Engine(ALLOWED, None)).decided(AgentId("a-1"), REQUEST, stays)


async def test_whoever_hung_up_is_not_waited_for() -> None:
    engine = Engine(None, None)
    with pytest.raises(Denied, match="hung up"):
        await judging(engine).decided(AgentId("a-1"), REQUEST, leaves)
    assert any(isinstance(event, e.AskerLeft) for event in engine.posted)


@pytest.mark.parametrize(
    ("first", "now", "error"),
    [
        (Verdict.ALLOW, Judgement(Verdict.ALLOW, "r", "", (), (STEP,)), None),
        (Verdict.ASK, Judgement(Verdict.ASK, "r", "", (), (STEP,)), None),
        (Verdict.ASK, Judgement(Verdict.ALLOW, "r", "", (), (STEP,)), None),
        (Verdict.ALLOW, Judgement(Verdict.ASK, "r", "", (), (STEP,)), Conflict),
        (Verdict.ASK, Judgement(Verdict.DENY, "r", "", (), ()), Denied),
        (Verdict.ALLOW, Judgement(Verdict.ALLOW, "r", "", (), (Step(("cat", "a"), "/usr/bin/cat", "/w", file=(1, 2, 4)),)), Conflict),
        (Verdict.ALLOW, Judgement(Verdict.ALLOW, "r", "", (), ()), Conflict),
    ],
)
async def test_just_before_it_runs_it_must_still_be_what_was_judged(first: Verdict, now: Judgement, error: type[Exception] | None) -> None:
    judged = Judged(Decision(first, "r", ""), steps=(STEP,))
    agent: Any = SimpleNamespace()
    if error is None:
        await judging(Engine(None, None), now).again(agent, REQUEST, judged)
    else:
        with pytest.raises(error):
            await judging(Engine(None, None), now).again(agent, REQUEST, judged)


async def test_two_judgements_without_a_step_are_no_match() -> None:
    agent: Any = SimpleNamespace()
    with pytest.raises(Conflict):
        await judging(Engine(None, None), Judgement(Verdict.ALLOW, "r", "")).again(agent, REQUEST, Judged(ALLOWED))
