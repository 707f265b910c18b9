"""The guard's line format."""

from __future__ import annotations

import pytest

from console.domain.guard import CAUSES, HOLD_S, LINE_LIMIT, decode, encode


def test_a_line_comes_back_as_it_went() -> None:
    message = {"op": "press", "reason": "ä\n\x1b", "scope": ["a", "b"]}
    line = encode(message)
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert decode(line) == message


def test_a_long_line_is_refused_both_ways() -> None:
    with pytest.raises(ValueError, match="too long"):
        encode({"reason": "x" * LINE_LIMIT})
    with pytest.raises(ValueError, match="too long"):
        decode(b"{" + b" " * LINE_LIMIT + b"}")


@pytest.mark.parametrize("line", [b"", b"[]", b"1", b"null", b'"x"', b"{", b"\xff\xfe", b"NaN"])
def test_anything_but_an_object_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError):
        decode(line)


def test_causes_are_named_once_and_the_hold_is_short() -> None:
    assert len(CAUSES) == len(set(CAUSES)) == 8
    assert HOLD_S < 1
