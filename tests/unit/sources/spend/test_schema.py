"""Files of earlier versions become ones of this, and are the same as if they had been made by it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from console.sources.spend.schema import ADDED, SCHEMA, TOTALS, TRIGGERS, UPGRADES, VERSION
from console.sources.spend.store import SpendStore

_OURS = ", ours integer not null default 0"


def laid_out(file: Path) -> set[tuple[str, str]]:
    with sqlite3.connect(file) as db:
        found = {
            (row[0], " ".join(row[1].split()).replace("IF NOT EXISTS ", ""))
            for row in db.execute("select name, sql from sqlite_master where sql is not null")
        }
        version = db.execute("pragma user_version").fetchone()[0]
    db.close()
    assert version == VERSION
    return found


@pytest.mark.parametrize("version", sorted(UPGRADES))
def test_an_earlier_file_is_laid_out_as_a_new_one(tmp_path: Path, version: int) -> None:
    SpendStore(tmp_path / "new.db").close()
    new = laid_out(tmp_path / "new.db")
    assert set(TRIGGERS) <= {name for name, _ in new}
    with sqlite3.connect(tmp_path / "old.db") as db:
        if version == 4:
            db.executescript(f"{SCHEMA} {ADDED} {TOTALS}")
        elif version == 3:
            kept = [sql for name, sql in new if not name.startswith("sum_")]
            db.executescript(";".join(sorted(kept, key=lambda sql: ("CREATE TABLE" not in sql.upper(), sql))) + ";")
        elif version == 2:
            db.executescript(SCHEMA.replace(_OURS, ""))
        db.execute(f"pragma user_version = {version}")
    db.close()
    SpendStore(tmp_path / "old.db").close()
    names = {name for name, _ in laid_out(tmp_path / "old.db")}
    assert names == {name for name, _ in new}
    again = SpendStore(tmp_path / "old.db")
    again.by_agents([(0, "claude_code", "s")])
    again.close()
