"""Tables as verbs print them: bold heads, no frame, and cells that fold rather than lose their end."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

WHOLE = frozenset({"AGENT", "SESSION", "KILL", "ID", "RECORD", "ENTRY", "PID:START"})
"""Columns of what somebody copies to the next command: never broken."""
_LONG = 24
_GAP = 2


def new_table(*names: str) -> Table:
    """An empty table with these columns; other columns are added by whoever needs them."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold", no_wrap=name in WHOLE)
    return table


def fitting(thing: RenderableType, console: Console) -> Iterator[RenderableType]:
    """It, or, where a table is so wide that its words would be broken, each of its rows as a paragraph with the heads before the cells."""
    if not isinstance(thing, Table) or not thing.rows or _least(thing) <= console.width:
        yield thing
        return
    if thing.title:
        yield Text(str(thing.title), "bold")
    heads = [str(column.header).lower() for column in thing.columns]
    for first, *others in zip(*(tuple(column.cells) for column in thing.columns), strict=True):
        yield _text(first)
        parts = [Text(f"{head} " if head else "", "dim") + _text(cell) for head, cell in zip(heads[1:], others, strict=True) if _text(cell)]
        if parts:
            yield Padding(Text("; ").join(parts), (0, 0, 0, 2))


def _least(table: Table) -> int:
    """Columns in which no word of it is broken, but for hashes and paths: those may go on in the next line."""
    return sum(_width_of(column) for column in table.columns) + _GAP * (len(table.columns) - 1)


def _width_of(column: Column) -> int:
    if column.width is not None:
        return column.width
    cells = [_text(column.header), *map(_text, column.cells)]
    if column.no_wrap:
        return max(cell.cell_len for cell in cells)
    return max(min(_LONG, len(word)) for cell in cells for word in cell.plain.split() or [""])


def _text(cell: RenderableType) -> Text:
    return cell.copy() if isinstance(cell, Text) else Text(str(cell))
