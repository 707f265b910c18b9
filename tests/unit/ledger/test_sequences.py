"""Marks on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import delete, update

from console.domain.calls.lineage import Mark
from console.domain.errors import NotRecorded
from console.ledger.store import Ledger
from console.ledger.tables import SEQUENCE_MARKS


def test_marks_outlive_a_restart_and_cannot_be_changed_nor_taken_away(tmp_path: Path) -> None:
    first = Mark("p", "s", "users", "a", "c", "r", 1.0, "update \udcff", "NONE")
    other = Mark("p", "s", "users", "b", "d", "q", 2.0, "x")
    ledger = Ledger(tmp_path / "l.db")
    ledger.add_marks([first, other])
    ledger.add_marks([first])
    ledger.add_marks([])
    for statement in (update(SEQUENCE_MARKS).values(step="z"), delete(SEQUENCE_MARKS)):
        with pytest.raises(NotRecorded), ledger.writing() as connection:
            connection.execute(statement)
    ledger.close()
    again = Ledger(tmp_path / "l.db")
    assert again.marks() == [first, other]
    assert again.lineage_links() == []
    again.close()
