"""What ``watch`` says at its end, and whom it presses: no receipt is no proof, and only a kill that the latch holds obeys an order."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from console.domain.errors import ExitCode
from console.domain.kill import Outcome, Receipt, Step, StepName, StepStatus, Target
from console.killswitch.kill.receipt import write_receipt
from console.remotekill.machine import Mode
from console.supervisor.verbs import watch as watch_verb
from console.supervisor.verbs.watch import Obeyed, Watch

KILL, OTHER = "20260101-000000-aaaaaaaa", "20260102-000000-bbbbbbbb"
ORDER = "7:" + "ab" * 32


def receipt(kill_id: str = KILL, order: str = "", *outcomes: Outcome, zero: bool = True) -> Receipt:
    targets = tuple(Target(f"a{n}", "managed", o, 1.0) for n, o in enumerate(outcomes))
    status = StepStatus.OK if zero else StepStatus.UNKNOWN
    steps = (Step(StepName.ZERO, status, 1.0), Step(StepName.SECOND_LOOK, StepStatus.OK, 1.0))
    return Receipt(kill_id, "i", "all", "r", "b", 1.0, order, steps=steps, targets=targets, complete=True)


class Dry(Watch):
    """Without poller and guard; the latch holds ``held``."""

    def __init__(self, folder: Path, *held: str) -> None:
        self._places: Any = SimpleNamespace(guard_dir=folder, state_dir=folder, run_dir=folder, instance_id="i")
        self._obeyed = {}
        self.pressed: list[str] = []
        self.put: list[Obeyed] = []
        self._new: Any = SimpleNamespace(put=self.put.append)
        self._say = lambda *_, **__: None
        self._guard: Any = SimpleNamespace(status=lambda: self.status)
        self.status: dict[str, Any] = {"latched": bool(held), "kills": list(held), "kills_n": len(held)}
        self._desk: Any = SimpleNamespace(poller=SimpleNamespace(status=lambda: SimpleNamespace(mode=Mode.KILLED, good_age_s=1.0)))

    def _obey(self, order: str, reason: str, remembered: bool) -> None:
        def place_order(*_: object, order: str) -> str:
            self.pressed.append(order)
            return OTHER

        with patch.object(watch_verb, "place_order", place_order):
            super()._obey(order, reason, remembered)

    def obeyed(self, *receipts: Receipt | None, answered: bool = True) -> Dry:
        self._obeyed = {str(n): Obeyed(str(n), KILL, receipt=r, answered=answered) for n, r in enumerate(receipts)}
        return self


def test_no_receipt_at_all_is_not_proven(tmp_path: Path) -> None:
    assert Dry(tmp_path, KILL)._code() is ExitCode.NOT_PROVEN
    assert Dry(tmp_path)._code() is ExitCode.NOT_PROVEN


@pytest.mark.parametrize("held", [(), ("latch-unreadable",)])
def test_a_proof_without_a_kill_in_the_latch_is_not_proven(tmp_path: Path, held: tuple[str, ...]) -> None:
    assert Dry(tmp_path, *held).obeyed(receipt())._code() is ExitCode.NOT_PROVEN


def test_every_kill_must_be_proven_and_answered(tmp_path: Path) -> None:
    assert Dry(tmp_path, KILL).obeyed(receipt())._code() is ExitCode.DENIED
    assert Dry(tmp_path, KILL).obeyed(receipt(), None)._code() is ExitCode.NOT_PROVEN
    assert Dry(tmp_path, KILL).obeyed(receipt(), receipt(zero=False))._code() is ExitCode.NOT_PROVEN
    assert Dry(tmp_path, KILL).obeyed(receipt(), answered=False)._code() is ExitCode.LATER_STEP
    assert Dry(tmp_path, KILL).obeyed(receipt(KILL, "", Outcome.BEST_EFFORT))._code() is ExitCode.BEST_EFFORT


def test_an_order_whose_kill_was_rearmed_is_pressed_again(tmp_path: Path) -> None:
    write_receipt(tmp_path, receipt(KILL, ORDER))
    watch = Dry(tmp_path, KILL)
    watch._obey(ORDER, "why", False)
    assert watch.pressed == [] and watch.put[0].kill_id == KILL
    watch = Dry(tmp_path, "20260103-000000-cccccccc")  # somebody rearmed, and pressed for another reason
    watch._obey(ORDER, "why", False)
    assert watch.pressed == [ORDER]


def test_an_order_that_was_obeyed_by_another_kill_is_as_proven_as_that_one(tmp_path: Path) -> None:
    write_receipt(tmp_path, receipt(OTHER))
    watch = Dry(tmp_path, KILL, OTHER)
    watch._obey(ORDER, "why", True)
    assert watch.pressed == [] and watch.put[0].kill_id == OTHER
    assert not watch.put[0].answered  # what this host said of it is written, and read back
    watch = Dry(tmp_path, KILL)  # of this one nothing is on disk
    watch._obey(ORDER, "why", True)
    assert watch.pressed == [ORDER]
    watch = Dry(tmp_path, "latch-unreadable")
    watch._obey(ORDER, "why", True)
    assert watch.pressed == [ORDER]
