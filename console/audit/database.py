"""The audit file itself: schema, opening for writing and for reading, and what is damage and what is only a full disk."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

from console.domain.errors import Conflict, ConsoleError

VERSION = 1
BUSY_S = 5.0

_TABLE = """CREATE TABLE records (
    seq INTEGER PRIMARY KEY, at REAL NOT NULL, actor ANY NOT NULL, kind ANY NOT NULL, what ANY NOT NULL, verdict ANY NOT NULL,
    agent_id ANY NOT NULL, data TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL
) STRICT"""
_REFUSE = "BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END"
SCHEMA: dict[tuple[str, str], str] = {
    ("table", "records"): _TABLE,
    ("trigger", "records_no_update"): f"CREATE TRIGGER records_no_update BEFORE UPDATE ON records {_REFUSE}",
    ("trigger", "records_no_delete"): f"CREATE TRIGGER records_no_delete BEFORE DELETE ON records {_REFUSE}",
    # REPLACE fires no delete trigger unless recursive_triggers is on, which is a setting of each connection.
    ("trigger", "records_no_replace"): (
        f"CREATE TRIGGER records_no_replace BEFORE INSERT ON records WHEN EXISTS (SELECT 1 FROM records WHERE seq = NEW.seq) {_REFUSE}"
    ),
}
COLUMNS = "seq, at, actor, kind, what, verdict, agent_id, data, previous, hash"

# https://www.sqlite.org/rescode.html: primary result codes that mean the bytes are wrong, not that the disk is.
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class Damaged(ConsoleError):
    """The audit log is not whole. The supervisor starts killed, sets it aside (`segments.set_aside`) and begins a new one."""


class NotPlain(OSError):
    """A link, a pipe or a folder in a file's place. An attacker may have put it there, and reading a pipe could wait forever."""

    def __init__(self) -> None:
        super().__init__(0, "it is not a plain file")


def check_plain(path: Path) -> None:
    """Raises NotPlain when something else is there, OSError when it cannot be looked at; a missing file is none (FileNotFoundError)."""
    if not stat.S_ISREG(path.lstat().st_mode):
        raise NotPlain


def damaged(path: Path, why: str) -> Damaged:
    """With the words and the remedy everyone shows."""
    return Damaged(
        f"The audit log {path} is not intact: {why}",
        "Keep it as evidence (watchfloor audit verify names the record); a new segment can be begun.",
    )


def is_damage(error: Exception) -> bool:
    """Whether the file's content is wrong (else: disk full, read-only, busy)."""
    if isinstance(error, (UnicodeDecodeError, NotPlain)):
        return True
    code = getattr(error, "sqlite_errorcode", None)
    # The low byte is the primary code; SQLite reports extended codes, such as CORRUPT_INDEX, in the bytes above it.
    return code is not None and code & 0xFF in _DAMAGE


def reason(error: Exception) -> str:
    """The system's own words; never a value."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return str(error)


def open_writer(path: Path) -> sqlite3.Connection:
    """The one connection that appends. Raises sqlite3.Error, OSError, Conflict (a newer version wrote it)."""
    if os.path.lexists(path):
        check_plain(path)
    # O_NOFOLLOW closes the gap between the check above and the open: a link put there in between is refused.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        connection.text_factory = bytes
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "recursive_triggers=ON", "foreign_keys=ON", "trusted_schema=OFF"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        # Two starts at once must not both find version 0 and create the tables.
        connection.execute("BEGIN IMMEDIATE")
        found = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if found > VERSION:
            raise Conflict(f"The audit log {path} has schema {found}; this version knows {VERSION}.", "Start the newer version again.")
        if found == 0:
            for statement in SCHEMA.values():
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version={VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def open_reader(path: Path) -> sqlite3.Connection:
    """A connection that cannot write, on a live log too; texts come as bytes. Raises sqlite3.Error, OSError (missing)."""
    check_plain(path)
    uri = path.absolute().as_uri() + "?mode=ro"
    try:
        return _reader(uri)
    except sqlite3.OperationalError:
        # A copy in a folder that cannot be written has no room for the -shm of WAL mode; without a -wal it cannot be changing.
        wal = path.with_name(path.name + "-wal")
        if wal.exists() and wal.stat().st_size > 0:
            raise
        return _reader(uri + "&immutable=1")


def _reader(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        connection.text_factory = bytes
        connection.execute("PRAGMA trusted_schema=OFF").fetchall()
        connection.execute("PRAGMA query_only=ON").fetchall()
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def schema_problem(connection: sqlite3.Connection) -> str:
    """What is wrong with the schema (a view in the table's place, a missing trigger), or ''."""
    with closing(connection.execute("SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'")) as rows:
        found = {(kind.decode(), name.decode()): (sql or b"").decode() for kind, name, sql in rows}
    for (kind, name), sql in SCHEMA.items():
        # SQL can edit a row only after a trigger was dropped, so a changed schema is a trace of that.
        if found.get((kind, name)) != sql:
            return f"its {kind} {name} is missing or was changed."
    extra = sorted(name for kind, name in found if (kind, name) not in SCHEMA)
    return f"its schema holds {extra[0]!r}, which does not belong there." if extra else ""


def has_table(connection: sqlite3.Connection) -> bool:
    """Whether the table of records is the one that was made here; else nothing in it is to be asked for."""
    row = connection.execute("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = 'records'").fetchone()
    return row is not None and bytes(row[0] or b"").decode("utf-8", "replace") == _TABLE
