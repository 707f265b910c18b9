"""Whether the log still has what sealed receipts tell of it: the digest of each was on record as soon as it was sealed.

A log that was put back to an older copy, checkpoints and all, is whole in itself; a receipt that was sealed since betrays it, best one
that is kept on another machine: who rewrites the log can delete what lies beside it.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from console.audit.database import open_reader, reason
from console.audit.receipt_seal import verify_file

FIELD = "seal_sha256"
_AGAIN_S = (0.0, 0.5, 2.0)
"""A receipt is on disk a moment before its record is."""


@dataclass(frozen=True, slots=True)
class Compared:
    """``receipts`` were looked for; ``why`` in words when one is not on record, else empty."""

    receipts: int
    why: str = ""


def compare(log: Path, receipts: Iterable[Path], public_key: Path | None = None) -> Compared:
    """Looks for each sealed receipt's digest in the log; never raises on what the files hold.

    Receipts of before the log's first record are passed over where an older, damaged log was set aside: theirs is in there.
    """
    paths, why = list(receipts), ""
    for pause in _AGAIN_S:
        time.sleep(pause)
        why = _first_missing(log, paths, public_key)
        if not why:
            break
    return Compared(len(paths), why)


def _first_missing(log: Path, paths: list[Path], public_key: Path | None) -> str:
    if not paths:
        return ""
    try:
        known, began = _known(log)
    except (sqlite3.Error, OSError) as error:
        return f"the file cannot be read: {reason(error)}."
    is_second = any(log.parent.glob(f"{log.stem}-set-aside-*"))
    for path in paths:
        seal = verify_file(path, public_key)
        if not seal.good:
            return f"the sealed receipt {path.name} is not what this host signed: {seal.why}"
        if is_second and (seal.signed_at or 0.0) < began:
            continue
        if _digest(path) not in known:
            at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seal.signed_at or 0.0))
            return (
                f"no record of the receipt of kill {seal.kill_id}, sealed {at}: records were cut or an older log was put back"
                " (or the disk refused that record)."
            )
    return ""


def _known(log: Path) -> tuple[set[str], float]:
    """(every digest on record, when the first record was made; without one: never)."""
    with closing(open_reader(log)) as connection:
        row = connection.execute("SELECT at FROM records ORDER BY seq LIMIT 1").fetchone()
        found = set()
        with closing(connection.execute("SELECT data FROM records WHERE instr(data, ?)", (FIELD,))) as rows:
            for (data,) in rows:
                found.add(_field(data))
    return found, float(row[0]) if row is not None else float("inf")


def _field(data: bytes) -> str:
    try:
        return str(json.loads(data)[FIELD])
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return "unreadable"
