"""Receipts as files."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.domain.kill import KILL_ID, Outcome, Receipt, Step, StepName, StepStatus, Survivor, Target
from console.killswitch.kill.receipt import new_kill_id, read_receipt, receipt_path, write_receipt

RECEIPT = Receipt(
    "20250101-000000-abcdef",
    "0123abcd",
    "all",
    "why\n\u202e",
    "ann",
    1.0,
    survivors=(Survivor("a", 5, "D", "wait", "x", "y"),),
    steps=(Step(StepName.ZERO, StepStatus.FAILED, 1.5, "d"),),
    targets=(Target("a", "managed", Outcome.NOT_PROVEN, 2.0, {"n": 1}),),
)


def test_a_receipt_comes_back(tmp_path: Path) -> None:
    write_receipt(tmp_path, RECEIPT)
    assert read_receipt(tmp_path, RECEIPT.kill_id) == RECEIPT
    assert read_receipt(tmp_path, "20250101-000000-ffffff") is None


@pytest.mark.parametrize("kill_id", ["../../etc/passwd", "", "A", "x" * 60, "a/b-c-d", "abcd\n"])
def test_ids_that_are_paths_are_refused(tmp_path: Path, kill_id: str) -> None:
    with pytest.raises(ValueError, match="kill id"):
        receipt_path(tmp_path, kill_id)
    assert read_receipt(tmp_path, kill_id) is None


def test_ids_are_distinct_and_valid() -> None:
    made = {new_kill_id() for _ in range(500)}
    assert len(made) == 500 and all(KILL_ID.match(k) for k in made)
