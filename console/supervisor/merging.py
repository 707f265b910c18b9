"""Several receipts of one request as one answer."""

from __future__ import annotations

from dataclasses import replace

from console.domain.agent import AgentId
from console.domain.kill import Receipt, Step, StepName, StepStatus

WORST_FIRST = (StepStatus.FAILED, StepStatus.UNKNOWN, StepStatus.SKIPPED, StepStatus.OK)
DETAIL_LENGTH = 2000
"""Letters of the joined words of one step; the worst come first."""


def together(receipts: list[Receipt], open_ids: list[AgentId]) -> Receipt:
    """One answer for several presses of one request: of everything the worst; whatever is still open makes it unproven."""
    still = (f"{i}: still starting, not stopped" for i in open_ids)
    return replace(
        receipts[0],
        scope=",".join(r.scope for r in receipts),
        verified_zero=all(r.verified_zero for r in receipts) and not open_ids,
        targets=tuple(t for r in receipts for t in r.targets),
        survivors=tuple(s for r in receipts for s in r.survivors),
        steps=tuple(_worst(name, receipts) for name in StepName),
        complete=all(r.complete for r in receipts),
        ms_total=max(r.ms_total for r in receipts),
        excluded=(*dict.fromkeys(x for r in receipts for x in r.excluded), *still),
        amended=tuple(dict.fromkeys(x for r in receipts for x in r.amended)),
    )


def _worst(name: StepName, receipts: list[Receipt]) -> Step:
    """One step over all of them: the worst status, the latest moment, what each had to say, the worst first."""
    found = [_step(name, r) for r in receipts]
    found.sort(key=lambda step: WORST_FIRST.index(step.status))
    known = [step.ms for step in found if step.ms is not None]
    words = "; ".join(dict.fromkeys(step.detail for step in found if step.detail))
    if len(words) > DETAIL_LENGTH:
        words = f"{words[: DETAIL_LENGTH - 1]}…"
    return Step(name, found[0].status, max(known, default=None), words)


def _step(name: StepName, receipt: Receipt) -> Step:
    """What a receipt does not mention is not known."""
    missing = Step(name, StepStatus.UNKNOWN, None, f"the receipt {receipt.kill_id} says nothing about it")
    return next((step for step in receipt.steps if step.name is name), missing)
