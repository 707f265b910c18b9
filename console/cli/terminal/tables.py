"""Tables and styled text as verbs print them: bold heads, no frame, and cells that go on in the next line rather than lose their end.

Standard library only: a library for it takes as long to load as Python needs for six starts.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

WHOLE = frozenset({"AGENT", "SESSION", "KILL", "ID", "RECORD", "ENTRY", "PID:START"})
"""Columns that people copy into the next command. They are never broken over two lines."""
_LONG = 24
_GAP = 2
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}


class Text:
    """Words with a style ("bold red", "" for none); never markup."""

    def __init__(self, text: str, style: str = "") -> None:
        self.parts = [(text, style)] if text else []

    @property
    def plain(self) -> str:
        """Without styles."""
        return "".join(text for text, _ in self.parts)

    def __add__(self, other: Text) -> Text:
        return Text("").join((self, other))

    def __bool__(self) -> bool:
        return bool(self.parts)

    def join(self, texts: Iterable[Text]) -> Text:
        """The texts with this one between them."""
        made = Text("")
        for number, text in enumerate(texts):
            made.parts += (self.parts if number else []) + text.parts
        return made

    def cut(self, start: int, end: int) -> Text:
        """Its letters from ``start`` up to ``end``."""
        made, at = Text(""), 0
        for text, style in self.parts:
            if kept := text[max(start - at, 0) : max(end - at, 0)]:
                made.parts.append((kept, style))
            at += len(text)
        return made

    def painted(self, *, coloured: bool) -> str:
        """As a terminal takes it; without colours its letters alone."""
        if not coloured:
            return self.plain
        return "".join(f"{_start(style)}{text}\x1b[0m" if style else text for text, style in self.parts)


def _start(style: str) -> str:
    """The control sequence that begins it (ECMA-48, select graphic rendition)."""
    return f"\x1b[{';'.join(_CODES[word] for word in style.split())}m"


Cell = str | Text


@dataclass(slots=True)
class Column:
    """One column of a table."""

    header: str
    no_wrap: bool = False
    right: bool = False
    cut: bool = False
    """Whether it loses its end, with three dots, where there is no room for it."""
    width: int | None = None
    min_width: int | None = None


@dataclass(slots=True)
class Table:
    """Rows below heads."""

    title: Text = field(default_factory=lambda: Text(""))
    columns: list[Column] = field(default_factory=list)
    rows: list[list[Text]] = field(default_factory=list)
    has_heads: bool = True

    def add_column(self, header: str, **said: Any) -> None:
        """One more column at the right; fields: those of `Column`."""
        self.columns.append(Column(header, **said))

    def add_row(self, *cells: Cell) -> None:
        """One more row; cells that are left out are empty."""
        row = [cell if isinstance(cell, Text) else Text(cell) for cell in cells]
        self.rows.append(row + [Text("")] * (len(self.columns) - len(row)))


def new_table(*names: str, title: Text | None = None) -> Table:
    """Return an empty table with these columns. The caller may add others."""
    table = Table(title or Text(""))
    for name in names:
        table.add_column(name, no_wrap=name in WHOLE)
    return table


def lines(thing: Text | Table, room: int) -> Iterator[Text]:
    """Yield the table or text in lines of ``room`` columns.

    A table whose words would be broken becomes one paragraph for each row.
    """
    if isinstance(thing, Text):
        yield from _wrapped(thing, room)
        return
    if thing.title:
        yield thing.title
    least, most = _widths(thing)
    if thing.rows and sum(least) + _GAP * (len(least) - 1) > room:
        yield from _paragraphs(thing, room)
        return
    widths = _fitted(least, most, room - _GAP * (len(most) - 1))
    if thing.has_heads:
        yield from _row([Text(column.header, "bold") for column in thing.columns], thing.columns, widths)
    for row in thing.rows:
        yield from _row(row, thing.columns, widths)


def cell_width(text: str) -> int:
    """Columns that a terminal needs for it (Unicode Standard Annex 11)."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text)


def _paragraphs(table: Table, room: int) -> Iterator[Text]:
    """Each row as a paragraph, with the heads before the cells; a cell with nothing in it is left out."""
    heads = [column.header.lower() for column in table.columns]
    for first, *others in table.rows:
        yield from _wrapped(first, room)
        told = [Text(f"{head} " if head else "", "dim") + cell for head, cell in zip(heads[1:], others, strict=True) if cell]
        for line in _wrapped(Text("; ").join(told), room - 2):
            yield Text("  ") + line


def _widths(table: Table) -> tuple[list[int], list[int]]:
    """Of each column the least that breaks no word in it, but for hashes and paths, and what its longest line takes."""
    least, most = list[int](), list[int]()
    for number, column in enumerate(table.columns):
        texts = [column.header, *(row[number].plain for row in table.rows)]
        widest = column.width or max(cell_width(line) for text in texts for line in text.split("\n"))
        least.append(_least(column, texts, widest))
        most.append(max(widest, least[-1]))
    return least, most


def _least(column: Column, texts: list[str], widest: int) -> int:
    if column.cut:
        return max(1, column.min_width or 0)
    if column.width or column.no_wrap:
        return widest
    return max(column.min_width or 0, *(min(_LONG, cell_width(word)) for text in texts for word in text.split() or [""]))


def _fitted(least: list[int], most: list[int], room: int) -> list[int]:
    """Each column's columns: the widest give first."""
    widths = list(most)
    while sum(widths) > room:
        widest = max((width for width, low in zip(widths, least, strict=True) if width > low), default=0)
        if not widest:
            break
        for number, (width, low) in enumerate(zip(widths, least, strict=True)):
            if width == widest and width > low and sum(widths) > room:
                widths[number] -= 1
    return widths


def _row(cells: list[Text], columns: list[Column], widths: list[int]) -> Iterator[Text]:
    pieces = [list(_cell(cell, column, width)) for cell, column, width in zip(cells, columns, widths, strict=True)]
    for number in range(max(map(len, pieces), default=0)):
        line, pad = Text(""), 0
        for piece, column, width in zip(pieces, columns, widths, strict=True):
            text = piece[number] if number < len(piece) else Text("")
            left = width - cell_width(text.plain)
            before, after = (left, 0) if column.right else (0, left)
            if text:
                line = line + Text(" " * (pad + before)) + text
                pad = after + _GAP
            else:
                pad += width + _GAP
        yield line


def _cell(cell: Text, column: Column, width: int) -> Iterator[Text]:
    if column.cut and cell_width(cell.plain) > width:
        yield cell.cut(0, max(width - 1, 0)) + Text("…")
        return
    yield from _wrapped(cell, width)


def _wrapped(text: Text, room: int) -> Iterator[Text]:
    """Lines of at most ``room`` columns, broken between words; a word that is longer is broken where the line ends."""
    at = 0
    for line in text.plain.split("\n"):
        if cell_width(line) <= room:
            yield text.cut(at, at + len(line))
        else:
            for start, end in _breaks(line, max(room, 1)):
                yield text.cut(at + start, at + end)
        at += len(line) + 1


def _breaks(line: str, room: int) -> Iterator[tuple[int, int]]:
    """Where each of its lines begins and ends."""
    start = 0
    while cell_width(line[start:]) > room:
        end, used = start, 0
        while (used := used + cell_width(line[end])) <= room:
            end += 1
        end = max(end, start + 1)
        blank = line.rfind(" ", start, end + 1)
        end = blank if blank > start else end
        yield start, len(line[:end].rstrip()) or end
        start = end
        while line[start : start + 1] == " ":
            start += 1
    if line[start:]:
        yield start, len(line)
