"""What is owed after a restart: an unfinished rotation is taken up, and old values are presented a second time."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Protocol

from console.credentials.marker import RotationItem
from console.domain.engine.command import Record
from console.domain.errors import ConsoleError
from console.domain.kill import Receipt, Step, StepStatus
from console.services.notices.shown import Notice
from console.services.records.record_writer import Scribe
from console.services.secrets.rotation_step import DUE, rotation_came_to, step_of, verdict_of
from console.services.secrets.rotator import Rotator, came_back, in_words

AGAIN_S = (0.0, 5.0, 30.0, 120.0)
"""Waits before a verifier that does not answer is asked for the second presentation once more."""


class Receipts(Protocol):
    """The receipts of kills, which say what was rotated."""

    async def settled(self) -> None:
        """Returns once no kill rotates by itself any more."""
        ...

    def receipts(self) -> list[Receipt]:
        """Newest first."""
        ...

    async def correct(self, kill_id: str, step: Step) -> None:
        """Puts a step into a receipt."""
        ...


async def finish_rotations(rotator: Rotator, scribe: Scribe, notice: Notice, stop: Receipts) -> None:
    """At start-up: 1. what a crash left half done is taken up, 2. what an earlier process rotated is presented once more.

    Receipts are amended with both. Runs beside everything else, once the server answers.
    """
    with suppress(ConsoleError):
        await asyncio.to_thread(rotator.learn)
    # A kill whose receipt was not finished rotates by itself; only what no kill sees to is taken up here.
    await stop.settled()
    result = await rotator.take_turn(left_only=True)
    if result is not None:
        words = f"an unfinished rotation: {in_words(list(result.items))}"
        scribe.record(Record("supervisor", "secrets.rotated", words, verdict=verdict_of(result), must=True))
        await stop.correct(result.kill_id, step_of(rotator, result, None))
    for wait_s in AGAIN_S:
        await asyncio.sleep(wait_s)
        rotated, before = _rotated(stop), await asyncio.to_thread(rotator.last)
        try:
            shown = await asyncio.to_thread(rotator.again, is_expected=rotated is not None)
        except (ConsoleError, OSError) as error:
            notice(f"old secrets cannot be presented a second time: {error}")
            continue
        last = rotator.last()
        if before is None and last is not None and rotated is not None:
            await _lost(scribe, notice, stop, rotated, last.detail, shown)
        if shown:
            await _shown_again(rotator, scribe, notice, stop, shown)
        if all(item.ok for item in shown) or came_back(shown):
            return


def _rotated(stop: Receipts) -> Receipt | None:
    """The newest kill whose receipt says that everything was rotated."""
    return next((receipt for receipt in stop.receipts() if receipt.complete and receipt.rotation.is_ok), None)


async def _lost(scribe: Scribe, notice: Notice, stop: Receipts, receipt: Receipt, why: str, shown: list[RotationItem]) -> None:
    """The record is gone: the receipt that relies on it is not green any more."""
    words = "; ".join([f"{receipt.rotation.detail}; {why}", *([in_words(shown)] if shown else [])])
    notice(f"{why} (rotation-last.json): watchfloor secrets rotation run")
    scribe.record(Record("supervisor", "secrets.record_lost", words, verdict=StepStatus.UNKNOWN, must=True))
    await stop.correct(receipt.kill_id, rotation_came_to(StepStatus.UNKNOWN, words))


async def _shown_again(rotator: Rotator, scribe: Scribe, notice: Notice, stop: Receipts, shown: list[RotationItem]) -> None:
    last = rotator.last()
    back, ok = came_back(shown), all(item.ok for item in shown)
    words = f"presented again after a restart: {in_words(shown)}"
    verdict = StepStatus.OK if ok else StepStatus.FAILED if back else StepStatus.UNKNOWN
    scribe.record(Record("supervisor", "secrets.presented_again", words, verdict=verdict, must=True))
    if back:
        notice(f"old or unexpected secrets work again, so they are rotated again: {', '.join(sorted(back))}", "red")
        result = await rotator.take_turn(back)
        assert result is not None
        words += f"; rotated again: {in_words(list(result.items))}"
        scribe.record(Record("supervisor", "secrets.rotated", words, verdict=verdict_of(result), must=True))
    if last is not None and last.kill_id:
        first = StepStatus.OK if last.ok else StepStatus.FAILED
        status = verdict if first is StepStatus.OK else first
        await stop.correct(last.kill_id, rotation_came_to(status, f"{in_words(last.items)}; {words}"))
    if ok or back:
        await _kept_promises(stop, verdict, words)


async def _kept_promises(stop: Receipts, verdict: StepStatus, words: str) -> None:
    """Another rotation followed a kill's: what was presented again holds its old values too, and its receipt still promises that."""
    for receipt in stop.receipts():
        step = receipt.rotation
        if DUE in step.detail and receipt.complete:
            status = verdict if step.is_ok else step.status
            await stop.correct(receipt.kill_id, rotation_came_to(status, f"{step.detail.split(DUE)[0]}; {words}"))
