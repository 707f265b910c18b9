"""Hostile text is shown literally, visibly, and bounded."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.gui.widgets.safe_text import is_plain, safe_lines, safe_text, tooltip

TABLE = {
    "refund-drafter": "refund-drafter",
    "": "",
    "<b>APPROVED</b>": "<b>APPROVED</b>",
    "x<br>y & z": "x<br>y & z",
    "\u202egnitset": "\\u202egnitset",
    "a\u2066b\u2069c": "a\\u2066b\\u2069c",
    "zero\u200bwidth": "zero\\u200bwidth",
    "\u200d\ufeff\u00ad": "\\u200d\\ufeff\\xad",
    "\x1b[31mred\x1b[0m": "\\x1b[31mred\\x1b[0m",
    "one\r\ntwo\x00": "one\\x0d\\x0atwo\\x00",
    "tab\there": "tab\\x09here",
    "\x85\x9b": "\\x85\\x9b",
    "line\u2028sep\u2029": "line\\u2028sep\\u2029",
    "nb\u00a0sp\u3000wide": "nb\\xa0sp\\u3000wide",
    "hangul\u3164filler": "hangul\\u3164filler",
    "braille\u2800blank": "braille\\u2800blank",
    "flag\ufe0f": "flag\\ufe0f",
    "tag\U000e0041": "tag\\U000e0041",
    "private\ue000": "private\\ue000",
    "lone\ud800": "lone\\ud800",
    "p\u0430ypal": "p\\u0430ypal",
    "\u043f\u0440\u0438\u0432\u0435\u0442 mir": "\u043f\u0440\u0438\u0432\u0435\u0442 mir",
    "caf\u00e9": "caf\u00e9",
    "cafe\u0301": "cafe\u0301",
    "z" + "\u0301" * 1000: "z\u0301\u0301[+998 marks]",
    "\u65e5\u672c\u8a9e": "\u65e5\u672c\u8a9e",
    "file:///etc/passwd": "file:///etc/passwd",
}


@pytest.mark.parametrize("raw", TABLE, ids=[repr(k)[:30] for k in TABLE])
def test_table(raw: str) -> None:
    assert safe_text(raw) == TABLE[raw]


@given(st.text(max_size=400))
def test_nothing_hidden_remains_and_it_stays_bounded(raw: str) -> None:
    shown = safe_text(raw, 60)
    assert len(shown) <= 62
    inner = shown[1:-1] if shown[:1] == "\u2068" else shown
    assert not [c for c in inner if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")]
    assert "\n" not in inner


@given(st.text(max_size=100))
def test_showing_twice_changes_nothing(raw: str) -> None:
    assert safe_text(safe_text(raw, 500), 5000) == safe_text(raw, 500)


def test_long_text_is_cut_fast_and_says_so() -> None:
    assert safe_text("n" * 100_000) == "n" * 199 + "…"
    assert len(safe_text("\u202e" * 100_000)) == 200


def test_right_to_left_letters_cannot_turn_what_stands_beside_them() -> None:
    shown = safe_text("\u05e9\u05dc\u05d5\u05dd")
    assert shown[0] == "\u2068" and shown[-1] == "\u2069"
    assert safe_text(shown) == shown


def test_only_isolates_of_its_own_making_are_kept() -> None:
    assert safe_text("\u2068plain\u2069") == "\\u2068plain\\u2069"
    assert safe_text("\u2068\u05e9\u202e\u2069").count("\\u202e") == 1


def test_lines_keep_line_feeds_only() -> None:
    assert safe_lines("a\n\tb\r\n\x1b[2K") == "a\n    b\\x0d\n\\x1b[2K"


def test_tooltips_are_literal() -> None:
    assert tooltip('<img src="x">') == "<qt>&lt;img src=&quot;x&quot;&gt;</qt>"
    assert tooltip("") == ""


def test_is_plain() -> None:
    assert is_plain("hello") and not is_plain("he\u200bllo")
