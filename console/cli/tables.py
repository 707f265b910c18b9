"""Tables as verbs print them: bold heads, no frame, and cells that fold rather than lose their end."""

from __future__ import annotations

from rich.table import Table


def new_table(*names: str) -> Table:
    """An empty table with these columns; other columns are added by whoever needs them."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold")
    return table
