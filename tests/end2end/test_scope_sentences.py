"""A kill of many agents: one order, one receipt, the answer at zero, and the ends of all of them from that receipt."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from console.api.ladder import ScopeBody
from console.api.messages import LaunchBody
from console.domain.errors import AlreadyEnded, ExitCode
from console.domain.kill import Outcome, StepName, StepStatus
from tests.fakes.instance import Instance, until
from tests.fakes.standing import standing_instance

MANY = 24


@pytest.fixture(scope="module")
def standing() -> Iterator[Instance]:
    with standing_instance() as instance:
        yield instance


def launched(it: Instance, session: str) -> list[str]:
    body = LaunchBody(argv=["sleep", "600"], context_id=session)
    with ThreadPoolExecutor(4) as pool:
        return [view.id for view in pool.map(lambda _: it.api.launch(body), range(MANY))]


def test_the_answer_to_a_kill_comes_at_zero_and_the_later_steps_follow(it: Instance) -> None:
    ids = launched(it, "at-zero")
    before = {row.kill_id for row in it.api.receipts().receipts}
    receipt = it.hasty.kill_scope(ScopeBody(reach="session", target="at-zero"), "all of them")
    steps = {step.name: step.status for step in receipt.steps}
    assert not receipt.complete and steps[StepName.ZERO] is StepStatus.OK and steps[StepName.EVIDENCE] is StepStatus.PENDING
    assert {t.agent_id for t in receipt.targets if t.outcome is Outcome.PROVEN_ZERO} == set(ids)
    assert {a.state for a in it.api.fleet().agents if a.id in ids} == {"killed"}, "the receipt says how they ended"
    until(lambda: it.hasty.receipt(receipt.kill_id).complete, words="the later steps are done")
    assert {row.kill_id for row in it.api.receipts().receipts} - before == {receipt.kill_id}, "one order is one receipt"
    assert {a.state for a in it.api.fleet().agents if a.id in ids} == {"killed"}


def test_an_agent_that_has_ended_is_not_killed_again(it: Instance) -> None:
    agent = it.launch("true")
    until(lambda: it.agent(agent).ended_at, words="it has ended")
    before = len(it.api.receipts().receipts)
    with pytest.raises(AlreadyEnded, match="has already ended") as refusal:
        it.hasty.kill(agent, reason="too late")
    assert refusal.value.exit_code is ExitCode.DONE
    with pytest.raises(AlreadyEnded):
        it.hasty.kill_scope(ScopeBody(reach="tree", target=agent), "too late")
    assert len(it.api.receipts().receipts) == before


def test_what_held_an_agent_that_ended_before_the_supervisor_began_is_not_known(state_dir: Path) -> None:
    with Instance(state_dir) as it:
        agent = it.launch("true")
        until(lambda: it.agent(agent).ended_at, words="it has ended")
        it.stop()
        it.start()
        with pytest.raises(AlreadyEnded, match="is not known: it ended before this supervisor began") as refusal:
            it.hasty.kill(agent, reason="too late")
        assert refusal.value.exit_code is ExitCode.BEST_EFFORT


def test_an_agent_that_was_confirmed_dead_before_the_supervisor_began_is_not_doubted(state_dir: Path) -> None:
    with Instance(state_dir) as it:
        agent = it.launch("sleep", "300")
        assert it.api.kill(agent, reason="enough").verified_zero
        it.stop()
        it.start()
        with pytest.raises(AlreadyEnded, match="has already ended .*: nothing of it runs") as refusal:
            it.hasty.kill(agent, reason="again")
        assert refusal.value.exit_code is ExitCode.DONE


def test_several_named_agents_are_one_order_with_one_receipt(it: Instance) -> None:
    over = it.launch("true")
    until(lambda: it.agent(over).ended_at, words="it has ended")
    ids = [it.launch("sleep", "600") for _ in range(3)]
    before = {row.kill_id for row in it.api.receipts().receipts}
    scope = ScopeBody(reach="agent", target=over, others=[*ids, "never-was"])
    receipt = it.hasty.kill_scope(scope, "three of them")
    assert {t.agent_id for t in receipt.targets} == set(ids), "what has ended, or never was, keeps the others from nothing"
    assert {t.outcome for t in receipt.targets} == {Outcome.PROVEN_ZERO}
    assert {row.kill_id for row in it.api.receipts().receipts} - before == {receipt.kill_id}
    with pytest.raises(AlreadyEnded, match="All 4 agents have already ended"):
        it.hasty.kill_scope(ScopeBody(reach="agent", target=over, others=ids), "too late")
