"""Lines at a terminal's width."""

from __future__ import annotations

import pytest

from console.cli.terminal.folding import fold


def test_words_go_on_under_where_they_began() -> None:
    line = f"hook claude-code  not available, {'because of this ' * 8}"
    first, *others = fold(line, 60).split("\n")
    assert first.startswith("hook claude-code  not available,") and others
    assert all(each.startswith(" " * 18) and each[18] != " " for each in others)
    assert all(len(each) <= 60 for each in (first, *others))
    assert " ".join(" ".join([first, *others]).split()) == " ".join(line.split())


@pytest.mark.parametrize(("line", "under"), [("source codex: polling. " * 6, 2), (" " * 16 + "tried: own tree below " * 6, 16)])
def test_a_line_without_a_name_in_front_goes_on_a_little_further_in(line: str, under: int) -> None:
    _, *others = fold(line, 80).split("\n")
    assert others and all(len(each) - len(each.lstrip()) == under for each in others)


def test_a_column_that_would_leave_no_room_is_none_and_a_long_path_stays_whole() -> None:
    assert fold("n" * 50 + "  " + "words " * 20, 80).split("\n")[1].startswith("  words")
    assert "/" + "p" * 200 in fold("a path /" + "p" * 200 + " and more", 80)


@pytest.mark.parametrize("width", [None, 80])
def test_what_fits_and_what_a_program_reads_is_left_as_it_is(width: int | None) -> None:
    line = "a  b " * (100 if width is None else 2)
    assert fold(line, width) == line
    assert fold("", width) == ""
