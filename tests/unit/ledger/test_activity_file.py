"""The file of activity: one that is damaged lies aside, and that is said."""

from __future__ import annotations

from pathlib import Path

from console.ledger.activity import ActivityStore
from tests.fakes.activity_entries import entries


def test_a_damaged_store_lies_aside_and_says_so(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    file.write_bytes(b"no database at all" * 100)
    store = ActivityStore(file)
    assert "damaged" in store.lost and store.add("a", entries(0, 1))[0] == 1
    store.close()
    assert file.stat().st_mode & 0o777 == 0o600
