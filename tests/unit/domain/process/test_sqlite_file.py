"""A file that is damaged lies aside whole and that is said; one of a later version, or a disk that refuses, is no damage."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from console.domain.errors import ConsoleError
from console.domain.process.sqlite_file import open_or_begin_anew

SCHEMA = "create table said(text text not null) strict;"
UPGRADES = {0: SCHEMA, 1: "alter table said add column at real not null default 0;"}


def look(db: sqlite3.Connection) -> None:
    db.execute("select text from said limit 1").fetchone()


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_new_file_is_laid_out_for_its_owner_alone_and_keeps_what_it_is_told(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    for _ in range(2):
        db, lost = open_or_begin_anew(file, 1, {0: SCHEMA}, look)
        assert not lost and file.stat().st_mode & 0o777 == 0o600
        db.execute("insert into said values('x')")
        db.close()
    with closing(sqlite3.connect(file)) as found:
        assert found.execute("select count(*) from said").fetchone() == (2,)


def test_an_earlier_version_is_brought_to_this_one_and_a_broken_step_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    open_or_begin_anew(file, 1, UPGRADES)[0].close()
    with pytest.raises(ConsoleError, match="cannot be used"):
        open_or_begin_anew(file, 2, {1: "create table half(x); no sql at all;"})
    with closing(sqlite3.connect(file)) as found:
        assert found.execute("pragma user_version").fetchone() == (1,)
        assert found.execute("select count(*) from sqlite_master where name = 'half'").fetchone() == (0,)
    db, lost = open_or_begin_anew(file, 2, UPGRADES, look)
    with closing(db):
        assert not lost and db.execute("pragma user_version").fetchone() == (2,)
        db.execute("insert into said values('x', 1.0)")


@pytest.mark.parametrize("version", [99, -1])
def test_a_file_of_another_version_is_left_as_it_is(tmp_path: Path, version: int) -> None:
    file = tmp_path / "a.db"
    with closing(sqlite3.connect(file)) as db:
        db.execute(f"pragma user_version = {version}")
    before = file.read_bytes()
    with pytest.raises(ConsoleError, match=f"schema {version}"):
        open_or_begin_anew(file, 1, {0: SCHEMA})
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("pragma user_version").fetchone() == (version,)
    assert before and not [name for name in names(tmp_path) if "broken" in name]


@pytest.mark.parametrize("whole", [0, 100])
def test_a_damaged_file_lies_aside_whole_and_a_new_one_begins(tmp_path: Path, whole: int) -> None:
    file = tmp_path / "a.db"
    db, _ = open_or_begin_anew(file, 1, {0: SCHEMA}, look)
    db.execute("insert into said values('x')")
    db.close()
    damaged = file.read_bytes()[:whole] + b"no database at all" * 1000
    file.write_bytes(damaged)
    db, lost = open_or_begin_anew(file, 1, {0: SCHEMA}, look)
    with closing(db):
        assert db.execute("select count(*) from said").fetchone() == (0,)
    [aside] = [tmp_path / name for name in names(tmp_path) if name.startswith("a.db.broken-")]
    assert "damaged" in lost and aside.name in lost and aside.read_bytes() == damaged


def test_a_place_that_cannot_be_written_is_no_damage_and_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "a.db").mkdir()
    with pytest.raises(ConsoleError, match="cannot be used"):
        open_or_begin_anew(tmp_path / "a.db", 1, {0: SCHEMA})
    with pytest.raises(ConsoleError, match="cannot be used"):
        open_or_begin_anew(tmp_path / "no folder" / "a.db", 1, {0: SCHEMA})
    assert names(tmp_path) == {"a.db"}


def test_one_thread_has_it_unless_all_may(tmp_path: Path) -> None:
    said: list[str] = []

    def use(db: sqlite3.Connection) -> None:
        try:
            look(db)
        except sqlite3.ProgrammingError:
            said.append("refused")

    for any_thread in (False, True):
        db, _ = open_or_begin_anew(tmp_path / "a.db", 1, {0: SCHEMA}, any_thread=any_thread)
        one = threading.Thread(target=use, args=(db,))
        one.start()
        one.join()
        db.close()
    assert said == ["refused"]
