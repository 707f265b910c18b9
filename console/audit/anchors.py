"""Anchors: the number and hash of a record, noted earlier and kept where an attacker who rewrites the log cannot write.

``audit verify`` prints one. A chain that was rewritten from its beginning, with its checkpoints and receipts, is valid in itself. But it
cannot lead to the same hash again.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from console.audit.database import open_reader, reason
from console.audit.record import GENESIS, text_of
from console.domain.errors import UsageProblem

SHOWN = 32
"""Hexadecimal characters of the hash that are printed. With 128 bits no other log with the same hash can be found."""
NOTED = "audit.head"
"""The ledger's key for the newest record. The ledger is a file of its own, so it shows when an older log was restored."""
_SHAPE = re.compile(r"([0-9]{1,18}):([0-9a-f]{32,64})")


@dataclass(frozen=True, slots=True)
class Anchor:
    """Record ``seq`` had a hash that begins with ``hash``; ``whence`` says in words where that was noted."""

    seq: int
    hash: str
    whence: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash[:SHOWN]}"


def anchor_of(text: str) -> Anchor:
    """From the command line. Raises UsageProblem."""
    found = _SHAPE.fullmatch(text.strip().lower())
    if found is None:
        raise UsageProblem(
            f"{text[:80]!r} is no anchor.", "N:HASH as watchfloor audit verify prints it, at least 32 characters of the hash."
        )
    return Anchor(int(found[1]), found[2], "the anchor that was given")


def noted_in(ledger: Path) -> list[Anchor]:
    """The newest record that the ledger knows of; nothing where it names none or cannot be read, which is told elsewhere."""
    try:
        with closing(open_reader(ledger)) as connection:
            row = connection.execute("SELECT value FROM kv WHERE key = ?", (NOTED,)).fetchone()
        return [] if row is None else [replace(anchor_of(text_of(row[0])), whence="the ledger")]
    except (sqlite3.Error, OSError, UsageProblem):
        return []


def broken_in(log: Path, anchors: Iterable[Anchor]) -> str:
    """Why the log in this file does not lead to one of them, in words, or ''."""
    try:
        with closing(open_reader(log)) as connection:
            return next((why for anchor in anchors if (why := broken(connection, anchor))), "")
    except (sqlite3.Error, OSError) as error:
        return f"the file cannot be read: {reason(error)}."


def broken(connection: sqlite3.Connection, anchor: Anchor) -> str:
    """Why the log does not lead to it, in words, or ''. Raises sqlite3.Error."""
    row = connection.execute("SELECT hash FROM records WHERE seq = ?", (anchor.seq,)).fetchone()
    return differs("" if row is None else text_of(row[0]), anchor)


def differs(there: str, anchor: Anchor) -> str:
    """Why the hash of the record of that number is not the anchor's, in words, or ''. ``there``: empty where there is no such record."""
    there = there if anchor.seq else GENESIS
    if there and there.startswith(anchor.hash):
        return ""
    if not there:
        return f"record {anchor.seq}, which {anchor.whence} names, is missing: records were cut, or an older log was put back."
    return (
        f"record {anchor.seq} is not the one that {anchor.whence} names: records up to {anchor.seq} were rewritten, or this is another log."
    )
