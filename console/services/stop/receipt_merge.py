"""Several receipts of one request as one answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from console.domain.agent import AgentId
from console.domain.kill import Outcome, Receipt, Step, StepName, StepStatus, Target
from console.domain.verdict import judged

WORST_FIRST = (StepStatus.FAILED, StepStatus.UNKNOWN, StepStatus.PENDING, StepStatus.SKIPPED, StepStatus.OK)
DETAIL_LENGTH = 2000
"""Letters of the joined words of one step; the worst come first."""
_STATES = ("not recorded", "pending", "none", "recorded")


def together(receipts: list[Receipt], open_ids: list[AgentId]) -> Receipt:
    """One answer for several presses of one request: of everything the worst; whatever is still open makes it unproven."""
    still = tuple(Target(i, "unknown", Outcome.NOT_PROVEN, None, {"why": "It was still starting and was not stopped."}) for i in open_ids)
    every = replace(
        receipts[0],
        scope=",".join(r.scope for r in receipts),
        targets=(*(t for r in receipts for t in r.targets), *still),
        survivors=tuple(s for r in receipts for s in r.survivors),
        steps=tuple(_worst(name, receipts) for name in StepName),
        complete=all(r.complete for r in receipts),
        ms_total=max(r.ms_total for r in receipts),
        watch_until=max(r.watch_until for r in receipts),
        connections_state=next((state for state in _STATES if any(r.connections_state == state for r in receipts)), _STATES[0]),
        excluded=_each(r.excluded for r in receipts),
        amended=_each(r.amended for r in receipts),
        returns=_each(r.returns for r in receipts),
        not_watched=_each(r.not_watched for r in receipts),
        connections=_each(r.connections for r in receipts),
        connections_detail="; ".join(_each((r.connections_detail,) for r in receipts if r.connections_detail)),
        uncovered=_each(r.uncovered for r in receipts),
        suspects=_each(r.suspects for r in receipts),
        daemons=_each(r.daemons for r in receipts),
    )
    return judged(every)


_Row = TypeVar("_Row")


def _each(lists: Iterable[tuple[_Row, ...]]) -> tuple[_Row, ...]:
    """All of them, each once."""
    return tuple(dict.fromkeys(row for rows in lists for row in rows))


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
