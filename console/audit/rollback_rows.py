"""Check the rows of rollback records against the log: each row's digest was on record before its action was allowed.

The rows lie in a file of their own. An attacker who can write the state directory could change what is restored, where, or whether it was.
What the action left (``after_sha256``) is read later and is not on record. A restore compares it with the file and with what the operator
saw.
"""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from console.audit.database import open_reader, reason
from console.audit.set_aside import LOST, PUT_BACK, SET_ASIDE, few
from console.domain.rollback import FACTS, facts_digest

FACTS_FIELD = "rollback_facts"
"""In a record's data: the digest of each rollback record that was made for it, by id."""
DONE_FIELD = "rollback_done"
"""In a record's data: ``{"id", "at", "by"}`` of one that was put back."""
_AGAIN_S = (0.0, 0.5, 2.0)
"""A row is on disk a moment before its record is."""
_KINDS = ("permission", "execute", "rollback.restored")


@dataclass(frozen=True, slots=True)
class Row:
    """What of a row is compared; ``created_at`` and ``restored_at`` in seconds since the epoch."""

    record_id: str
    digest: str
    created_at: float
    restored_at: float | None
    restored_by: str


@dataclass(frozen=True, slots=True)
class Standing:
    """What the log says of a row: nothing against it, or ``words``; ``changed``: it is not what was recorded. Else it cannot be told."""

    words: str = ""
    changed: bool = False


@dataclass(frozen=True, slots=True)
class RowsCompared:
    """``rows`` were compared; ``why`` when one was changed or is gone; ``unknown``: what cannot be told. In words."""

    rows: int
    why: str = ""
    unknown: tuple[str, ...] = ()
    before: int = 0
    """Rows of before a log that was set aside: theirs was in that one."""


@dataclass(slots=True)
class RollbackBook:
    """What the log says of rollback records, read as far as it goes. Not thread-safe."""

    seq: int = 0
    began: float = float("-inf")
    """When the log began, if it is not the first of its instance; when an older copy of it was found, if one was put back."""
    facts: dict[str, str] = field(default_factory=dict)
    done: dict[str, set[tuple[float, str]]] = field(default_factory=dict)

    def read(self, log: Path) -> None:
        """Goes on with what is new. Raises sqlite3.Error, OSError."""
        with closing(open_reader(log)) as connection:
            if self.seq == 0:
                self._begin(connection)
            sql = "SELECT seq, data FROM records WHERE seq > ? AND kind IN (?, ?, ?) AND (instr(data, ?) OR instr(data, ?)) ORDER BY seq"
            with closing(connection.execute(sql, (self.seq, *_KINDS, FACTS_FIELD, DONE_FIELD))) as rows:
                for seq, data in rows:
                    self._take(_fields(data))
                    self.seq = seq

    def _begin(self, connection: sqlite3.Connection) -> None:
        if connection.execute("SELECT 1 FROM records WHERE kind IN (?, ?) LIMIT 1", (SET_ASIDE, LOST)).fetchone() is not None:
            self.began = float(connection.execute("SELECT at FROM records ORDER BY seq LIMIT 1").fetchone()[0])
        [put_back] = connection.execute("SELECT max(at) FROM records WHERE kind = ?", (PUT_BACK,)).fetchone()
        self.began = max(self.began, float("-inf") if put_back is None else float(put_back))

    def _take(self, data: dict[str, object]) -> None:
        facts, done = data.get(FACTS_FIELD), data.get(DONE_FIELD)
        if isinstance(facts, dict):
            for record_id, digest in facts.items():
                self.facts.setdefault(str(record_id), str(digest))  # the first word holds
        if isinstance(done, dict) and isinstance(at := done.get("at"), (int, float)):
            self.done.setdefault(str(done.get("id")), set()).add((float(at), str(done.get("by"))))

    def standing(self, row: Row) -> Standing:
        """Of one row."""
        known, done = self.facts.get(row.record_id), self.done.get(row.record_id, set())
        if known is None:
            return Standing("it is not on record: no action was allowed by it, or Watchfloor did not make it")
        if known != row.digest:
            return Standing("it was changed after it was recorded", changed=True)
        if row.restored_at is None:
            return Standing("the log says that it was restored, and it says that it was not", changed=True) if done else Standing()
        if (row.restored_at, row.restored_by) in done:
            return Standing()
        if done:
            return Standing("the time or the operator of its restore was changed after it was recorded", changed=True)
        return Standing("it says that it was restored, which is not on record")


def compare_rows(log: Path, records: Path) -> RowsCompared:
    """Compares every row with the log, and every rollback record of the log with the rows; never raises on what the files hold."""
    found = RowsCompared(0)
    for pause in _AGAIN_S:
        time.sleep(pause)
        found, may_settle = _compared(log, records)
        if not may_settle:
            break
    return found


def _compared(log: Path, records: Path) -> tuple[RowsCompared, bool]:
    """And whether what is missing on one side may be there a moment later."""
    book = RollbackBook()
    try:
        book.read(log)
    except (sqlite3.Error, OSError) as error:
        return RowsCompared(0, f"the file cannot be read: {reason(error)}."), False
    try:
        rows = _rows(records)
    except FileNotFoundError:
        rows = []
    except (sqlite3.Error, OSError) as error:
        words = f"the rollback records cannot be read: {reason(error)}."
        return (RowsCompared(0, words) if book.facts else RowsCompared(0, unknown=(words,))), False
    changed, unknown, before = list[str](), list[str](), 0
    for row in rows:
        found = book.standing(row)
        if found.changed:
            changed.append(f"rollback record {row.record_id[:40]}: {found.words}")
        elif found.words and row.created_at < book.began:
            before += 1
        elif found.words:
            unknown.append(f"rollback record {row.record_id[:40]}: {found.words}")
    gone = [f"rollback record {one[:40]} is on record and gone" for one in book.facts.keys() - {row.record_id for row in rows}]
    why = "; ".join(few(changed + gone, "rollback records"))
    return RowsCompared(len(rows), why, tuple(few(unknown, "rollback records")), before), bool(gone or unknown)


def _rows(records: Path) -> list[Row]:
    with closing(open_reader(records)) as connection:
        connection.text_factory = str
        names = ", ".join((*FACTS, "restored_at", "restored_by"))
        with closing(connection.execute(f"SELECT {names} FROM records ORDER BY seq")) as rows:
            return [_row(row) for row in rows]


def _row(row: tuple[object, ...]) -> Row:
    *facts, restored_at, restored_by = row
    named = dict(zip(FACTS, facts, strict=True))
    at = named["created_at"]
    return Row(
        record_id=str(named["record_id"]),
        digest=facts_digest(facts),
        created_at=at if isinstance(at, float) else 0.0,
        restored_at=restored_at if isinstance(restored_at, float) else None,
        restored_by=str(restored_by),
    )


def _fields(data: bytes) -> dict[str, object]:
    try:
        found = json.loads(data)
    except (ValueError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
