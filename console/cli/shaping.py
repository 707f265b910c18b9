"""A table as a person asked for it: some columns, another order, no heads."""

from __future__ import annotations

import re

from console.cli.syntax import Shape
from console.cli.terminal.plain import plain
from console.cli.terminal.tables import Table
from console.domain.errors import UsageProblem

_AMOUNT = re.compile(r"<?\$?(-?[\d,]*\.?\d+) ?(ms|s|min|h|d|KiB|MiB|GiB|k|M|%)?(?: |$)")
_SCALES = {"ms": 1e-3, "min": 60, "h": 3600, "d": 86_400, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "k": 1e3, "M": 1e6}
_NOTHING = frozenset({"", "-", "unknown", "unpriced"})


def shaped(table: Table, shape: Shape) -> Table:
    """Return the table in this shape. Raises UsageProblem for a column that it does not have."""
    heads = [column.header for column in table.columns]
    rows = table.rows
    if shape.sort:
        at = _place(shape.sort.removeprefix("-"), heads)
        known = [row for row in rows if row[at].plain not in _NOTHING]
        unknown = [row for row in rows if row[at].plain in _NOTHING]  # neither the least nor the most
        rows = [*sorted(known, key=lambda row: _order(row[at].plain), reverse=shape.sort.startswith("-")), *unknown]
    wanted = [_place(name, heads) for name in shape.columns.split(",")] if shape.columns else list(range(len(heads)))
    columns = [table.columns[at] for at in wanted]
    return Table(table.title, columns, [[row[at] for at in wanted] for row in rows], has_heads=not shape.no_headers)


def _place(name: str, heads: list[str]) -> int:
    wanted = name.strip().lower()
    found = [at for at, head in enumerate(heads) if head and head.lower() == wanted]
    found = found or [at for at, head in enumerate(heads) if wanted and head.lower().startswith(wanted)]
    if not found or (len(found) > 1 and heads[found[0]].lower() != wanted):
        names = ", ".join(head.lower() for head in heads if head)
        raise UsageProblem(f"There is no column {plain(name.strip(), 40)!r}.", f"Columns are: {names}.")
    return found[0]


def _order(cell: str) -> tuple[int, float, str]:
    """Amounts by their size, in one unit, before words by their letters. What follows an amount decides between equal ones."""
    at, total = 0, -1e-9 if cell.startswith("<") else 0.0
    while at < len(cell) and (found := _AMOUNT.match(cell, at)):
        total, at = total + float(found[1].replace(",", "")) * _SCALES.get(found[2] or "", 1.0), found.end()
    return (0, total, cell[at:]) if at else (1, 0.0, cell.lower())
