"""What an operator can ask of rollback records; each row beside what the audit log says of it, and none put back that was changed."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from typing import Any

from console.api.records import DiffLine, RestoreBody, RollbackDetailView, RollbackRow
from console.audit.rollback_rows import DONE_FIELD, FACTS_FIELD, RollbackBook, Row, Standing
from console.domain.engine.command import Record
from console.domain.errors import Conflict, ConsoleError
from console.domain.rollback import RollbackRecord
from console.rollback.store import RollbackStore
from console.services.records.record_writer import Scribe

Publish = Callable[[str, dict[str, Any]], Any]
_UNREAD = Standing("the audit log cannot be read")
"""Whether a row was changed is not known: it is not put back."""


class RollbackDesk:
    """Rows, one with its diff, and the way back. Thread-safe."""

    __slots__ = ("_scribe", "_store", "_name_of", "_publish", "_book", "_lock")

    def __init__(self, scribe: Scribe, store: RollbackStore, name_of: Callable[[str], str], publish: Publish) -> None:
        """``publish`` takes a kind and its data to every console."""
        self._scribe, self._store, self._name_of, self._publish = scribe, store, name_of, publish
        self._book, self._lock = RollbackBook(), threading.Lock()

    def rows(self) -> list[RollbackRow]:
        """Every record, newest first. Blocks."""
        found = self._store.records()
        return [self._row(record, standing) for record, standing in zip(found, self._standings(found), strict=True)]

    def detail(self, record_id: str) -> RollbackDetailView:
        """One record with the diff of what a restore would do. Blocks."""
        detail = self._store.detail(record_id)
        [standing] = self._standings([detail.record])
        return RollbackDetailView(
            row=self._row(detail.record, standing),
            conflict=f"{standing.words}." if _is_in_the_way(standing) else detail.conflict,
            before_sha256=detail.before_sha256,
            now_sha256=detail.now_sha256,
            binary=detail.binary,
            truncated=detail.truncated,
            diff=[DiffLine(sign=x.sign, left_no=x.left_no, left=x.left, right_no=x.right_no, right=x.right) for x in detail.diff],
            dry_run=list(detail.dry_run),
        )

    async def restore(self, record_id: str, body: RestoreBody, by: str) -> RollbackRow:
        """Puts a snapshot back: audit first, then the restore, which refuses if the file changed since.

        Raises Conflict when the row was changed, or when that is not known.
        """
        record = Record(by, "rollback.restore", f"restore {record_id[:64]}: {body.reason}", verdict="allow")
        await asyncio.to_thread(self._scribe.record_first, record)
        try:
            await asyncio.to_thread(self._refuse_if_changed, record_id)
            restored = await asyncio.to_thread(self._store.restore, record_id, by, body.expect_now_sha256)
            own = await asyncio.to_thread(self._store.undoing, record_id)
        except ConsoleError as error:
            self._scribe.record(Record(by, "rollback.refused", f"{record_id[:64]}: {error}", verdict="refused"))
            raise
        self._scribe.record(_record_of(restored, own, by))
        self._publish("rollback", {"record_id": record_id, "state": restored.state.value})
        return self._row(restored, Standing())

    def _refuse_if_changed(self, record_id: str) -> None:
        [standing] = self._standings([self._store.get(record_id)])
        if _is_in_the_way(standing):
            raise Conflict(
                f"Rollback record {record_id[:64]} cannot be trusted: {standing.words}.",
                "Keep the rollback folder as evidence: its files were changed. watchfloor audit verify names what differs.",
            )

    def _standings(self, records: list[RollbackRecord]) -> list[Standing]:
        """What the log says of each. Blocks."""
        self._scribe.settle(2.0)
        with self._lock:
            try:
                self._book.read(self._scribe.audit.path)
            except (sqlite3.Error, OSError):
                return [_UNREAD] * len(records)
            rows = (Row(r.record_id, r.facts_sha256, r.created_at, r.restored_at, r.restored_by) for r in records)
            return [self._book.standing(row) for row in rows]

    def _row(self, record: RollbackRecord, standing: Standing) -> RollbackRow:
        fields = {n: getattr(record, n) for n in RollbackRow.field_names() if n not in ("agent_name", "doubt")}
        return RollbackRow(agent_name=self._name_of(record.agent_id), doubt=standing.words, **fields)


def _is_in_the_way(standing: Standing) -> bool:
    """Whether it keeps a row from being put back."""
    return standing.changed or standing is _UNREAD


def _record_of(restored: RollbackRecord, own: RollbackRecord | None, by: str) -> Record:
    """That it was done, and the digest of the record by which that can be undone."""
    data: dict[str, object] = {DONE_FIELD: {"id": restored.record_id, "at": restored.restored_at, "by": restored.restored_by}}
    data |= {FACTS_FIELD: {own.record_id: own.facts_sha256}} if own is not None else {}
    return Record(by, "rollback.restored", f"{restored.record_id}: {restored.path} is as it was before", verdict="ok", data=data)
