from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from console.domain.errors import Conflict, NotFound, NotRecorded
from console.domain.rollback import RollbackKind
from console.rollback.images import ABSENT, Image
from console.rollback.journal import Journal

A, B = Image("a" * 64, 1, 0o644, 7, 8), Image("b" * 64, 2, 0o600, 7, 8)
WRITE = RollbackKind.FILE_WRITE


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made = Journal(tmp_path / "records.db")
    yield made
    made.close()


def test_facts_come_back_also_after_a_restart(journal: Journal, tmp_path: Path) -> None:
    entry = journal.add("a1", "c1", WRITE, "d/it's\n;--", A, 5.5)
    assert (entry.path, entry.before_sha256, entry.before_mode, entry.before_uid, entry.before_gid) == (
        "d/it's\n;--",
        "a" * 64,
        0o644,
        7,
        8,
    )
    again = Journal(tmp_path / "records.db")
    assert again.get(entry.record_id) == entry
    again.close()
    assert (tmp_path / "records.db").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE records SET path='x'",
        "UPDATE records SET before_sha256=NULL",
        "DELETE FROM records",
        "REPLACE INTO records SELECT * FROM records",
    ],
)
def test_facts_cannot_be_changed(journal: Journal, tmp_path: Path, sql: str) -> None:
    journal.add("a1", "c1", WRITE, "x", A, 1.0)
    with closing(sqlite3.connect(tmp_path / "records.db")) as other:
        other.execute("PRAGMA recursive_triggers=ON")
        with pytest.raises(sqlite3.IntegrityError):
            other.execute(sql)


def test_the_next_snapshot_tells_what_the_action_before_it_left(journal: Journal) -> None:
    first = journal.add("a1", "c1", WRITE, "x", A, 1.0)
    other = journal.add("a1", "c2", WRITE, "x", A, 1.0)
    journal.add("a1", "c1", WRITE, "x", B, 2.0)
    assert (journal.get(first.record_id).after_known, journal.get(first.record_id).after_sha256) == (1, "b" * 64)
    assert journal.get(other.record_id).after_known == 0


def test_an_action_that_left_nothing_changed_stays_unknown(journal: Journal) -> None:
    first = journal.add("a1", "c1", WRITE, "x", A, 1.0)
    absent = journal.add("a1", "c1", WRITE, "y", ABSENT, 1.0)
    journal.add("a1", "c1", WRITE, "x", A, 2.0)
    journal.add("a1", "c1", WRITE, "y", ABSENT, 2.0)
    assert journal.get(first.record_id).after_known == journal.get(absent.record_id).after_known == 0


def test_order_newer_and_own(journal: Journal) -> None:
    first = journal.add("a1", "c1", WRITE, "x", A, 1.0)
    second = journal.add("a2", "c1", WRITE, "x", B, 2.0, undoes=first.record_id)
    assert [e.record_id for e in journal.newest(10, None)] == [second.record_id, first.record_id]
    assert [e.record_id for e in journal.newest(10, "a1")] == [first.record_id]
    assert journal.newer(first) == second and journal.newer(second) is None
    assert journal.own_of(first) == second and journal.own_of(second) is None


def test_unknown_ids_and_newer_schemas_are_refused(journal: Journal, tmp_path: Path) -> None:
    for record_id in ("r-none", "' OR 1=1", "\0"):
        with pytest.raises(NotFound):
            journal.get(record_id)
    with closing(sqlite3.connect(tmp_path / "records.db")) as other:
        other.execute("PRAGMA user_version=9")
    with pytest.raises(Conflict):
        Journal(tmp_path / "records.db")


def test_what_cannot_be_stored_is_not_recorded(journal: Journal, tmp_path: Path) -> None:
    with pytest.raises(NotRecorded):
        journal.add("\ud800", "c1", WRITE, "x", A, 1.0)
    assert journal.newest(10, None) == []
    (tmp_path / "bad.db").write_bytes(b"rubbish" * 1000)
    with pytest.raises(NotRecorded):
        Journal(tmp_path / "bad.db")
