"""Anchors: the number and hash of a record, noted earlier and kept where whoever rewrites the log cannot write.

``audit verify`` prints one. A chain that was rewritten from its beginning, checkpoints and receipts with it, is whole in itself; it cannot
lead to the same hash again.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass

from console.audit.record import GENESIS, text_of
from console.domain.errors import UsageProblem

SHOWN = 32
"""Hexadecimal characters of the hash that are printed: 128 bits are enough that nobody finds another log with them."""
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


def broken(connection: sqlite3.Connection, anchor: Anchor) -> str:
    """Why the log does not lead to it, in words, or ''. Raises sqlite3.Error."""
    row = connection.execute("SELECT hash FROM records WHERE seq = ?", (anchor.seq,)).fetchone()
    there = GENESIS if anchor.seq == 0 else "" if row is None else text_of(row[0])
    if there and there.startswith(anchor.hash):
        return ""
    if not there:
        return f"record {anchor.seq}, which {anchor.whence} names, is missing: records were cut, or an older log was put back."
    return (
        f"record {anchor.seq} is not the one that {anchor.whence} names: records up to {anchor.seq} were rewritten, or this is another log."
    )
