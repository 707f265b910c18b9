"""The records themselves: SQLite, durable at every commit, facts that never change once written."""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from console.domain.errors import Conflict, NotFound, NotRecorded
from console.domain.rollback import FACTS, RollbackKind, RollbackRecord, RollbackState, facts_digest
from console.rollback.images import Image

VERSION = 1
_FACTS = ", ".join(FACTS)
_SCHEMA = (
    """CREATE TABLE records (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, record_id TEXT NOT NULL UNIQUE, agent_id TEXT NOT NULL, context_id TEXT NOT NULL,
        kind TEXT NOT NULL, path TEXT NOT NULL, before_sha256 TEXT, before_size INTEGER NOT NULL, before_mode INTEGER NOT NULL,
        before_uid INTEGER NOT NULL, before_gid INTEGER NOT NULL, undoes TEXT NOT NULL, created_at REAL NOT NULL,
        after_sha256 TEXT, after_known INTEGER NOT NULL DEFAULT 0, restored_at REAL, restored_by TEXT NOT NULL DEFAULT ''
    ) STRICT""",
    "CREATE INDEX records_by_path ON records (context_id, path, seq)",
    "CREATE INDEX records_by_agent ON records (agent_id, seq)",
    "CREATE INDEX records_by_undoes ON records (undoes, seq)",
    f"CREATE TRIGGER records_facts BEFORE UPDATE OF seq, {_FACTS} ON records"
    " BEGIN SELECT RAISE(ABORT, 'a rollback record keeps its facts'); END",
    # Measured: REPLACE deletes a row without its triggers unless recursive_triggers is on, so that is set as well.
    "CREATE TRIGGER records_stay BEFORE DELETE ON records BEGIN SELECT RAISE(ABORT, 'a rollback record stays'); END",
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One row: the record's facts and what is known of it since."""

    seq: int
    record_id: str
    agent_id: str
    context_id: str
    kind: str
    path: str
    before_sha256: str | None
    before_size: int
    before_mode: int
    before_uid: int
    before_gid: int
    undoes: str
    """The record whose restore this one can undo, or empty."""
    created_at: float
    after_sha256: str | None
    after_known: int
    restored_at: float | None
    restored_by: str

    def as_record(self, state: RollbackState) -> RollbackRecord:
        """As the rest of the product sees it."""
        return RollbackRecord(
            record_id=self.record_id,
            agent_id=self.agent_id,
            context_id=self.context_id,
            kind=RollbackKind(self.kind),
            path=self.path,
            before_sha256=self.before_sha256,
            before_size=self.before_size,
            before_mode=self.before_mode,
            after_sha256=self.after_sha256,
            after_known=self.after_known == 1,
            created_at=self.created_at,
            state=state,
            restored_at=self.restored_at,
            restored_by=self.restored_by,
            facts_sha256=facts_digest(getattr(self, name) for name in FACTS),
        )

    @property
    def parts(self) -> tuple[str, ...]:
        """The path's components."""
        return tuple(self.path.split("/"))


_COLUMNS = ", ".join(f.name for f in fields(Entry))


class Journal:
    """Thread-safe; what a method wrote is on disk when it returns. Writing raises NotRecorded."""

    def __init__(self, path: Path) -> None:
        """Raises NotRecorded, Conflict when a newer version of the product wrote it."""
        self._lock = threading.RLock()
        self._path = path
        try:
            # Made here and not by SQLite, which would follow a link and use the umask for its mode.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
            self._connection = sqlite3.connect(path, timeout=5.0, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            raise NotRecorded(
                f"The rollback journal {path} cannot be opened: {error}.", "Fix the folder's permissions or the disk."
            ) from error
        try:
            self._set_up()
        except BaseException:
            self._connection.close()
            raise

    def _set_up(self) -> None:
        try:
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "recursive_triggers=ON", "trusted_schema=OFF"):
                self._connection.execute(f"PRAGMA {pragma}").fetchall()
        except sqlite3.Error as error:
            raise NotRecorded(
                f"The rollback journal {self._path} is damaged: {error}.", "Restore it from a backup, or move it away."
            ) from error
        with self._writing() as connection:
            found = int(connection.execute("PRAGMA user_version").fetchone()[0])
            if found > VERSION:
                raise Conflict(f"The rollback journal has schema {found}; this version knows {VERSION}.", "Start the newer version again.")
            if found == 0:
                for statement in _SCHEMA:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version={VERSION}")

    def close(self) -> None:
        """Once."""
        with self._lock:
            self._connection.close()

    def add(self, agent_id: str, context_id: str, kind: RollbackKind, path: str, before: Image, at: float, undoes: str = "") -> Entry:
        """A new record, durable on return.

        Where the record before it on this path has no after-image, ``before`` is what its action left: noted in the same transaction.
        """
        record_id = f"r-{secrets.token_hex(8)}"
        facts = (
            record_id,
            agent_id,
            context_id,
            str(kind),
            path,
            before.sha256,
            before.size,
            before.mode,
            before.uid,
            before.gid,
            undoes,
            at,
        )
        with self._writing() as connection:
            connection.execute(
                "UPDATE records SET after_sha256 = ?, after_known = 1"
                " WHERE seq = (SELECT max(seq) FROM records WHERE context_id = ? AND path = ?)"
                " AND after_known = 0 AND before_sha256 IS NOT ?",
                (before.sha256, context_id, path, before.sha256),
            )
            connection.execute(f"INSERT INTO records ({_FACTS}) VALUES ({','.join('?' * len(facts))})", facts)
        return self.get(record_id)

    def note_after(self, record_id: str, sha256: str | None) -> None:
        """What the action left."""
        with self._writing() as connection:
            connection.execute("UPDATE records SET after_sha256 = ?, after_known = 1 WHERE record_id = ?", (sha256, record_id))

    def note_restored(self, record_id: str, by: str, at: float, own: tuple[str, str | None] | None) -> None:
        """That it was put back; ``own`` is the restore's own record with what it left. One transaction."""
        with self._writing() as connection:
            connection.execute("UPDATE records SET restored_at = ?, restored_by = ? WHERE record_id = ?", (at, by, record_id))
            if own is not None:
                connection.execute("UPDATE records SET after_sha256 = ?, after_known = 1 WHERE record_id = ?", (own[1], own[0]))

    def get(self, record_id: str) -> Entry:
        """Raises NotFound."""
        found = self._read("WHERE record_id = ?", (record_id,))
        if not found:
            raise NotFound(f"There is no rollback record {record_id[:80]!r}.", "watchfloor rollback list shows them.")
        return found[0]

    def newest(self, limit: int, agent_id: str | None) -> list[Entry]:
        """Newest first."""
        if agent_id is None:
            return self._read("ORDER BY seq DESC LIMIT ?", (limit,))
        return self._read("WHERE agent_id = ? ORDER BY seq DESC LIMIT ?", (agent_id, limit))

    def own_of(self, entry: Entry) -> Entry | None:
        """The newest record that a restore of ``entry`` made of what it overwrote, or None."""
        found = self._read("WHERE undoes = ? ORDER BY seq DESC LIMIT 1", (entry.record_id,))
        return found[0] if found else None

    def unfinished(self) -> list[Entry]:
        """Records whose restore was begun and, for all that is written here, not ended."""
        return self._read("WHERE restored_at IS NULL AND record_id IN (SELECT undoes FROM records WHERE after_known = 0)", ())

    def newer(self, entry: Entry) -> Entry | None:
        """The next record on the same path, or None."""
        found = self._read("WHERE context_id = ? AND path = ? AND seq > ? ORDER BY seq LIMIT 1", (entry.context_id, entry.path, entry.seq))
        return found[0] if found else None

    def _read(self, clause: str, values: tuple[Any, ...]) -> list[Entry]:
        try:
            with self._lock:
                return [Entry(*row) for row in self._connection.execute(f"SELECT {_COLUMNS} FROM records {clause}", values)]
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            raise NotRecorded("The rollback journal cannot be read.", "Restore it from a backup, or move it away.") from error

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    yield self._connection
                    self._connection.execute("COMMIT")
                except BaseException:
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
                    raise
            except (sqlite3.Error, OverflowError, UnicodeError) as error:
                why = str(error) if isinstance(error, sqlite3.Error) else "a value is out of range"
                remedy = "Free space or fix the disk; the action was not allowed."
                raise NotRecorded(f"The rollback record could not be written: {why}.", remedy) from error
