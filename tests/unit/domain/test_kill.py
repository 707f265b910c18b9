"""Receipts, and the one place that decides a kill's exit code."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pytest

from console.domain.errors import ExitCode
from console.domain.kill import (
    Outcome,
    Receipt,
    Step,
    StepName,
    StepStatus,
    Survivor,
    Target,
    exit_code,
    is_zero,
    receipt_from_json,
    worst_outcomes,
)

STEPS = tuple(Step(name, StepStatus.OK, 1.0) for name in StepName)


def target(outcome: Outcome) -> Target:
    return Target("a", "managed", outcome, 12.0, {"populated": 0})


def receipt(*outcomes: Outcome, steps: tuple[Step, ...] = STEPS, complete: bool = True) -> Receipt:
    targets = tuple(target(o) for o in outcomes)
    return Receipt(
        "k1", "00000000", "all", "why", "who", 1.0, verified_zero=is_zero(targets), steps=steps, targets=targets, complete=complete
    )


def with_step(status: StepStatus) -> tuple[Step, ...]:
    return (*STEPS[:-1], Step(StepName.EVIDENCE, status, None))


def test_all_proven_and_every_step_done_is_zero() -> None:
    assert exit_code(receipt(Outcome.PROVEN_ZERO, Outcome.PROVEN_ZERO)) is ExitCode.DONE
    assert exit_code(receipt()) is ExitCode.DONE


def test_a_step_that_is_not_configured_is_no_failure() -> None:
    assert exit_code(receipt(Outcome.PROVEN_ZERO, steps=with_step(StepStatus.SKIPPED))) is ExitCode.DONE


@pytest.mark.parametrize("status", [StepStatus.FAILED, StepStatus.UNKNOWN])
def test_a_failed_or_unknown_step_is_7(status: StepStatus) -> None:
    assert exit_code(receipt(Outcome.PROVEN_ZERO, steps=with_step(status))) is ExitCode.LATER_STEP


def test_an_incomplete_receipt_is_7() -> None:
    assert exit_code(receipt(Outcome.PROVEN_ZERO, complete=False)) is ExitCode.LATER_STEP


def test_a_best_effort_target_is_8_and_never_0() -> None:
    assert exit_code(receipt(Outcome.PROVEN_ZERO, Outcome.BEST_EFFORT)) is ExitCode.BEST_EFFORT


@pytest.mark.parametrize("outcome", [Outcome.NOT_PROVEN, Outcome.DYING])
def test_9_comes_before_7_and_8(outcome: Outcome) -> None:
    bad = receipt(outcome, Outcome.BEST_EFFORT, steps=with_step(StepStatus.FAILED), complete=False)
    assert exit_code(bad) is ExitCode.NOT_PROVEN
    assert exit_code(replace(bad, verified_zero=True)) is ExitCode.NOT_PROVEN  # the targets are believed, not the flag


def test_7_comes_before_8() -> None:
    assert exit_code(receipt(Outcome.BEST_EFFORT, steps=with_step(StepStatus.UNKNOWN))) is ExitCode.LATER_STEP


def test_without_verified_zero_nothing_is_green() -> None:
    assert exit_code(replace(receipt(Outcome.PROVEN_ZERO), verified_zero=False)) is ExitCode.NOT_PROVEN


def test_zero_is_decided_by_every_provable_target() -> None:
    for outcomes in itertools.product(Outcome, repeat=2):
        provable = [o for o in outcomes if o is not Outcome.BEST_EFFORT]
        assert is_zero(tuple(target(o) for o in outcomes)) == all(o is Outcome.PROVEN_ZERO for o in provable)


def test_a_receipt_survives_json() -> None:
    whole = replace(
        receipt(Outcome.PROVEN_ZERO, Outcome.DYING),
        survivors=(Survivor("a", 7, "D", "nfs_wait", "x", "why"),),
        excluded=("self",),
        order="3:abc",
        ms_total=610.0,
    )
    data = json.loads(json.dumps(whole.as_json()))
    assert receipt_from_json(data) == whole
    assert {"schema_version", "kill_id", "verified_zero", "survivors", "steps", "targets", "ms_total"} <= set(data)
    assert set(data["steps"][0]) == {"name", "status", "ms", "detail"}
    assert set(data["targets"][0]) == {"agent_id", "control_level", "outcome", "ms", "evidence"}


def test_a_newer_receipt_is_read_and_a_broken_one_refused() -> None:
    data = receipt(Outcome.PROVEN_ZERO).as_json()
    assert receipt_from_json({**json.loads(json.dumps(data)), "added_later": 1}).kill_id == "k1"
    for broken in ({}, {**data, "steps": [{"name": "x", "status": "ok", "ms": 1}]}, {**data, "targets": [{}]}):
        with pytest.raises((KeyError, TypeError, ValueError)):
            receipt_from_json(broken)


@pytest.mark.parametrize("order", list(itertools.permutations(Outcome)))
def test_the_worst_target_of_an_agent_speaks_for_it(order: tuple[Outcome, ...]) -> None:
    ranked = (Outcome.NOT_PROVEN, Outcome.DYING, Outcome.BEST_EFFORT, Outcome.PROVEN_ZERO)
    for n in range(1, len(order) + 1):
        worst = next(o for o in ranked if o in order[:n])
        assert worst_outcomes(tuple(target(o) for o in order[:n])) == {"a": worst}


def test_what_was_proven_after_the_decision_about_zero_counts_as_late_as_it_was() -> None:
    zero = Step(StepName.ZERO, StepStatus.OK, 190.0)
    receipt = Receipt("k", "i", "all", "r", "me", 1.0, steps=(zero,), targets=(target(Outcome.PROVEN_ZERO),))
    assert receipt.proven_ms == 190.0
    late = replace(target(Outcome.PROVEN_ZERO), ms=84_900.0)
    assert replace(receipt, targets=(*receipt.targets, late)).proven_ms == 84_900.0
    assert replace(receipt, targets=(replace(late, outcome=Outcome.BEST_EFFORT),)).proven_ms == 190.0
    assert replace(receipt, steps=()).proven_ms is None
