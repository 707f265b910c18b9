"""What an operator can ask of the audit log: its records, whether it is whole, and a note taken of a loss."""

from __future__ import annotations

import time
from collections.abc import Sequence

from console.api.records import AuditPage, AuditPiece, AuditRow, AuditVerdict
from console.audit.anchors import Anchor
from console.audit.reading import AuditReader
from console.audit.receipt_seal import Given
from console.audit.set_aside import ACKNOWLEDGED, losses_of
from console.audit.verify_verdict import Judged, beside
from console.domain.engine.command import Record
from console.domain.errors import Conflict
from console.services.records.record_writer import Scribe
from console.settings.places import Places

RECORDS_S = 2.0
"""Seconds that a reader of the log waits for records being written. A disk that hangs holds up no reader."""


class AuditDesk:
    """The audit log, and what was last found about it. Thread-safe."""

    __slots__ = ("verdict", "losses", "_scribe", "_places")

    def __init__(self, scribe: Scribe, places: Places) -> None:
        self._scribe, self._places = scribe, places
        self.verdict: AuditVerdict | None = None
        """Of the last check; None: none yet."""
        self.losses = losses_of(places.audit_db)

    def total(self) -> int:
        """How many records there are. Blocks."""
        return self._scribe.audit.total()

    def page(self, before: int | None, limit: int, query: str) -> AuditPage:
        """A page of records, newest first, with those of whatever acted before it was asked for. Blocks."""
        self._scribe.settle(RECORDS_S)  # what only stops is recorded after it acted
        audit = self._scribe.audit
        rows = [AuditRow(**{n: getattr(r, n) for n in AuditRow.field_names()}) for r in audit.page(before, limit, query)]
        total = audit.total()
        return AuditPage(rows=rows, total=total, newest=total)

    def piece(self, fmt: str, after: int) -> AuditPiece:
        """A part of an export. Raises UsageProblem on another format than jsonl and csv. Blocks."""
        self._scribe.settle(RECORDS_S)
        text, records, last = AuditReader(self._places.audit_db).piece(fmt, after)
        return AuditPiece(text=text, records=records, last=last)

    def see_losses(self) -> None:
        """The status tells from now on what the log says of losses. Blocks."""
        self._scribe.settle(RECORDS_S)
        self.losses = losses_of(self._places.audit_db)

    def acknowledge_loss(self, reason: str, by: str) -> AuditVerdict:
        """An operator takes note of every loss so far; recorded first. Raises Conflict when there is none. Blocks."""
        losses = losses_of(self._places.audit_db)
        if not losses.open:
            raise Conflict("There is no loss to acknowledge.", "watchfloor audit verify tells what the record is compared with.")
        self._scribe.record_first(Record(by, ACKNOWLEDGED, reason, data={"newest_loss": losses.newest}))
        self.losses = losses_of(self._places.audit_db)
        return self.verify()

    def verify(self, receipts: Sequence[Given] = (), anchors: Sequence[Anchor] = ()) -> AuditVerdict:
        """Checks the whole chain, what else here remembers it, and what the asker kept elsewhere. Blocks."""
        self._scribe.settle(5.0)
        log = found = self._scribe.audit.verify()
        judged = beside(self._places, found, receipts, anchors) if found.whole else Judged(found, ())
        found = judged.verdict
        verdict = AuditVerdict(
            whole=found.whole,
            records=found.records,
            first_bad=found.first_bad,
            why=found.why,
            head=found.head,
            checked_at=time.time(),
            unknown=list(judged.unknown),
            compared_with=list(judged.compared),
            retired=list(judged.retired),
        )
        if (not receipts and not anchors) or not log.whole:  # what one asker brings along says nothing to the others
            self.verdict = verdict
        return verdict
