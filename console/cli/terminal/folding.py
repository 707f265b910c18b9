"""Lines of words folded at a terminal's width: what goes on stands under where its words began."""

from __future__ import annotations

import os
import re
import textwrap

_COLUMN = re.compile(r"\s*(?:\S+ )*?\S+\s{2,}|\s+")
"""A name, then at least two blanks: the words begin in a column of their own."""
_INDENT = 2


def terminal_columns() -> int:
    """How wide the terminal is: $COLUMNS, then what the terminal says, then 80."""
    given = os.environ.get("COLUMNS", "")
    if given.isascii() and given.isdigit() and int(given[:6]):
        return int(given[:6])
    try:
        return os.get_terminal_size(1).columns or 80
    except OSError:  # no terminal
        return 80


def fold(line: str, width: int | None) -> str:
    """The line in as many as it takes; None, for a program that reads, leaves it whole. A long path stays in one piece."""
    if width is None or len(line) <= width:
        return line
    column = _COLUMN.match(line)
    at = column.end() if column is not None and column.end() <= width // 2 else 0
    lines = textwrap.wrap(
        line[at:],
        width - at,
        subsequent_indent=" " * (0 if at > _INDENT else _INDENT),
        break_long_words=False,
        break_on_hyphens=False,
    )
    first, *others = lines or [""]
    return "\n".join([line[:at] + first, *(" " * at + each for each in others)])
