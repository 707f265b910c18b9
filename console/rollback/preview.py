"""What a restore would do, before it does it: side-by-side diff and sentences, bounded whatever the files hold."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from console.domain.rollback import RollbackRecord

DIFF_BYTES = 256 * 1024
"""Of each side."""
DIFF_ROWS = 2000
_COMPARED_LINES = 1000  # of what differs, each side: SequenceMatcher is worse than quadratic on hostile input
_LINE_CHARS = 2000
_CONTEXT = 40


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One row: left is the file on disk now, right what a restore puts back."""

    sign: str
    """'' equal, '-' goes away, '+' comes back, '~' both, changed."""
    left_no: int | None = None
    left: str = ""
    right_no: int | None = None
    right: str = ""


@dataclass(frozen=True, slots=True)
class Diff:
    """Rows, or why there are none."""

    rows: tuple[DiffRow, ...] = ()
    binary: bool = False
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class RollbackDetail:
    """Everything about one record (RollbackDetailView on the wire)."""

    record: RollbackRecord
    conflict: str
    """Why a restore would be refused, or empty."""
    before_sha256: str | None
    now_sha256: str | None
    """What the operator sees on disk: goes back as ``expect_now_sha256``. None: nothing is there."""
    binary: bool
    truncated: bool
    diff: tuple[DiffRow, ...]
    dry_run: tuple[str, ...]
    """Sentences, in order."""


def compare(now: bytes, before: bytes, *, cut: bool) -> Diff:
    """The diff from ``now`` to ``before``, each at most DIFF_BYTES long; ``cut`` says that one of them goes on."""
    if b"\0" in now or b"\0" in before:
        return Diff(binary=True, truncated=cut)
    left, right = _lines(now), _lines(before)
    rows, shortened = _bounded(_rows(left, right))
    return Diff(rows, truncated=cut or shortened or max(len(left), len(right)) > DIFF_ROWS and len(rows) >= DIFF_ROWS)


def _lines(data: bytes) -> list[str]:
    text = data.decode("utf-8", "backslashreplace")
    return text.split("\n") if text else []


def _rows(left: list[str], right: list[str]) -> Iterator[DiffRow]:
    head = _common(left, right)
    tail = _common(left[head:][::-1], right[head:][::-1])
    yield from _equal(left[:head], 0, 0)
    yield from _middle(left[head : len(left) - tail], right[head : len(right) - tail], head)
    yield from _equal(left[len(left) - tail :], len(left) - tail, len(right) - tail)


def _common(a: list[str], b: list[str]) -> int:
    count = 0
    for one, other in zip(a, b, strict=False):
        if one != other:
            break
        count += 1
    return count


def _middle(left: list[str], right: list[str], start: int) -> Iterator[DiffRow]:
    if max(len(left), len(right)) > _COMPARED_LINES:
        yield from _changed(left, right, start, start)
        return
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=True)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            yield from _equal(left[a:b], start + a, start + c)
        else:
            yield from _changed(left[a:b], right[c:d], start + a, start + c)


def _equal(lines: list[str], left: int, right: int) -> Iterator[DiffRow]:
    for index, line in enumerate(lines, 1):
        yield DiffRow("", left + index, line, right + index, line)


def _changed(old: list[str], new: list[str], left: int, right: int) -> Iterator[DiffRow]:
    for index, (a, b) in enumerate(zip_longest(old, new), 1):
        if b is None:
            yield DiffRow("-", left_no=left + index, left=a)
        elif a is None:
            yield DiffRow("+", right_no=right + index, right=b)
        else:
            yield DiffRow("~", left + index, a, right + index, b)


def _bounded(rows: Iterator[DiffRow]) -> tuple[tuple[DiffRow, ...], bool]:
    """Long lines and many rows cut; far from any change, equal rows go first (the line numbers show the gap)."""
    everything = list(rows)
    shortened = False
    if len(everything) > DIFF_ROWS:
        everything = _near_changes(everything)
        shortened = True
    cut = []
    for row in everything[:DIFF_ROWS]:
        if len(row.left) > _LINE_CHARS or len(row.right) > _LINE_CHARS:
            row = DiffRow(row.sign, row.left_no, row.left[:_LINE_CHARS], row.right_no, row.right[:_LINE_CHARS])
            shortened = True
        cut.append(row)
    return tuple(cut), shortened


def _near_changes(rows: list[DiffRow]) -> list[DiffRow]:
    keep = bytearray(len(rows))
    covered = 0
    for index, row in enumerate(rows):
        if row.sign:
            start, end = max(covered, index - _CONTEXT), min(len(rows), index + _CONTEXT + 1)
            keep[start:end] = b"\1" * (end - start)
            covered = max(covered, index)
    return [row for row, kept in zip(rows, keep, strict=True) if kept]
