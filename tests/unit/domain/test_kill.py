"""Receipts as plain data."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pytest

from console.domain.kill import (
    Connection,
    Daemon,
    Outcome,
    Receipt,
    Return,
    Step,
    StepName,
    StepStatus,
    Survivor,
    Suspect,
    Target,
    decided,
    receipt_from_json,
    worst_outcomes,
)

STEPS = tuple(Step(name, StepStatus.OK, 1.0) for name in StepName)


def target(outcome: Outcome) -> Target:
    return Target("a", "managed", outcome, 12.0, {"populated": 0})


def receipt(*outcomes: Outcome) -> Receipt:
    targets = tuple(target(o) for o in outcomes)
    return Receipt("k1", "00000000", "all", "why", "who", 1.0, steps=STEPS, targets=targets, complete=True)


def test_a_receipt_survives_json() -> None:
    whole = replace(
        receipt(Outcome.PROVEN_ZERO, Outcome.DYING),
        survivors=(Survivor("a", 7, "D", "nfs_wait", "x", "why"),),
        excluded=("self",),
        order="3:abc",
        ms_total=610.0,
        returns=(Return("a", "s", 8, 80, 7, "claude", "claude --resume", 9.0, "session id", True, True, True, "w"),),
        watch_until=61.0,
        connections=(Connection("a", "tcp", "127.0.0.1:5", "127.0.0.1:6", 9, 90, "postgres", 26, ""),),
        connections_state="recorded",
        uncovered=("a",),
        suspects=(Suspect("a", 10, 100, "/bin/sleep", 0, "sleep 9", "w", "marker", True, 9),),
        daemons=(Daemon("claude-code", "daemon", 11, 110, "/c", 0, ("s",), ("t", "u"), "frozen", "w", "claude stop s"),),
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


def test_a_receipt_of_an_older_version_has_none_of_the_newer_parts() -> None:
    data = receipt(Outcome.PROVEN_ZERO).as_json()
    newer = ("returns", "watch_until", "connections", "connections_state", "connections_detail", "uncovered", "suspects", "daemons")
    old = {key: value for key, value in data.items() if key not in newer}
    assert receipt_from_json(old) == receipt(Outcome.PROVEN_ZERO)
    assert receipt_from_json(old).connections_state == "none"


def test_a_reader_that_waits_no_longer_knows_nothing_of_the_steps_that_are_open() -> None:
    pending = Step(StepName.ROTATE, StepStatus.PENDING, None, "not done yet")
    steps = (*STEPS[:5], pending)
    found = {s.name: s for s in decided(replace(receipt(), steps=steps), "no supervisor").steps}
    assert found[StepName.ZERO].status is StepStatus.OK
    assert {found[n].status for n in (StepName.ROTATE, StepName.REMOTE, StepName.EVIDENCE)} == {StepStatus.UNKNOWN}
    assert found[StepName.ROTATE].detail == found[StepName.REMOTE].detail == "no supervisor"
