"""The whole judgement of an instance's record: the log itself, then everything else that is kept here and remembers it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from console.audit.anchors import SHOWN, Anchor, broken_in, noted_in
from console.audit.receipt_seal import SUFFIX, Given
from console.audit.rollback_rows import compare_rows
from console.audit.verify import Verdict
from console.audit.verify_anchors import foreign
from console.audit.verify_presence import compare
from console.domain.rollback import RECORDS_FILE
from console.domain.words import counted
from console.settings.places import Places


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict, what it was compared with, what cannot be told, which keys are retired; in words."""

    verdict: Verdict
    compared: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        """To be kept elsewhere."""
        return f"{self.verdict.records}:{self.verdict.head[:SHOWN]}"


def beside(places: Places, verdict: Verdict, kept: Sequence[Path | Given] = (), anchors: Sequence[Anchor] = ()) -> Judged:
    """Compares a log that is whole in itself with receipts, anchors, rollback records and the instance. Never raises on content. Blocks."""
    noted = noted_in(places.ledger_db)  # before the log is read: what is noted is on disk there
    own = sorted(path for path in places.receipts_dir.glob(f"*{SUFFIX}") if path.is_file())
    found = compare(places.audit_db, [*own, *kept], places.keys_dir / "host-key.pub", anchors)
    rows = compare_rows(places.audit_db, places.rollback_dir / RECORDS_FILE)
    compared = [counted(found.receipts, "sealed receipt"), *([counted(len(anchors), "anchor")] if anchors else [])]
    older = f" ({rows.before:,} of before this log, not on record in it)" if rows.before else ""
    compared.append(counted(rows.rows, "rollback record") + older)
    of_log = foreign(places.audit_db, places.instance_id) or found.why or broken_in(places.audit_db, noted)
    if why := of_log or rows.why or found.losses.why:
        verdict = replace(verdict, whole=False, why=why)
    compared += found.losses.acknowledged
    return Judged(verdict, tuple(compared), (*found.unknown, *rows.unknown), found.retired)
