"""The file of activity: one that is damaged lies aside, and that is said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.activity import Entry, Kept, Kind
from console.ledger.activity import ActivityStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ActivityStore]:
    made = ActivityStore(tmp_path / "a.db")
    yield made
    made.close()


def entries(first: int, last: int, kind: Kind = Kind.MESSAGE) -> list[Entry]:
    return [Entry(kind, f"s{n}", float(n), f"entry {n}") for n in range(first, last)]


def texts(rows: tuple[Kept, ...]) -> list[str]:
    return [row.entry.text for row in rows]


def test_a_damaged_store_lies_aside_and_says_so(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    file.write_bytes(b"no database at all" * 100)
    store = ActivityStore(file)
    assert "damaged" in store.lost and store.add("a", entries(0, 1))[0] == 1
    store.close()
    assert file.stat().st_mode & 0o777 == 0o600
