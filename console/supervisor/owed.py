"""What is owed after a restart: an unfinished rotation is taken up, and old values are presented a second time."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from console.credentials.marker import RotationItem
from console.domain.command import Record
from console.domain.errors import ConsoleError
from console.domain.kill import Receipt, Step, StepName, StepStatus
from console.supervisor.parts import Parts
from console.supervisor.rotate import DUE, step_of, verdict_of
from console.supervisor.rotator import came_back, in_words
from console.supervisor.stop import StopDesk

AGAIN_S = (0.0, 5.0, 30.0, 120.0)
"""Waits before a verifier that does not answer is asked for the second presentation once more."""


async def finish_rotations(parts: Parts, stop: StopDesk) -> None:
    """At start-up: 1. what a crash left half done is taken up, 2. what an earlier process rotated is presented once more.

    Receipts are amended with both. Runs beside everything else, once the server answers.
    """
    with suppress(ConsoleError):
        await asyncio.to_thread(parts.rotator.learn)
    # A kill whose receipt was not finished rotates by itself; only what no kill sees to is taken up here.
    await stop.settled()
    result = await parts.rotator.take_turn(left_only=True)
    if result is not None:
        words = f"an unfinished rotation: {in_words(list(result.items))}"
        parts.scribe.record(Record("supervisor", "secrets.rotated", words, verdict=verdict_of(result), must=True))
        await stop.correct(result.kill_id, step_of(parts, result, None))
    for wait_s in AGAIN_S:
        await asyncio.sleep(wait_s)
        rotated, before = _rotated(stop), await asyncio.to_thread(parts.rotator.last)
        try:
            shown = await asyncio.to_thread(parts.rotator.again, is_expected=rotated is not None)
        except (ConsoleError, OSError) as error:
            parts.notice(f"old secrets cannot be presented a second time: {error}")
            continue
        last = parts.rotator.last()
        if before is None and last is not None and rotated is not None:
            await _lost(parts, stop, rotated, last.detail, shown)
        if shown:
            await _shown_again(parts, stop, shown)
        if all(item.ok for item in shown) or came_back(shown):
            return


def _rotated(stop: StopDesk) -> Receipt | None:
    """The newest kill whose receipt says that everything was rotated."""
    proven = (r for r in stop.receipts() if r.complete and any(s.name is StepName.ROTATE and s.status is StepStatus.OK for s in r.steps))
    return next(proven, None)


async def _lost(parts: Parts, stop: StopDesk, receipt: Receipt, why: str, shown: list[RotationItem]) -> None:
    """The record is gone: the receipt that relies on it is not green any more."""
    words = "; ".join([f"{s.detail}; {why}" for s in receipt.steps if s.name is StepName.ROTATE] + ([in_words(shown)] if shown else []))
    parts.notice(f"{why} (rotation-last.json): watchfloor rotation run")
    parts.scribe.record(Record("supervisor", "secrets.record_lost", words, verdict=StepStatus.UNKNOWN, must=True))
    await stop.correct(receipt.kill_id, Step(StepName.ROTATE, StepStatus.UNKNOWN, None, words))


async def _shown_again(parts: Parts, stop: StopDesk, shown: list[RotationItem]) -> None:
    last = parts.rotator.last()
    back, ok = came_back(shown), all(item.ok for item in shown)
    words = f"presented again after a restart: {in_words(shown)}"
    verdict = StepStatus.OK if ok else StepStatus.FAILED if back else StepStatus.UNKNOWN
    parts.scribe.record(Record("supervisor", "secrets.presented_again", words, verdict=verdict, must=True))
    if back:
        parts.notice(
            f"old secrets, or others than were rotated to, came back to life and are rotated anew: {', '.join(sorted(back))}", "red"
        )
        result = await parts.rotator.take_turn(back)
        assert result is not None
        words += f"; rotated anew: {in_words(list(result.items))}"
        parts.scribe.record(Record("supervisor", "secrets.rotated", words, verdict=verdict_of(result), must=True))
    if last is not None and last.kill_id:
        first = StepStatus.OK if last.ok else StepStatus.FAILED
        status = verdict if first is StepStatus.OK else first
        await stop.correct(last.kill_id, Step(StepName.ROTATE, status, None, f"{in_words(last.items)}; {words}"))
    if ok or back:
        await _kept_promises(stop, verdict, words)


async def _kept_promises(stop: StopDesk, verdict: StepStatus, words: str) -> None:
    """Another rotation followed a kill's: what was presented again holds its old values too, and its receipt still promises that."""
    for receipt in stop.receipts():
        for step in receipt.steps:
            if step.name is StepName.ROTATE and DUE in step.detail and receipt.complete:
                status = verdict if step.status is StepStatus.OK else step.status
                await stop.correct(receipt.kill_id, Step(StepName.ROTATE, status, None, f"{step.detail.split(DUE)[0]}; {words}"))
