"""Open a SQLite file of the state directory whose content can be made again. A damaged one is moved aside whole, and a new one starts."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from console.domain.errors import Conflict, ConsoleError
from console.domain.process.schema_copy import keep_copy, way_back

WAIT_S = 20.0
"""Longest wait in seconds for another connection's transaction."""


def open_or_begin_anew(
    file: Path,
    version: int,
    upgrades: Mapping[int, str],
    look: Callable[[sqlite3.Connection], object] = lambda _db: None,
    *,
    any_thread: bool = False,
) -> tuple[sqlite3.Connection, str]:
    """Return (the file, made with mode 0600 where there was none and brought to ``version``; why a new one was started, or empty).

    ``upgrades``: SQL by the version it starts from, 0 for a new file. Each step is done whole or not at all. ``look`` reads what must be
    there. A copy from before an upgrade is kept beside the file. Raises ConsoleError when the disk refuses, and Conflict when a later
    version wrote the file: neither is damage.
    """
    try:
        try:
            return _opened(file, version, upgrades, look, any_thread), ""
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            lost = f"{file.name} was damaged ({error}) and lies aside as {_lay_aside(file)}"
        return _opened(file, version, upgrades, look, any_thread), lost
    except (sqlite3.Error, OSError) as error:
        raise refused(file, error) from error


def refused(file: Path, error: Exception) -> ConsoleError:
    """What SQLite or the disk said, as an error with a remedy."""
    return ConsoleError(f"{file} cannot be used: {error}.", "Look at the disk and at who may write the state directory.")


def _opened(
    file: Path, version: int, upgrades: Mapping[int, str], look: Callable[[sqlite3.Connection], object], any_thread: bool
) -> sqlite3.Connection:
    with contextlib.suppress(FileExistsError):
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    db = sqlite3.connect(file, timeout=WAIT_S, isolation_level=None, check_same_thread=not any_thread)
    try:
        db.execute("pragma journal_mode = wal")
        db.execute("pragma synchronous = normal")
        found = db.execute("pragma user_version").fetchone()[0]
        if found != version:
            if found not in upgrades:
                raise Conflict(f"{file.name} has schema {found}; this version knows {version}.", way_back(file, version, file.name))
            if found:
                keep_copy(file, found, file.name)
            db.executescript(f"begin immediate; {upgrades[found]} pragma user_version = {version}; commit;")
        look(db)
    except BaseException:
        db.close()
        raise
    return db


def _lay_aside(file: Path) -> str:
    """Its new name. With its log, which must not be played into the file that comes."""
    aside = file.with_name(f"{file.name}.broken-{int(time.time())}")
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            file.with_name(file.name + suffix).replace(aside.with_name(aside.name + suffix))
    return aside.name
