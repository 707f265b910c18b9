"""Whole lines out of hostile bytes, and texts of bounded length out of anything."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from console.sources.activity.program_stream import MOST_LINE, MOST_TEXT, Lines, bounded, count, encoded, output_event, parsed, part, word


@given(st.lists(st.binary(max_size=20).filter(lambda b: b"\n" not in b and b.strip() != b""), max_size=10), st.integers(1, 7))
def test_lines_are_the_same_however_they_come(lines: list[bytes], step: int) -> None:
    data = b"".join(line + b"\n" for line in lines)
    reader = Lines()
    found = [line for at in range(0, len(data), step) for line in reader.feed(data[at : at + step])]
    assert [line for _, line in found] == lines
    assert [offset for offset, _ in found] == [len(b"".join(x + b"\n" for x in lines[: n + 1])) for n in range(len(lines))]
    assert reader.whole == len(data)


def test_a_line_without_an_end_takes_no_room_and_the_next_one_is_read() -> None:
    reader, piece = Lines(), b"x" * (1 << 20)
    for _ in range(100):
        assert list(reader.feed(piece)) == []
        assert len(reader._held) <= MOST_LINE + len(piece)
    assert [line for _, line in reader.feed(b"end\nnext\n")] == [b"next"]
    assert reader.too_long == 1
    assert list(reader.feed(b"y" * (MOST_LINE + 1) + b"\nlast\n"))[0][1] == b"last" and reader.too_long == 2


def test_what_is_no_object_is_none() -> None:
    for line in (b"", b"words", b"[1]", b'"x"', b"{", b"{" * 100_000, b'{"a":' * 100_000, b"\xff{", b'{"a": 1', b"NaN"):
        assert parsed(line) is None
    assert parsed(b' {"a": 1} ') == {"a": 1}
    assert output_event(b"\xff\x1b[31m")["text"] == "\\xff\x1b[31m"


def test_fields_of_any_type_become_bounded_ones() -> None:
    assert bounded("x" * (MOST_TEXT + 5)) == "x" * MOST_TEXT + "… (cut)" and bounded(None) == "" and bounded(7) == "7"
    assert bounded("a\ud800") == "a\\ud800"
    assert bounded({"deep": ["x"] * 100_000}).endswith("… (cut)")
    assert part({"a": []}, "a") == {} and part(None, "a") == {} and word({"a": 1}, "a") == "" and len(word({"a": "y" * 999}, "a")) < 300
    odd: list[object] = [3, None, True, 1.5, "1", []]
    assert [count({"a": value}, "a") for value in odd] == [3, 0, -1, -1, -1, -1]


def test_messages_are_one_line_each() -> None:
    assert [json.loads(line) for line in encoded([{"a": "x\ny"}, {"b": 1}]).splitlines()] == [{"a": "x\ny"}, {"b": 1}]
