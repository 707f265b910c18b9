"""The words of a receipt: unknown is never green, best effort never proven."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from console.cli.stop.receipt_text import evidence_words, in_order, show_receipt
from console.domain.kill import Outcome, Receipt, Step, StepName, StepStatus, Survivor, Target

STEPS = tuple(Step(n, StepStatus.OK, 610.0 if n is StepName.ZERO else 1200.0) for n in StepName)
HOSTILE = "\x1b[2J\u202e[red]"


def receipt(*outcomes: Outcome, **changes: object) -> Receipt:
    targets = tuple(Target(f"a{n}", "managed", o, 10.0, {}) for n, o in enumerate(outcomes))
    good = all(o is Outcome.PROVEN_ZERO or o is Outcome.BEST_EFFORT for o in outcomes)
    made = Receipt(
        "k1", "00000000", "all", "why", "who", 1.0, verified_zero=good, steps=STEPS, targets=targets, ms_total=1300.0, complete=True
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_json_has_the_verdict_and_not_what_the_receipt_says_of_itself(capsys: pytest.CaptureFixture[str]) -> None:
    show_receipt(receipt(Outcome.BEST_EFFORT, verified_zero=True), as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert (told["verified_zero"], told["exit_code"]) == (False, 8) and "no proof is possible" in told["headline"]


def test_targets_that_are_not_proven_come_first() -> None:
    made = receipt(Outcome.PROVEN_ZERO, Outcome.BEST_EFFORT, Outcome.DYING, Outcome.NOT_PROVEN)
    assert [t.outcome for t in in_order(made.targets)] == [Outcome.NOT_PROVEN, Outcome.DYING, Outcome.BEST_EFFORT, Outcome.PROVEN_ZERO]


def test_evidence_in_a_line() -> None:
    target = Target("a", "managed", Outcome.PROVEN_ZERO, 1.0, {"pids_before": [{}, {}], "populated": 0, "cgroup": "/x", "why": ""})
    assert evidence_words(target) == "2 processes before, populated 0, cgroup /x"
    blind = Target("a", "managed", Outcome.PROVEN_ZERO, 1.0, {"processes_before": "not looked at", "populated": 0})
    assert evidence_words(blind) == "processes before not looked at, populated 0"


def test_a_hostile_receipt_is_printed_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    made = receipt(
        Outcome.DYING,
        reason=HOSTILE,
        by=HOSTILE,
        order=HOSTILE,
        survivors=(Survivor(HOSTILE, 7, "D", HOSTILE, HOSTILE, HOSTILE * 1000),),
        excluded=(HOSTILE,),
        steps=(Step(StepName.ZERO, StepStatus.FAILED, None, HOSTILE),),
        targets=(Target(HOSTILE, HOSTILE, Outcome.DYING, None, {"why": HOSTILE}),),
    )
    show_receipt(made, as_json=False)
    text = capsys.readouterr().out
    assert "\x1b" not in text and "\u202e" not in text
    assert "NOT PROVEN" in text.splitlines()[0] and "Still alive" in text and "[red]" in text


def test_many_targets_are_counted_and_none_of_the_bad_is_hidden(capsys: pytest.CaptureFixture[str]) -> None:
    show_receipt(receipt(*[Outcome.PROVEN_ZERO] * 500, Outcome.DYING), as_json=False)
    text = capsys.readouterr().out
    assert "dying" in text and "and 441 more (--json lists all)" in text


def test_an_exit_code_that_is_not_0_stands_below_the_receipt_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    dead = receipt(Outcome.PROVEN_ZERO)
    for made, words in (
        (replace(dead, connections_state="not recorded"), "exit 8, because connections to other programs were not recorded"),
        (receipt(Outcome.BEST_EFFORT), "exit 8, because not every agent can be confirmed dead"),
        (receipt(Outcome.NOT_PROVEN), "exit 9, because 1 of 1 agent may still run"),
    ):
        show_receipt(made, as_json=False)
        assert capsys.readouterr().out.splitlines()[-1] == words
