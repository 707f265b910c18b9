"""Check the log against what is known of it from elsewhere: seals of receipts, the records they name, and anchors.

A log that was replaced by an older copy, or rewritten with its checkpoints, is valid in itself. But the digest of each receipt was on
record as soon as it was sealed, and the receipt names the newest record of that moment. So a receipt kept on another machine exposes both.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from console.audit.anchors import Anchor, broken
from console.audit.database import open_reader, reason
from console.audit.receipt_seal import Given, verify_file, verify_given
from console.audit.retirement import HOST, KIND, Retirement, retirement_of, worth
from console.audit.set_aside import PUT_BACK, Losses, few, moment, not_proven, older_logs, read_losses

FIELD = "seal_sha256"
_AGAIN_S = (0.0, 0.5, 2.0)
"""A receipt is on disk a moment before its record is."""


@dataclass(frozen=True, slots=True)
class Compared:
    """``receipts`` and ``anchors`` were looked for; ``why`` in words when the log does not lead to one, else empty."""

    receipts: int
    why: str = ""
    unknown: tuple[str, ...] = ()
    """What cannot be told, in words: neither whole nor not."""
    retired: tuple[str, ...] = ()
    """Keys that the log says are retired, since when, and what their signatures are worth; in words."""
    losses: Losses = Losses()
    """Of the logs before this one."""
    is_older: bool = False
    """``why`` is a receipt that was on record and is not any more: an older copy of the log was put back."""


@dataclass(slots=True)
class _Book:
    """What one log has on record."""

    put_back: float = float("-inf")
    """Of its newest record of an older copy that was put back; without one: never."""
    began: float = float("inf")
    """Of its first record; without one: never."""
    seals: dict[str, int] = field(default_factory=dict)
    """Digest of a sealed receipt, and the first record that holds it."""
    retired: dict[str, tuple[int, float, Retirement]] = field(default_factory=dict)
    """By key id: the first record of the retirement, and its time."""
    wrong: list[str] = field(default_factory=list)
    """Records that claim a retirement and are not valid."""

    def has_before(self, key_id: str, digest: str) -> bool:
        """Whether this seal was on record here before its key was retired."""
        retired = self.retired.get(key_id)
        # Numbers of records and not times: anyone with the leaked key can write any date.
        return retired is None or self.seals[digest] < retired[0]


class _Bad(Exception):
    """What the log does not lead to, in words."""


class _Missing(_Bad):
    """A receipt that this host sealed, and that is not on record."""


def compare(log: Path, receipts: Iterable[Path | Given], public_key: Path | None = None, anchors: Sequence[Anchor] = ()) -> Compared:
    """Looks for each sealed receipt and anchor in the log; never raises on what the files hold.

    A receipt of before the log's first record is looked for in the logs that were set aside, and what is found only there, or
    nowhere, is unknown.
    """
    paths, found = list(receipts), Compared(0)
    for pause in _AGAIN_S:
        time.sleep(pause)
        found = _compared(log, paths, public_key, anchors)
        if not found.why:
            break
    return found


def _compared(log: Path, paths: list[Path | Given], public_key: Path | None, anchors: Sequence[Anchor]) -> Compared:
    older = older_logs(log)
    unknown, losses = [not_proven(path) for path in older], Losses()
    books, retired = list[_Book](), list[str]()
    try:
        with closing(open_reader(log)) as connection:
            own = _read(connection)
            losses = read_losses(connection)
            if losses.acknowledged and not losses.open:
                unknown = []  # an operator has looked at them
            books = [*(_readable(path) for path in older), own]
            retired = [_said(*books[-1].retired[key]) for key in own.retired]
            for words in own.wrong:
                raise _Bad(words)
            for anchor in anchors:
                if why := broken(connection, anchor):
                    raise _Bad(why)
            before = [words for path in paths for words in _unknown_of(connection, books, path, public_key)]
            unknown += few(before, "receipts") if losses.open or not losses.acknowledged else []
    except _Bad as bad:
        return Compared(len(paths), str(bad), tuple(unknown), tuple(retired), losses, isinstance(bad, _Missing))
    except (sqlite3.Error, OSError) as error:
        return Compared(len(paths), f"the file cannot be read: {reason(error)}.", tuple(unknown), tuple(retired), losses)
    return Compared(len(paths), "", tuple(unknown), tuple(retired), losses)


def _unknown_of(connection: sqlite3.Connection, books: list[_Book], path: Path | Given, public_key: Path | None) -> list[str]:
    """Return what cannot be checked of one receipt. Raises _Bad when this host did not sign it, or the log does not lead to it."""
    keys = {key: found[2].raw() for book in books for key, found in book.retired.items() if found[2].role == HOST}
    seal = verify_given(path, public_key, keys) if isinstance(path, Given) else verify_file(path, public_key, keys)
    if not seal.good:
        raise _Bad(f"the sealed receipt {path.name} is not what this host signed: {seal.why}")
    digest, own = _digest(path), books[-1]
    named, at = f"the receipt of kill {seal.kill_id}, sealed {moment(seal.signed_at or 0.0)}", seal.signed_at or 0.0
    # The record holds the digest of the whole sealed file, so another seal of the same kill does not pass for it.
    if digest in own.seals:
        if seal.retired and not (seal.key_id in own.retired and own.has_before(seal.key_id, digest)):
            raise _Bad(f"{named}, came on record after its key {seal.key_id} had been retired: it is worth nothing.")
        if seal.audit_head is not None and (why := broken(connection, Anchor(*seal.audit_head, f"the receipt of kill {seal.kill_id}"))):
            raise _Bad(why)
        return []
    if len(books) > 1 and at < own.began:
        if any(digest in book.seals and book.has_before(seal.key_id, digest) for book in books[:-1]):
            return [f"{named}, is on record only in a log that was set aside"]
        return [f"{named}, of before this log, is on record in no log that was set aside and can be read"]
    if seal.retired:
        raise _Bad(f"{named}, was sealed with the retired key {seal.key_id} and is not on record: it is worth nothing.")
    if at < own.put_back:
        return [f"{named}, was on record only in a log that an older copy replaced"]
    # Each sealed receipt is on record at once, so a missing one means a cut log, a replaced log or a disk that refused it.
    raise _Missing(f"no record of {named}: records were cut or an older log was put back (or the disk refused that record).")


def retired_keys(log: Path) -> dict[str, Retirement]:
    """By key id, as the log says; nothing where it cannot be read."""
    try:
        with closing(open_reader(log)) as connection:
            return {key: found[2] for key, found in _read(connection).retired.items()}
    except (sqlite3.Error, OSError):
        return {}


def _readable(log: Path) -> _Book:
    """Of a log that was set aside: what can be read of it, and be it nothing."""
    try:
        with closing(open_reader(log)) as connection:
            return _read(connection)
    except (sqlite3.Error, OSError):
        return _Book()


def _read(connection: sqlite3.Connection) -> _Book:
    book = _Book()
    row = connection.execute("SELECT at FROM records ORDER BY seq LIMIT 1").fetchone()
    book.began = float(row[0]) if row is not None else book.began
    [put_back] = connection.execute("SELECT max(at) FROM records WHERE kind = ?", (PUT_BACK,)).fetchone()
    book.put_back = book.put_back if put_back is None else float(put_back)
    with closing(connection.execute("SELECT seq, data FROM records WHERE instr(data, ?) ORDER BY seq", (FIELD,))) as rows:
        for seq, data in rows:
            book.seals.setdefault(str(_fields(data).get(FIELD, "")), seq)
    with closing(connection.execute("SELECT seq, at, data FROM records WHERE kind = ? ORDER BY seq", (KIND,))) as rows:
        for seq, at, data in rows:
            found = retirement_of(_fields(data))
            why = "it cannot be read" if found is None else found.problem()
            if found is None or why:
                book.wrong.append(f"record {seq} retires a key, but {why}.")
            else:
                book.retired.setdefault(found.key_id, (seq, float(at), found))
    return book


def _said(seq: int, at: float, found: Retirement) -> str:
    return f"the {found.role} key {found.key_id} was retired at record {seq}, {moment(at)}: {worth(found.role)}"


def _fields(data: bytes) -> dict[str, object]:
    try:
        found = json.loads(data)
    except (ValueError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _digest(path: Path | Given) -> str:
    try:
        return hashlib.sha256(path.raw if isinstance(path, Given) else path.read_bytes()).hexdigest()
    except OSError:
        return "unreadable"
