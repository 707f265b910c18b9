"""One SQLite file: connections set up for durability, one writer at a time, migrations, errors with words."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, func, insert, select
from sqlalchemy.exc import SQLAlchemyError

from console.domain.errors import Conflict, ConsoleError, NotRecorded
from console.domain.process.failpoints import failpoint
from console.domain.process.schema_copy import keep_copy, way_back
from console.ledger.migrations import MIGRATIONS, VERSION_TABLE, Migration
from console.ledger.tables import SCHEMA_VERSION

BUSY_MS = 5000

# https://www.sqlite.org/pragma.html; WAL with synchronous=FULL syncs at every commit, so what was acknowledged survives power loss.
_PRAGMAS = (
    f"busy_timeout={BUSY_MS}",
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=ON",
    # Without it INSERT OR REPLACE skips delete triggers, which had let a session's level fall (decision 0009).
    "recursive_triggers=ON",
    "trusted_schema=OFF",
)


class Database:
    """Base of every group of tables. Usable from several threads; ``close`` at the end."""

    def __init__(self, path: Path, migrations: tuple[Migration, ...] = MIGRATIONS) -> None:
        """Opens or creates ``path`` (mode 0600) and migrates it.

        Raises Conflict when a newer version of the product wrote it, ConsoleError when it cannot be used.
        """
        self.path = path
        self._write_lock = threading.RLock()
        try:
            # SQLite would create the file with the umask's rights; made here first, no other user can read it.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise ConsoleError(
                f"The ledger {path} cannot be opened: {error.strerror}.", "Fix the folder's permissions, or use another --state-dir."
            ) from error
        self._engine = _engine(path)
        # IMMEDIATE takes the write lock at once, so that busy_timeout applies: a read that turns into a write fails without waiting.
        self._writer = self._engine.execution_options(begin="BEGIN IMMEDIATE")
        try:
            self._migrate(migrations)
        except NotRecorded as error:
            self.close()
            raise ConsoleError(error.what, f"Move {path.name} away to start a new one, or restore it from a backup.") from error
        except ConsoleError:
            self.close()
            raise

    def close(self) -> None:
        """Closes every connection; the file stays whole whenever this is not called."""
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A snapshot to read from. Raises ConsoleError when the ledger cannot be read."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except (SQLAlchemyError, UnicodeDecodeError) as error:
            raise ConsoleError(
                f"The ledger cannot be read: {_cause(error)}.",
                f"Check {self.path.parent} and its disk; restore {self.path.name} if damaged.",
            ) from error

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One transaction, on disk when the block ends. Raises NotRecorded, and then nothing of it was written."""
        try:
            with self._write_lock, self._writer.begin() as connection:
                yield connection
                failpoint("ledger.commit")
            failpoint("ledger.committed")
        except (SQLAlchemyError, OSError, OverflowError, UnicodeDecodeError) as error:
            raise NotRecorded(
                f"The ledger could not be written: {_cause(error)}.", f"Free space or fix {self.path.parent}; nothing was changed."
            ) from error

    def _migrate(self, migrations: tuple[Migration, ...]) -> None:
        newest = max(m.version for m in migrations)
        with self.writing() as connection:
            connection.exec_driver_sql(VERSION_TABLE)
            found = connection.execute(select(func.max(SCHEMA_VERSION.c.version))).scalar() or 0
        if found > newest:
            raise Conflict(
                f"The ledger {self.path} has schema {found}; this version knows {newest}.", way_back(self.path, newest, "The ledger")
            )
        if found < newest:
            with self._alone():
                self._upgrade(migrations, newest)

    def _upgrade(self, migrations: tuple[Migration, ...], newest: int) -> None:
        with self.reading() as connection:
            found = connection.execute(select(func.max(SCHEMA_VERSION.c.version))).scalar() or 0
        if 0 < found < newest:
            # An older version cannot read a newer schema: the copy is the only way back.
            keep_copy(self.path, found, "The ledger")
            failpoint("ledger.copied")
        for migration in sorted(migrations, key=lambda m: m.version):
            self._apply(migration)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One start at a time migrates: a copy that is made while another one migrates would be of neither schema."""
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)

    def _apply(self, migration: Migration) -> None:
        with self.writing() as connection:
            # Asked again inside the transaction: another process may have been first.
            done = connection.execute(select(SCHEMA_VERSION.c.version).where(SCHEMA_VERSION.c.version == migration.version)).first()
            if done is not None:
                return
            for statement in migration.statements:
                connection.exec_driver_sql(statement)
            connection.execute(insert(SCHEMA_VERSION).values(version=migration.version, what=migration.what, applied_at=time.time()))


def _engine(path: Path) -> Engine:
    engine = create_engine(
        f"sqlite+pysqlite:///{path}",
        connect_args={"timeout": BUSY_MS / 1000, "isolation_level": None, "check_same_thread": False},
        hide_parameters=True,  # values are hostile or secret: never in an error's text
        pool_size=4,
        max_overflow=28,
    )

    @event.listens_for(engine, "connect")
    def _set_up(connection: Any, _record: Any) -> None:
        for pragma in _PRAGMAS:
            _patiently(connection, f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(str(connection.get_execution_options().get("begin", "BEGIN")))

    return engine


def _patiently(connection: Any, statement: str) -> None:
    """SQLite does not wait for others (busy_timeout) where it changes the journal's mode, which two first starts at once both do."""
    give_up = time.monotonic() + BUSY_MS / 1000
    while True:
        try:
            connection.execute(statement).fetchall()
            return
        except sqlite3.OperationalError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.01)


def _cause(error: Exception) -> str:
    """SQLite's own words, which never hold a value."""
    if isinstance(error, UnicodeDecodeError):
        return "a stored text is not UTF-8"
    if isinstance(error, OverflowError):
        return "a number is beyond 64 bits"
    return str(getattr(error, "orig", None) or type(error).__name__)
