"""The rotation step of a kill: everything is replaced once everything was signalled, and proven at the verifiers."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from console.credentials.rotation import RotationResult
from console.domain.errors import ConsoleError
from console.domain.kill import Step, StepName, StepStatus
from console.domain.process.failpoints import failpoint
from console.services.secrets.rotator import Rotator, in_words, still_due

DUE = "; to be presented again at the supervisor's next start: "
"""Part of a receipt's words until the old secret was presented again."""


def verdict_of(result: RotationResult) -> StepStatus:
    """Return ``unknown`` only when no part failed for certain. A secret that was given up without proof counts as unknown too."""
    if result.ok:
        return StepStatus.OK
    if result.let_go and all(item.ok for item in result.items):
        return StepStatus.UNKNOWN
    bad = [item.detail for item in result.items if not item.ok]
    return StepStatus.UNKNOWN if bad and all(words.startswith("unknown") for words in bad) else StepStatus.FAILED


def rotation_came_to(status: StepStatus, words: str) -> Step:
    """What the step turned out to be later; when it was decided first stays."""
    return Step(StepName.ROTATE, status, None, words)


def step_of(rotator: Rotator, result: RotationResult, ms: float | None) -> Step:
    """The step as a receipt shows it."""
    words = in_words(list(result.items)) or "nothing was rotated"
    if result.resumed:
        words = f"took up an unfinished rotation; {words}"
    words = "; ".join([words, *(f"{name} is not proven and never will be: {why}" for name, why in result.let_go.items())])
    if left := still_due(rotator.last()):
        words += f"{DUE}{', '.join(left)}"
    return Step(StepName.ROTATE, verdict_of(result), ms, words)


async def rotate_step(rotator: Rotator, everything: bool, pressed: float, kill_id: str = "") -> Step:
    """Rotates after everything was signalled; ``ok`` only when every item is proven."""
    if not everything:
        return Step(StepName.ROTATE, StepStatus.SKIPPED, None, "a kill of named agents revokes their own tokens only")
    failpoint("rotate.begun")
    # Every older token dies at once, whatever becomes of the rotation; a refusal of the disk shows in the items below.
    rotator.raised += 1  # before and after: another kill's rotation looks for either
    with suppress(ConsoleError):
        await asyncio.to_thread(rotator.tokens.raise_epoch)
    rotator.raised += 1
    seen = rotator.raised
    result = await rotator.take_turn(kill_id=kill_id)
    assert result is not None
    if verdict_of(result) is StepStatus.UNKNOWN and rotator.raised != seen:
        # Another kill raised the epoch between the making of the new token and its presentation, so that neither was a good one: once more.
        result = await rotator.take_turn(kill_id=kill_id)
        assert result is not None
    return step_of(rotator, result, round((time.time() - pressed) * 1000, 1))
