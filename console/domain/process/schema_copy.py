"""A copy of a SQLite file from before its migration, and the way back to it for an older program."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from shlex import quote

from console.domain.errors import ConsoleError
from console.domain.process.durable import sync_folder

KEPT = ".schema-"
"""Between the file's name and a schema's number: the copy from before the migration of that schema."""


def keep_copy(path: Path, version: int, title: str) -> None:
    """Write a copy beside the file as it is now: whole and on disk when this returns. Raises ConsoleError; ``title`` names the file."""
    copy = path.with_name(f"{path.name}{KEPT}{version}")
    draft = copy.with_name(f".{copy.name}")
    try:
        draft.unlink(missing_ok=True)  # of a start that ended in between
        os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(draft)) as target:
            source.backup(target)  # https://www.sqlite.org/backup.html: a snapshot, with what is only in the write-ahead log
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.replace(copy)
        sync_folder(copy.parent)
    except (sqlite3.Error, OSError) as error:
        draft.unlink(missing_ok=True)
        raise ConsoleError(
            f"{title} was not migrated: a copy of it could not be kept as {copy.name} ({error}).", f"Make room in {copy.parent}."
        ) from error


def way_back(path: Path, newest: int, short: str) -> str:
    """What to do with a program that knows schemas up to ``newest``: the newer one, or the copy from before its migration."""
    copies = [(int(end), file) for file in path.parent.glob(f"{path.name}{KEPT}*") if (end := file.name.rpartition("-")[2]).isdecimal()]
    known = [(version, file) for version, file in copies if version <= newest]
    if not known:
        return "Start the newer version again: no copy from before the upgrade is here."
    wal, shm, there, file = (quote(str(one)) for one in (f"{path}-wal", f"{path}-shm", path, max(known)[1]))
    return (
        "Start the newer version again. To go back instead: end every supervisor of this instance, then "
        f"rm -f {wal} {shm}; cp {file} {there}. {short} then lacks what came after the upgrade."
    )
