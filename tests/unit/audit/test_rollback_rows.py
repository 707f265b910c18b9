"""A rollback record that was changed, added or taken away is told by the log, with the supervisor down."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from console.audit import rollback_rows
from console.audit.log import AuditLog
from console.audit.rollback_rows import DONE_FIELD, FACTS_FIELD, RollbackBook, RowsCompared, compare_rows
from console.audit.set_aside import PUT_BACK
from console.domain.rollback import FACTS, facts_digest

TYPES = {"before_size": "INTEGER", "before_mode": "INTEGER", "before_uid": "INTEGER", "before_gid": "INTEGER", "created_at": "REAL"}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollback_rows, "_AGAIN_S", (0.0,))


@pytest.fixture
def records(tmp_path: Path) -> Path:
    path = tmp_path / "records.db"
    columns = ", ".join(f"{name} {TYPES.get(name, 'TEXT')}" for name in FACTS)
    run(path, f"CREATE TABLE records (seq INTEGER PRIMARY KEY, {columns}, restored_at REAL, restored_by TEXT NOT NULL DEFAULT '')")
    return path


def run(path: Path, sql: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(sql, values)
        connection.commit()


def kept(log: AuditLog | None, records: Path, record_id: str, created_at: float = 5.0) -> None:
    """As the supervisor does: the row, then its digest on record."""
    facts = (
        record_id,
        "a-1",
        "s-1",
        "file_write",
        "it's\ud800.txt".encode("utf-8", "replace").decode(),
        "ab",
        1,
        0o644,
        0,
        0,
        "",
        created_at,
    )
    run(records, f"INSERT INTO records ({', '.join(FACTS)}) VALUES ({','.join('?' * len(facts))})", *facts)
    if log is not None:
        log.append("agent:a-1", "permission", "write", data={FACTS_FIELD: {record_id: facts_digest(facts)}})


def test_rows_that_are_as_they_were_recorded_have_nothing_against_them(log: AuditLog, records: Path) -> None:
    assert compare_rows(log.path, records.with_name("none.db")) == RowsCompared(0)
    for name in ("r-1", "r-2"):
        kept(log, records, name)
    assert compare_rows(log.path, records) == RowsCompared(2)
    book = RollbackBook()
    book.read(log.path)
    kept(log, records, "r-3")
    book.read(log.path)  # goes on where it was
    assert len(book.facts) == 3 and book.seq == log.head[0]


def changed_path(records: Path) -> None:
    run(records, "UPDATE records SET path = '../../etc/passwd' WHERE record_id = 'r-1'")


def changed_content(records: Path) -> None:
    run(records, "UPDATE records SET before_sha256 = NULL WHERE record_id = 'r-1'")


def other_type(records: Path) -> None:
    run(records, "UPDATE records SET created_at = 'x', path = x'00ff' WHERE record_id = 'r-1'")


def taken_away(records: Path) -> None:
    run(records, "DELETE FROM records WHERE record_id = 'r-1'")


def no_file(records: Path) -> None:
    records.unlink()


def no_table(records: Path) -> None:
    run(records, "DROP TABLE records")


def no_database(records: Path) -> None:
    records.write_bytes(b"rubbish!" * 1000)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (changed_path, "r-1: it was changed after"), (changed_content, "r-1: it was changed after"), (other_type, "r-1"),
        (taken_away, "r-1 is on record and gone"), (no_file, "r-1 is on record and gone"), (no_table, "cannot be read"),
        (no_database, "cannot be read"),
    ],
)  # fmt: skip
def test_any_change_is_named(log: AuditLog, records: Path, harm: Callable[[Path], None], said: str) -> None:
    kept(log, records, "r-1")
    harm(records)
    assert said in compare_rows(log.path, records).why


def test_whether_it_was_put_back_is_on_record_too(log: AuditLog, records: Path) -> None:
    kept(log, records, "r-1")
    run(records, "UPDATE records SET restored_at = 7.5, restored_by = 'ann'")
    assert "says that it was restored, which is not on record" in compare_rows(log.path, records).unknown[0]
    log.append("ann", "rollback.restored", "r-1", data={DONE_FIELD: {"id": "r-1", "at": 7.5, "by": "ann"}})
    assert compare_rows(log.path, records) == RowsCompared(1)
    run(records, "UPDATE records SET restored_by = 'ben'")
    assert "the operator of its restore was changed" in compare_rows(log.path, records).why
    run(records, "UPDATE records SET restored_at = NULL")
    assert "says that it was not" in compare_rows(log.path, records).why


def test_a_row_that_nobody_recorded_cannot_be_told(log: AuditLog, records: Path) -> None:
    kept(None, records, "r-evil")
    log.append("agent:a-1", "agent.says", "x", data={FACTS_FIELD: {"r-evil": "0" * 64}})  # no word of ours
    found = compare_rows(log.path, records)
    assert found.why == "" and "r-evil: it is not on record" in found.unknown[0] and found.before == 0
    log.append("supervisor", "audit.set_aside", "a damaged log was set aside")
    assert compare_rows(log.path, records) == RowsCompared(1, before=1), "its record was in that one"


def test_many_are_named_few(log: AuditLog, records: Path) -> None:
    for number in range(8):
        kept(None, records, f"r-{number}")
    found = compare_rows(log.path, records).unknown
    assert len(found) == 6 and found[-1] == "and 3 more rollback records"


def test_a_log_that_cannot_be_read_is_said(records: Path, tmp_path: Path) -> None:
    assert "cannot be read" in compare_rows(tmp_path / "none.db", records).why


def test_records_that_cannot_be_read_are_not_called_right_because_none_is_on_record(log: AuditLog, records: Path) -> None:
    no_database(records)
    found = compare_rows(log.path, records)
    assert found.why == "" and "the rollback records cannot be read" in found.unknown[0]


def test_rows_of_before_an_older_copy_was_put_back_are_counted_and_not_doubted(log: AuditLog, records: Path) -> None:
    kept(log, records, "r-1")
    run(records, "UPDATE records SET record_id = 'r-2', created_at = 1.5")  # as if the copy knew nothing of it
    found = compare_rows(log.path, records)
    assert found.unknown and found.before == 0
    log.append("supervisor", PUT_BACK, "an older copy")
    assert compare_rows(log.path, records).before == 1 and compare_rows(log.path, records).unknown == ()
