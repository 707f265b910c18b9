"""What is owed after a restart: a lost record takes the green off the receipt that relies on it, and is said once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from console.credentials.marker import Last, RotationItem
from console.credentials.rotation import RotationResult
from console.domain.kill import Receipt, Step, StepName, StepStatus
from console.services.secrets import rotation_resume
from console.services.secrets.rotation_step import DUE


def receipt(kill_id: str, status: StepStatus = StepStatus.OK) -> Receipt:
    steps = tuple(Step(name, status if name is StepName.ROTATE else StepStatus.OK, 1.0, "as it was") for name in StepName)
    return Receipt(kill_id, "i", "all", "r", "b", 1.0, steps=steps, complete=True)


class Desk:
    """The supervisor's parts and its stop desk; ``lost``: the record is missing until it was presented again."""

    def __init__(self, *receipts: Receipt, shown: list[Any], lost: bool) -> None:
        self.kept, self._shown, self._lost = list(receipts), shown, lost
        self.corrected: list[tuple[str, Step]] = []
        self.notices: list[str] = []
        self.records: list[Any] = []
        self.expected: list[bool] = []
        self.result: RotationResult | None = None
        self.scribe = SimpleNamespace(record=self.records.append)
        self.rotator: Any = SimpleNamespace(learn=lambda: None, take_turn=self._turn, again=self._again, last=self._last)

    def notice(self, words: str, level: str = "amber") -> None:
        self.notices.append(words)

    async def settled(self) -> None:
        pass

    def receipts(self) -> list[Receipt]:
        return self.kept

    async def correct(self, kill_id: str, step: Step) -> None:
        self.corrected.append((kill_id, step))
        self.kept = [
            replace(r, steps=tuple(step if s.name is step.name else s for s in r.steps)) if r.kill_id == kill_id else r for r in self.kept
        ]

    async def _turn(self, *_: Any, left_only: bool = False) -> RotationResult | None:
        return None if left_only else self.result

    def _again(self, *, is_expected: bool) -> list[RotationItem]:
        self.expected.append(is_expected)
        self._lost = False
        found = self._shown.pop(0)
        if isinstance(found, Exception):
            raise found
        return list(found)

    def _last(self) -> Last | None:
        return None if self._lost else Last(1.0, "", False, "the record of the last rotation is lost: x", [])

    def run(self) -> None:
        asyncio.run(rotation_resume.finish_rotations(self.rotator, self.scribe, self.notice, self))  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation_resume, "AGAIN_S", (0.0, 0.0, 0.0))


UNCLEAR = RotationItem("mail", False, 1.0, "unknown: no clear answer")
GOOD = RotationItem("mail", True, 1.0, "old value refused, new one accepted")
CAME_BACK = RotationItem("mail", False, 1.0, "failed: the old value is accepted")


def test_a_lost_record_takes_the_green_off_the_newest_receipt_once() -> None:
    desk = Desk(receipt("new", StepStatus.FAILED), receipt("mid"), receipt("old"), shown=[[UNCLEAR], [UNCLEAR], [GOOD]], lost=True)
    desk.run()
    [(kill_id, step)] = desk.corrected
    assert kill_id == "mid" and step.status is StepStatus.UNKNOWN and "is lost" in step.detail and step.detail.startswith("as it was")
    assert any("rotation-last.json" in words for words in desk.notices) and desk.expected == [True, True, True]
    assert [r.kind for r in desk.records] == ["secrets.record_lost", *["secrets.presented_again"] * 3]


def test_without_a_proven_rotation_nothing_is_expected_and_nothing_said() -> None:
    desk = Desk(receipt("k", StepStatus.SKIPPED), shown=[[]], lost=False)
    desk.run()
    assert desk.expected == [False] and desk.corrected == [] and desk.notices == []


def test_a_store_that_fails_is_said_and_asked_again() -> None:
    desk = Desk(receipt("k"), shown=[OSError(28, "No space left on device"), [GOOD]], lost=False)
    desk.run()
    assert "No space left" in desk.notices[0] and len(desk.expected) == 2


@pytest.mark.parametrize(("shown", "status"), [([GOOD], StepStatus.OK), ([CAME_BACK], StepStatus.FAILED)])
def test_a_receipt_whose_kill_a_persons_rotation_followed_is_amended_too(shown: list[RotationItem], status: StepStatus) -> None:
    kill = receipt("k")
    kill = replace(kill, steps=tuple(replace(s, detail=f"all refused{DUE}mail") if s.name is StepName.ROTATE else s for s in kill.steps))
    desk = Desk(kill, receipt("told"), shown=[[UNCLEAR], shown], lost=False)
    desk.result = RotationResult((GOOD,), True, "")
    desk.run()
    [(kill_id, step)] = desk.corrected
    assert (kill_id, step.status) == ("k", status)
    assert step.detail.startswith("all refused; presented again after a restart: ") and DUE not in step.detail
