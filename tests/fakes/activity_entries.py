"""Entries of an agent's activity as tests write them, and their texts as a window shows them."""

from __future__ import annotations

from console.domain.activity import Entry, Kept, Kind


def entries(first: int, last: int, kind: Kind = Kind.MESSAGE) -> list[Entry]:
    """Numbered from ``first`` up to ``last``, which is left out."""
    return [Entry(kind, f"s{n}", float(n), f"entry {n}") for n in range(first, last)]


def texts(rows: tuple[Kept, ...]) -> list[str]:
    """In their order."""
    return [row.entry.text for row in rows]
