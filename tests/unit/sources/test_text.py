"""What others wrote becomes text that can be kept."""

from __future__ import annotations

import pytest

from console.sources.text import known, plain


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("fine", "fine"),
        (12, "12"),
        (True, ""),
        (None, ""),
        ({"a": 1}, ""),
        (10**40, ""),
        ("a\x1b[31mb\x00\n", "a\ufffd[31mb\ufffd\ufffd"),
        ("\udcff\u2028", "\ufffd\ufffd"),
        ("x" * 1000, "x" * 10),
    ],
)
def test_foreign_values_become_bounded_text(value: object, expected: str) -> None:
    assert plain(value, 10 if isinstance(value, str) and len(value) > 100 else 200) == expected


def test_what_is_plain_can_be_encoded() -> None:
    plain("\ud800 \udfff").encode("utf-8")


def test_what_is_kept_of_names_takes_any_value_and_holds_no_long_text() -> None:
    values: list[object] = [[], {}, None, True, 7, "x\x1b"]
    assert [known(value) for value in values] == ["", "", "", "", "7", "x\ufffd"]
    assert known("y" * 1_000_000) == "y" * 200 == known("y" * 1_000_001)
