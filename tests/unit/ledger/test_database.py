"""Fault 21 (old and newer schemas), durability settings, errors in words without values."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from console.domain.errors import Conflict, ConsoleError, NotRecorded
from console.ledger.database import Database
from console.ledger.migrations import MIGRATIONS, Migration
from console.ledger.store import Ledger


def pragma(ledger: Ledger, name: str) -> object:
    with ledger.reading() as connection:
        return connection.exec_driver_sql(f"PRAGMA {name}").scalar()


def test_every_connection_is_set_up_for_durability(ledger: Ledger) -> None:
    assert pragma(ledger, "journal_mode") == "wal"
    assert pragma(ledger, "synchronous") == 2
    assert pragma(ledger, "foreign_keys") == 1
    assert pragma(ledger, "recursive_triggers") == 1
    assert pragma(ledger, "busy_timeout") == 5000
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600


def test_every_table_is_strict(ledger: Ledger) -> None:
    with ledger.reading() as connection:
        loose = connection.exec_driver_sql("SELECT name FROM pragma_table_list WHERE type='table' AND strict=0 AND name NOT LIKE 'sqlite%'")
        assert loose.fetchall() == []


def test_a_newer_schema_is_refused_in_words_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    future = Migration(99, "from the future", ("CREATE TABLE hover (x INTEGER) STRICT",))
    Database(path, (*MIGRATIONS, future)).close()
    with pytest.raises(Conflict) as caught:
        Ledger(path)
    assert "schema 99" in caught.value.what
    assert caught.value.remedy
    assert sqlite3.connect(path).execute("SELECT max(version) FROM schema_version").fetchone() == (99,)


def test_an_old_schema_is_migrated_and_keeps_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    old = Ledger(path)
    old.kv_set("colour", "green")
    old.close()
    wider = (*MIGRATIONS, Migration(len(MIGRATIONS) + 1, "a column", ("ALTER TABLE kv ADD COLUMN note ANY",)))
    Database(path, wider).close()
    Database(path, wider).close()
    rows = sqlite3.connect(path).execute("SELECT key, value, note FROM kv").fetchall()
    assert rows == [("colour", "green", None)]


def kept(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir() if ".schema-" in file.name)


def grown(by: int) -> tuple[Migration, ...]:
    """The migrations of a version that is ``by`` schemas newer."""
    newest = len(MIGRATIONS)
    return (*MIGRATIONS, *(Migration(newest + n, f"step {n}", (f"CREATE TABLE step{n} (x INTEGER) STRICT",)) for n in range(1, by + 1)))


def test_a_copy_is_kept_before_a_migration_and_an_older_version_names_the_way_back(tmp_path: Path) -> None:
    path, newest = tmp_path / "ledger.db", len(MIGRATIONS)
    old = Ledger(path)
    assert kept(path) == [], "a new ledger has nothing to keep"
    old.kv_set("colour", "green")
    Database(path, grown(1)).close()  # while the other connection holds its write-ahead log open
    old.close()
    assert kept(path) == [f"ledger.db.schema-{newest}"]
    copy = tmp_path / f"ledger.db.schema-{newest}"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with pytest.raises(Conflict) as caught:
        Ledger(path)
    assert f"schema {newest + 1}; this version knows {newest}" in caught.value.what
    command = caught.value.remedy[caught.value.remedy.index("rm -f") : caught.value.remedy.index(". The ledger")]
    subprocess.run(["sh", "-ec", command], check=True)
    back = Ledger(path)
    assert back.kv_get("colour") == "green"
    back.close()
    Database(path, grown(1)).close()
    Database(path, grown(3)).close()
    assert kept(path) == [f"ledger.db.schema-{newest}", f"ledger.db.schema-{newest + 1}"]


def test_without_a_copy_only_the_newer_version_is_the_way(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    Database(path, grown(1)).close()
    (tmp_path / "ledger.db.schema-x").write_text("")
    with pytest.raises(Conflict) as caught:
        Ledger(path)
    assert caught.value.remedy == "Start the newer version again: no copy from before the upgrade is here."


def test_a_copy_that_cannot_be_kept_leaves_the_old_schema(tmp_path: Path) -> None:
    path, newest = tmp_path / "ledger.db", len(MIGRATIONS)
    Ledger(path).close()
    (tmp_path / f"ledger.db.schema-{newest}").mkdir()
    with pytest.raises(ConsoleError, match="was not migrated: a copy of it could not be kept"):
        Database(path, grown(1))
    assert sqlite3.connect(path).execute("SELECT max(version) FROM schema_version").fetchone() == (newest,)
    assert not list(tmp_path.glob(".ledger*"))
    (tmp_path / f".ledger.db.schema-{newest}").write_text("of a start that ended in between")
    (tmp_path / f"ledger.db.schema-{newest}").rmdir()
    Database(path, grown(1)).close()
    assert kept(path) == [f"ledger.db.schema-{newest}"]


def test_a_failing_migration_leaves_nothing_of_itself(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    bad = Migration(len(MIGRATIONS) + 1, "half", ("CREATE TABLE half (x INTEGER) STRICT", "CREATE TABLE agents (x INTEGER) STRICT"))
    with pytest.raises(ConsoleError):
        Database(path, (*MIGRATIONS, bad))
    names = {row[0] for row in sqlite3.connect(path).execute("SELECT name FROM sqlite_schema")}
    assert "half" not in names
    Ledger(path).close()


def test_two_first_starts_at_once_both_find_one_schema(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    problems: list[BaseException] = []

    def start() -> None:
        try:
            Ledger(path).close()
        except ConsoleError as error:
            problems.append(error)

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert sqlite3.connect(path).execute("SELECT count(*) FROM schema_version").fetchone() == (len(MIGRATIONS),)


@pytest.mark.parametrize("content", [b"\0" * 8192, b"not a database at all" * 500])
def test_a_damaged_file_is_refused_in_words(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(content)
    with pytest.raises(ConsoleError) as caught:
        Ledger(path)
    assert caught.value.remedy
    assert path.read_bytes() == content


def test_an_unusable_folder_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(ConsoleError, match="cannot be opened"):
        Ledger(tmp_path / "missing" / "ledger.db")


def test_errors_never_hold_a_value(ledger: Ledger) -> None:
    with pytest.raises(NotRecorded) as caught:
        ledger.kv_set("token", None)  # type: ignore[arg-type]
    with pytest.raises(NotRecorded) as second, ledger.writing() as connection:
        connection.exec_driver_sql("INSERT INTO kv VALUES ('k', NULL, 'canary-s3cr3t')")
    for error in (caught.value, second.value):
        chain = [error, error.__cause__, getattr(error.__cause__, "orig", None)]
        assert not any("canary" in str(part) and "INSERT" not in str(part) for part in chain)
        assert "canary" not in str(error)


def test_parameters_are_hidden_from_error_chains(ledger: Ledger) -> None:
    ledger.add_events([("a", 1.0, "kind", "text")])
    with pytest.raises(NotRecorded) as caught:
        ledger.add_events([("a", float("nan"), "canary-kind", "canary-s3cr3t")])
    assert "canary" not in f"{caught.value} {caught.value.__cause__}"
    assert len(ledger.events("a")) == 1


def test_many_threads_write_and_read(ledger: Ledger) -> None:
    def work(number: int) -> None:
        for i in range(25):
            ledger.add_events([(f"a{number}", float(i), "tick", "x")])
            assert len(ledger.events(f"a{number}")) == i + 1

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(ledger.events(f"a{n}")) for n in range(8)] == [25] * 8
