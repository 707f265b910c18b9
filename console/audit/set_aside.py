"""Logs that were set aside as not whole: what they held is not proven, and what is on record only in them is said so, never green."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from console.audit.database import open_reader
from console.audit.record import text_of

SET_ASIDE, LOST = "audit.set_aside", "audit.lost"
"""Kinds of the records with which a log says that it is not the first of its instance."""
PUT_BACK = "audit.put_back"
"""Kind of the record with which a log says that an older copy of it was put back: what came after that copy is lost."""
# Neither a restart nor a rearm ends a loss: only a person who looked at it does.
ACKNOWLEDGED = "audit.loss_acknowledged"
"""Kind of the record with which an operator takes note of every loss before it, with a reason."""
_LOSSES = {
    SET_ASIDE: "the log before this one was set aside as not intact",
    LOST: "the log before this one is missing",
    PUT_BACK: "records of before are missing: an older copy of the log was put back",
}
_NAMED = 5


def older_logs(log: Path) -> tuple[Path, ...]:
    """The logs in the folders set aside beside ``log``, oldest first. A folder without one counts: what it held is unknown as well."""
    return tuple(folder / log.name for folder in sorted(log.parent.glob(f"{log.stem}-set-aside-*")) if folder.is_dir())


@dataclass(frozen=True, slots=True)
class Losses:
    """What a log says about the logs before it, in words for people."""

    open: tuple[str, ...] = ()
    """Losses that no operator acknowledged: the record is not intact."""
    acknowledged: tuple[str, ...] = ()
    newest: int = 0
    """Number of the newest record that tells of a loss; 0: none."""

    @property
    def why(self) -> str:
        """Why the record is not intact, with the remedy; empty: no open loss."""
        return f"{'; '.join(self.open)}. Acknowledge the loss: watchfloor audit acknowledge --reason WORDS." if self.open else ""


def read_losses(connection: sqlite3.Connection) -> Losses:
    """Return the losses on record; an acknowledgement covers every loss before it. Raises sqlite3.Error."""
    rows = connection.execute(
        "SELECT seq, at, kind, actor, what FROM records WHERE kind IN (?, ?, ?, ?) ORDER BY seq",
        (SET_ASIDE, LOST, PUT_BACK, ACKNOWLEDGED),
    ).fetchall()
    unseen: list[str] = []
    seen: list[str] = []
    newest = 0
    for seq, at, kind, actor, what in rows:
        if text_of(kind) == ACKNOWLEDGED:
            who = f"acknowledged by {text_of(actor)}, {moment(float(at))} (record {seq}): {text_of(what)}"
            seen += [f"{words}; {who}" for words in unseen]
            unseen = []
            continue
        newest = seq
        unseen.append(f"{_LOSSES[text_of(kind)]} (record {seq}, {moment(float(at))}): what it held is not proven")
    return Losses(tuple(unseen), tuple(seen), newest)


def losses_of(log: Path) -> Losses:
    """The same from the file; nothing where it cannot be read, which is told elsewhere."""
    try:
        with closing(open_reader(log)) as connection:
            return read_losses(connection)
    except (sqlite3.Error, OSError):
        return Losses()


def few(words: list[str], of_what: str) -> list[str]:
    """The first of them, and how many more ``of_what`` (plural) there are."""
    return words if len(words) <= _NAMED else [*words[:_NAMED], f"and {len(words) - _NAMED:,} more {of_what}"]


def not_proven(older: Path) -> str:
    """For people."""
    return f"an older log was set aside as not intact ({older.parent.name}): what it held is not proven"


def moment(at: float) -> str:
    """In local time; never raises on a number that is no time."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
    except (ValueError, OverflowError, OSError):
        return "at no time"
