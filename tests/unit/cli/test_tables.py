"""Tables: a cell that is too wide goes on in the next line."""

from __future__ import annotations

import pytest

from console.cli.terminal import out
from console.cli.terminal.tables import Text, cell_width, lines, new_table


def test_a_cell_that_is_too_wide_loses_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    table = new_table("ID", "PATH")
    path = "".join(f"/folder-{n}" for n in range(60))
    table.add_row("r1", path)
    out.show(table)
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["ID", "PATH"]
    assert "".join(row.removeprefix("r1").strip() for row in rows) == path


@pytest.mark.parametrize(("room", "as_table"), [(120, True), (40, False)])
def test_where_words_would_be_broken_each_row_is_a_paragraph(
    room: int, as_table: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(out, "_width", lambda: room)
    table = new_table("KILL", "WHEN", "REASON", "BY")
    table.add_row("20261122-215930-d009d607", "2026-11-22T21:59:30+00:00", out.words("agents write to [bold]production"), "")
    out.show(table)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= room and (lines[0].split() == ["KILL", "WHEN", "REASON", "BY"]) is as_table
    text = " ".join(" ".join(lines).split())
    for words in ("20261122-215930-d009d607", "2026-11-22T21:59:30+00:00", "agents write to [bold]production"):
        assert words in text, lines
    assert as_table or ("reason agents" in text and " by " not in text), "a cell with nothing in it is not told"


def test_a_hash_alone_makes_no_paragraphs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(out, "_width", lambda: 60)
    table = new_table("STEP", "STATUS", "DETAIL")
    table.add_row("evidence", "ok", f"manifest sha256 {'9c97' * 16}")
    out.show(table)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["STEP", "STATUS", "DETAIL"] and "9c97" * 16 in "".join("".join(lines[1:]).split())


def test_wide_letters_are_counted_as_a_terminal_shows_them(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(out, "_width", lambda: 30)
    table = new_table("NAME", "STATE")
    table.add_row(out.words("調査エージェント調査 エージェント"), "running")
    table.add_row("e\u0301a", "killed")
    out.show(table)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(cell_width, lines)) <= 30
    assert len({cell_width(line[: line.index(word)]) for line in lines for word in ("STATE", "running", "killed") if word in line}) == 1


def test_colours_are_for_a_terminal_that_has_them(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(out, "is_terminal", lambda: True)
    for term, no_color, wanted in (
        ("xterm", "", "\x1b[1;31mno\x1b[0m words\n"),
        ("xterm", "1", "no words\n"),
        ("dumb", "", "no words\n"),
    ):
        monkeypatch.setenv("TERM", term)
        monkeypatch.setenv("NO_COLOR", no_color)
        out.show(Text("no", "bold red") + Text(" words"))
        assert capsys.readouterr().out == wanted


def test_a_styled_text_is_broken_between_words_and_keeps_its_styles() -> None:
    broken = list(lines(Text("one two", "red") + Text(" three" + "x" * 9 + "\n\nfour"), 8))
    assert [line.plain for line in broken] == ["one two", "threexxx", "xxxxxx", "", "four"]
    assert broken[0].painted(coloured=True) == "\x1b[31mone two\x1b[0m" and "\x1b" not in broken[1].painted(coloured=True)
