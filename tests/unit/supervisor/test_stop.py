"""How the guard's part and the supervisor's part become one receipt."""

from __future__ import annotations

from console.domain.errors import ExitCode
from console.domain.kill import Outcome, Receipt, Step, StepName, StepStatus, Target, exit_code
from console.supervisor.stop import _merged


def local(*targets: Target, zero: bool = True) -> Receipt:
    steps = tuple(
        Step(n, StepStatus.OK, 1.0) for n in (StepName.LATCH, StepName.REFUSE, StepName.SIGNAL, StepName.ZERO, StepName.SECOND_LOOK)
    )
    return Receipt("k", "i", "all", "r", "b", 1.0, verified_zero=zero, targets=targets, steps=steps, ms_total=500.0, complete=True)


def target(name: str, outcome: Outcome = Outcome.PROVEN_ZERO) -> Target:
    return Target(name, "managed", outcome, 2.0)


def test_steps_stand_in_the_order_of_the_design_and_open_ones_are_unknown() -> None:
    merged = _merged(local(), {}, complete=False)
    assert [s.name for s in merged.steps] == list(StepName)
    assert {s.status for s in merged.steps if s.name in (StepName.ROTATE, StepName.REMOTE, StepName.EVIDENCE)} == {StepStatus.UNKNOWN}
    assert exit_code(merged) is ExitCode.LATER_STEP


def test_a_failed_later_step_is_seven_and_skipped_is_zero() -> None:
    done = {n: Step(n, StepStatus.OK, 900.0) for n in (StepName.ROTATE, StepName.EVIDENCE)}
    skipped = Step(StepName.REMOTE, StepStatus.SKIPPED, None, "not configured")
    assert exit_code(_merged(local(), done | {StepName.REMOTE: skipped}, complete=True)) is ExitCode.DONE
    failed = Step(StepName.REMOTE, StepStatus.FAILED, 1.0, "failed")
    merged = _merged(local(), done | {StepName.REMOTE: failed}, complete=True)
    assert exit_code(merged) is ExitCode.LATER_STEP
    assert merged.ms_total == 900.0


def test_a_canary_proven_dead_is_nobodys_agent_and_one_that_is_not_stays() -> None:
    merged = _merged(local(target("a-1"), target("canary-1")), {}, complete=True)
    assert [t.agent_id for t in merged.targets] == ["a-1"]
    merged = _merged(local(target("canary-1", Outcome.NOT_PROVEN), zero=False), {}, complete=True)
    assert [t.agent_id for t in merged.targets] == ["canary-1"]
    assert exit_code(merged) is ExitCode.NOT_PROVEN
