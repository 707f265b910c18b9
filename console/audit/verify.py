"""Whether the record is whole: every hash, every link, every checkpoint; and if not, which record is the first bad one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.audit.checkpoints import Checkpoint, Checkpoints, beside, read_checkpoints
from console.audit.database import COLUMNS, has_table, open_reader, reason, schema_problem
from console.audit.record import GENESIS, digest


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a verification."""

    whole: bool
    records: int
    """Records read up to the end, or up to the first bad one."""
    first_bad: int | None = None
    """Number of the first bad record; None: whole, or no single record can be named."""
    why: str = ""
    """In words; empty when whole."""
    head: str = GENESIS
    """Hash of the last good record."""
    checkpoint_seq: int = 0
    checkpoint_at: float | None = None
    """The newest checkpoint; records after ``checkpoint_seq`` are held by their hashes alone."""


class _Bad(Exception):
    def __init__(self, seq: int | None, why: str) -> None:
        super().__init__(why)
        self.seq = seq
        self.why = why


class _Chain:
    """Walks the records; knows how far all was well."""

    def __init__(self, points: tuple[Checkpoint, ...]) -> None:
        self.seq = 0
        self.head = GENESIS
        self._agreed = 0
        self._points: dict[int, list[str]] = {}
        for point in points:
            self._points.setdefault(point.seq, []).append(point.hash)

    def take(self, row: tuple[Any, ...]) -> None:
        seq, at, *texts, data, previous, own = row
        expected = self.seq + 1
        # 1. The numbers have no gap.
        if seq != expected:
            raise _Bad(expected, f"record {expected} is missing; the next one there is {seq}.")
        # 2. The stored shape is the one that is written.
        if not isinstance(at, float) or not all(isinstance(part, bytes) for part in (*texts, data, previous, own)):
            raise _Bad(seq, f"record {seq} holds values of the wrong type.")
        # 3. It follows the record before it.
        if previous != self.head.encode():
            raise _Bad(seq, f"record {seq} does not follow record {seq - 1}: records were changed, reordered or replaced.")
        # 4. Its content is what was hashed.
        if digest(seq, at, texts, data, self.head) != own.decode("ascii", "replace"):
            raise _Bad(seq, f"record {seq} was changed after it was written.")
        self.seq, self.head = seq, own.decode("ascii")
        # 5. A checkpoint at this number says the same: a chain rewritten from here back is consistent in itself.
        for noted in self._points.get(seq, []):
            if noted != self.head:
                raise _Bad(
                    self._agreed + 1, f"records {self._agreed + 1} to {seq} were rewritten: they no longer lead to the checkpoint at {seq}."
                )
            self._agreed = seq


def verify_file(path: Path, checkpoints_path: Path | None = None, expect_head: tuple[int, str] | None = None) -> Verdict:
    """Verifies an audit log, live or not, without changing it; never raises on what the files hold.

    ``expect_head`` is (number, hash) a running writer remembers: it notices a cut that no checkpoint covers yet. Without one, see
    `checkpoints` for what cannot be noticed.
    """
    # The checkpoints first: what they name was on disk before, so it is in the snapshot read next.
    try:
        noted = read_checkpoints(checkpoints_path or beside(path))
    except OSError as error:
        noted = Checkpoints((), f"the checkpoint file cannot be read: {reason(error)}")
    chain = _Chain(noted.points)
    problems: list[str] = []
    last = noted.points[-1] if noted.points else Checkpoint(0, GENESIS, 0.0)
    first_bad, why = None, ""
    try:
        for row in _rows(path, problems):
            chain.take(row)
        _check_end(chain, noted, last, expect_head)
        if problems:
            raise _Bad(None, problems[0])
    except _Bad as bad:
        first_bad, why = bad.seq, bad.why
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        first_bad, why = _broken(chain.seq, path, error)
    return Verdict(not why, chain.seq, first_bad, why, chain.head, last.seq, last.at if noted.points else None)


def _rows(path: Path, problems: list[str]) -> Iterator[tuple[Any, ...]]:
    """Every row. What is wrong around the table goes to ``problems``: the record that was changed is the better answer."""
    with closing(open_reader(path)) as connection:
        connection.execute("BEGIN")  # one snapshot for all
        problem = schema_problem(connection)
        if problem and not has_table(connection):
            raise _Bad(None, problem)
        problems += [problem] if problem else []
        with closing(connection.execute(f"SELECT {COLUMNS} FROM records ORDER BY seq")) as rows:
            yield from rows
        # Pages that no row leads through (free lists, the schema) are part of the file as well.
        [found] = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != b"ok":
            raise _Bad(None, f"the file is damaged: {found.decode('utf-8', 'replace')[:200]}.")


def _check_end(chain: _Chain, noted: Checkpoints, last: Checkpoint, expect_head: tuple[int, str] | None) -> None:
    if expect_head is not None and chain.seq < expect_head[0]:
        raise _Bad(chain.seq + 1, f"records {chain.seq + 1} to {expect_head[0]} are missing at the end: the running writer wrote them.")
    if chain.seq < last.seq:
        raise _Bad(chain.seq + 1, f"records {chain.seq + 1} to {last.seq} are missing at the end: a checkpoint names record {last.seq}.")
    if expect_head is not None and chain.seq == expect_head[0] and chain.head != expect_head[1]:
        raise _Bad(last.seq + 1, f"records after {last.seq} were rewritten: the running writer remembers another head.")
    if noted.problem:
        raise _Bad(None, f"{noted.problem}.")


def _broken(last_good: int, path: Path, error: Exception) -> tuple[int | None, str]:
    if isinstance(error, FileNotFoundError):
        return None, f"there is no audit log at {path}."
    if last_good:
        return last_good + 1, f"the file cannot be read beyond record {last_good}: {reason(error)}."
    return None, f"the file cannot be read: {reason(error)}."
