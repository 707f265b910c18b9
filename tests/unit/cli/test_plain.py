"""Hostile text on a terminal."""

from __future__ import annotations

import unicodedata
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.cli.terminal.plain import moment, plain, plain_block


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[31mred\x1b]0;title\x07", "\\e[31mred\\e]0;title\\x07"),
        ("a\nb\rc\td", "a\\nb\\rc\\td"),
        ("\u202egpj.exe", "\\u202egpj.exe"),
        ("a\u200bb\ufeffc\u2066d", "a\\u200bb\\ufeffc\\u2066d"),
        ("\udcff\udc80", "\\udcff\\udc80"),
        ("\u2028\u2029\x85\xa0", "\\u2028\\u2029\\x85\\xa0"),
        ("\U000e0041\ue000", "\\U000e0041\\ue000"),
        ("\x00\x7f\x9b31m", "\\x00\\x7f\\x9b31m"),
        ("[bold]markup[/bold] :smile:", "[bold]markup[/bold] :smile:"),
        ("grüße 世界 🙂", "grüße 世界 🙂"),
    ],
)
def test_what_acts_on_a_terminal_is_shown_instead(hostile: str, shown: str) -> None:
    assert plain(hostile) == shown


def test_stacked_marks_are_cut_and_plain_accents_stay() -> None:
    assert plain("e\u0301") == "e\u0301"
    assert plain("e" + "\u0301" * 50).count("\u0301") == 3


def test_long_text_is_cut_to_the_limit() -> None:
    assert plain("x" * 100_000, 50) == "x" * 49 + "…"
    assert len(plain("\x1b" * 100_000, 50)) == 50
    assert plain("x" * 50, 50) == "x" * 50
    assert plain(5) == "5"


def test_a_block_keeps_its_lines() -> None:
    assert plain_block("a\r\nb\n\tc\x1b[2J\r") == "a\nb\n\tc\\e[2J\\r"


@given(st.text(alphabet=st.characters(), max_size=300))
def test_nothing_hidden_ever_comes_through(text: str) -> None:
    for char in plain(text) + plain_block(text).replace("\n", "").replace("\t", ""):
        assert char == " " or unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
    assert len(plain(text)) <= 200


@pytest.mark.parametrize("at", [float("nan"), float("inf"), -1e300, 1e300])
def test_a_moment_that_no_calendar_has_is_a_question_mark(at: float) -> None:
    assert moment(at) == "?"


def test_a_moment_carries_its_offset() -> None:
    text = moment(1_700_000_000.9, "seconds")
    assert datetime.fromisoformat(text).timestamp() == 1_700_000_000 and len(text) == len("2023-11-14T22:13:20+00:00")
    assert len(moment(1_700_000_000.0)) == len("2023-11-14T22:13+00:00")
