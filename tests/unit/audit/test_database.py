from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from console.audit.database import SCHEMA, is_damage, open_reader, open_writer, reason, schema_problem
from console.domain.errors import Conflict


def test_the_writer_is_durable_and_the_reader_cannot_write(tmp_path: Path) -> None:
    path = tmp_path / "audit # 100%?.db"
    with closing(open_writer(path)) as writer, closing(open_reader(path)) as reader:
        assert writer.execute("PRAGMA synchronous").fetchone() == (2,)
        assert writer.execute("PRAGMA journal_mode").fetchone() == (b"wal",)
        assert schema_problem(reader) == ""
        with pytest.raises(sqlite3.OperationalError):
            reader.execute("INSERT INTO records VALUES (1,1.0,'','','','','','','','')")
    assert path.stat().st_mode & 0o777 == 0o600


def test_rows_cannot_be_changed_even_with_recursive_triggers_off(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    with closing(open_writer(path)) as writer:
        writer.execute("INSERT INTO records VALUES (1,1.0,'a','k','w','','','{}','p','h')")
    with closing(sqlite3.connect(path)) as other:
        for sql in ("UPDATE records SET what='x'", "DELETE FROM records", "INSERT OR REPLACE INTO records SELECT * FROM records"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                other.execute(sql)


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    open_writer(path).close()
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA user_version=9")
    with pytest.raises(Conflict, match="schema 9"):
        open_writer(path)


@pytest.mark.parametrize("name", [name for _, name in SCHEMA])
def test_a_missing_part_of_the_schema_is_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / "audit.db"
    with closing(open_writer(path)) as writer:
        kind = next(kind for kind, n in SCHEMA if n == name)
        writer.execute(f"DROP {kind} {name}")
        assert name in schema_problem(writer) or "records" in schema_problem(writer)


def test_a_view_in_place_of_the_table_and_extras_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    with closing(open_writer(path)) as writer:
        writer.execute("CREATE TABLE hidden (x)")
        assert "hidden" in schema_problem(writer)
        writer.execute("DROP TABLE hidden")
        writer.execute("DROP TABLE records")
        writer.execute("CREATE VIEW records AS SELECT 1 AS seq")
        assert "table records" in schema_problem(writer)


def test_damage_is_told_from_a_full_disk() -> None:
    corrupt = sqlite3.DatabaseError("malformed")
    corrupt.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    full = sqlite3.OperationalError("full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    assert is_damage(corrupt)
    assert not is_damage(full)
    assert not is_damage(OSError(28, "No space left on device"))
    assert is_damage(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x"))
    assert reason(OSError(28, "No space left on device")) == "No space left on device"
