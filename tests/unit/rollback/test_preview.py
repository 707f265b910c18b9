from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.rollback.preview import DIFF_BYTES, DIFF_ROWS, DiffRow, compare


def test_rows_are_side_by_side_with_numbers() -> None:
    now, before = b"a\nnew\nc\nd\nadded\n", b"a\nold\nc\ngone\nd\n"
    assert compare(now, before, cut=False).rows == (
        DiffRow("", 1, "a", 1, "a"),
        DiffRow("~", 2, "new", 2, "old"),
        DiffRow("", 3, "c", 3, "c"),
        DiffRow("+", None, "", 4, "gone"),
        DiffRow("", 4, "d", 5, "d"),
        DiffRow("-", 5, "added", None, ""),
        DiffRow("", 6, "", 6, ""),
    )


def test_nothing_on_one_side() -> None:
    assert [r.sign for r in compare(b"", b"a\nb", cut=False).rows] == ["+", "+"]
    assert [r.sign for r in compare(b"a\nb", b"", cut=False).rows] == ["-", "-"]
    assert compare(b"", b"", cut=False).rows == ()


def test_binary_is_said_and_not_shown() -> None:
    diff = compare(b"a\0b", b"text", cut=False)
    assert diff.binary and diff.rows == ()


def test_other_bytes_and_hostile_characters_are_kept_visible() -> None:
    [row] = compare(b"\xff\xfe", "\u202e<b>\x1b[31m".encode(), cut=False).rows
    assert (row.left, row.right) == ("\\xff\\xfe", "\u202e<b>\x1b[31m")


@given(st.lists(st.sampled_from("abc"), max_size=30), st.lists(st.sampled_from("abc"), max_size=30))
def test_both_sides_can_be_read_back(left: list[str], right: list[str]) -> None:
    rows = compare("\n".join(left).encode(), "\n".join(right).encode(), cut=False).rows
    assert [r.left for r in rows if r.left_no is not None] == left
    assert [r.right for r in rows if r.right_no is not None] == right
    assert [r.left_no for r in rows if r.left_no is not None] == list(range(1, len(left) + 1))
    assert all(r.left == r.right for r in rows if r.sign == "")
    assert all(r.left != r.right for r in rows if r.sign == "~")


def test_a_change_deep_in_a_long_file_is_shown() -> None:
    lines = [f"line {i}" for i in range(9000)]
    changed = [*lines]
    changed[7000] = "changed"
    diff = compare("\n".join(changed).encode(), "\n".join(lines).encode(), cut=False)
    assert diff.truncated
    assert [(r.left_no, r.left, r.right) for r in diff.rows if r.sign] == [(7001, "changed", "line 7000")]
    assert len(diff.rows) == 81


def hostile() -> list[tuple[bytes, bytes]]:
    chance = random.Random(1)

    def lines(kinds: int, count: int) -> bytes:
        return "\n".join(str(chance.randrange(kinds)) for _ in range(count)).encode()

    return [
        (b"\n" * DIFF_BYTES, b"x" + b"\n" * (DIFF_BYTES - 1)),
        (lines(100, 1000), lines(100, 1000)),
        (lines(3, 190), lines(3, 190)),
        (lines(10**6, 30_000), lines(10**6, 30_000)),
        (b"a" * DIFF_BYTES, b"b" * DIFF_BYTES),
    ]


@pytest.mark.parametrize("number", range(5))
def test_hostile_contents_stay_bounded(number: int) -> None:
    now, before = hostile()[number]
    start = time.thread_time()
    diff = compare(now, before, cut=False)
    assert time.thread_time() - start < 20
    assert len(diff.rows) <= DIFF_ROWS
    assert all(len(r.left) <= 2000 and len(r.right) <= 2000 for r in diff.rows)
    assert any(r.sign for r in diff.rows)


def test_cut_is_said() -> None:
    assert compare(b"a", b"b", cut=True).truncated
    assert not compare(b"a", b"b", cut=False).truncated
