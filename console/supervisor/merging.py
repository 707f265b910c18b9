"""Several receipts of one request as one answer."""

from __future__ import annotations

from dataclasses import replace

from console.domain.agent import AgentId
from console.domain.kill import Receipt


def together(receipts: list[Receipt], open_ids: list[AgentId]) -> Receipt:
    """One answer for several presses of one request; whatever is still open makes it unproven."""
    first = receipts[0]
    return replace(
        first,
        scope=",".join(r.scope for r in receipts),
        verified_zero=all(r.verified_zero for r in receipts) and not open_ids,
        targets=tuple(t for r in receipts for t in r.targets),
        survivors=tuple(s for r in receipts for s in r.survivors),
        complete=all(r.complete for r in receipts),
        ms_total=max(r.ms_total for r in receipts),
        excluded=(*(x for r in receipts for x in r.excluded), *(f"{i}: still starting, not stopped" for i in open_ids)),
    )
