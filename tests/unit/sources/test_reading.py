"""What readers of transcripts share: the lines that count are found, and only what is asked for is taken of them."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from console.sources import reading
from console.sources.reading import Reading, count, lines_with, records

MARKS = (b'put_tokens"', b'"meta"')
PIECES = (b"put_tokens", b'"', b'put_tokens"', b'"meta"', b"\0", b"\n", b"p", b"put_")


class Record(msgspec.Struct):
    type: object = None
    used: object = None


@example(b'put_tokens"')
@example(b'\nput_tokens""meta"\n"meta"')
@given(st.lists(st.sampled_from(PIECES)).map(b"".join))
def test_lines_with_a_mark_are_found_in_order_with_and_without_the_c_library(data: bytes) -> None:
    for marks in (MARKS[:1], MARKS):
        expected = [line for line in data.split(b"\n") if any(mark in line for mark in marks)]
        assert list(lines_with(data, *marks)) == expected
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reading, "_libc_memmem", lambda: None)
            assert list(lines_with(data, *marks)) == expected


def read(*lines: bytes) -> tuple[list[Record], int]:
    seen = Reading()
    return list(records(b"\n".join(lines) + b"\n", b'"used"', of=msgspec.json.Decoder(Record), seen=seen)), seen.odd


def test_of_a_record_only_the_fields_asked_for_are_taken() -> None:
    more = json.dumps({"type": "a", "text": "x" * 1000, "used": {"input": 1}, "deep": [[[]]]}).encode()
    assert read(more, b'{"type": "unmarked"}') == ([Record("a", {"input": 1})], 0)


def test_what_only_a_tolerant_reader_takes_is_taken_and_the_rest_is_counted() -> None:
    half, nan = b'{"type": "\\ud800", "used": 1}', b'{"type": NaN, "used": 2}'
    found, odd = read(
        half, nan, b'{"used": ', b'["used"]', b'{"used": "' + b"x" * reading.TOLERANT_MAX + b'"}', b'{"used":' + b"[" * 100_000
    )
    assert [one.used for one in found] == [1, 2] and odd == 4


def test_what_a_tolerant_reader_takes_can_be_stored() -> None:
    (one,), odd = read(b'{"type": ["\\ud800", "\xc3\xa9"], "used": {"k\\udc00": "\\ud83d\\ude00"}}')
    assert (one.type, one.used, odd) == (["?", "\xe9"], {"k?": "\U0001f600"}, 0)


def test_a_count_is_a_whole_number_that_a_model_can_have_given() -> None:
    record = {"a": 7, "float": 7.0, "null": None}
    assert [count(record, "a"), count(record, "float"), count(record, "null", "a"), count(record, "none"), count(7, "a")] == [7, 7, 7, 0, 0]
    for bad in (True, -1, "7", 1e300, float("nan"), [7]):
        with pytest.raises(ValueError, match="no count"):
            count({"a": bad}, "a")
