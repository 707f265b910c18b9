"""Logs that were set aside as not whole: what they held is not proven, and what is on record only in them is said so, never green."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

SET_ASIDE, LOST = "audit.set_aside", "audit.lost"
"""Kinds of the records with which a log says that it is not the first of its instance."""
_REARM = "kill.rearm"
_NAMED = 5


def older_logs(log: Path) -> tuple[Path, ...]:
    """The logs in the folders set aside beside ``log``, oldest first. A folder without one counts: what it held is unknown as well."""
    return tuple(folder / log.name for folder in sorted(log.parent.glob(f"{log.stem}-set-aside-*")) if folder.is_dir())


def lost(connection: sqlite3.Connection) -> list[str]:
    """That the log before this one is missing, until a rearm after it: somebody looked, and that is on record. Raises sqlite3.Error."""
    [seq] = connection.execute("SELECT max(seq) FROM records WHERE kind = ?", (LOST,)).fetchone()
    if seq is None or connection.execute("SELECT 1 FROM records WHERE seq > ? AND kind = ? LIMIT 1", (seq, _REARM)).fetchone():
        return []
    return [f"the log before this one is missing (record {seq}); what it held is not proven, until a rearm takes note of it"]


def few(words: list[str], of_what: str) -> list[str]:
    """The first of them, and how many more ``of_what`` (plural) there are."""
    return words if len(words) <= _NAMED else [*words[:_NAMED], f"and {len(words) - _NAMED:,} more {of_what}"]


def not_proven(older: Path) -> str:
    """For people."""
    return f"an older log was set aside as not whole ({older.parent.name}): what it held is not proven"


def moment(at: float) -> str:
    """In local time; never raises on a number that is no time."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
    except (ValueError, OverflowError, OSError):
        return "at no time"
