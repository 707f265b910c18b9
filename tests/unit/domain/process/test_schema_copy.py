"""Before its migration a file is kept, and an older program names the commands that put the copy back."""

from __future__ import annotations

import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from console.domain.errors import Conflict
from console.domain.process.sqlite_file import open_or_begin_anew

SCHEMA = "create table said(text text not null) strict;"
UPGRADES = {0: SCHEMA, 1: "alter table said add column at real not null default 0;"}


def test_a_copy_is_kept_before_an_upgrade_and_an_older_program_names_the_way_back_to_it(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    db, _ = open_or_begin_anew(file, 1, UPGRADES)
    db.execute("insert into said values('of before')")
    db.close()
    assert [path.name for path in tmp_path.iterdir()] == ["a.db"], "a new file has nothing to keep"
    open_or_begin_anew(file, 2, UPGRADES)[0].close()
    assert (tmp_path / "a.db.schema-1").stat().st_mode & 0o777 == 0o600
    with pytest.raises(Conflict, match="schema 2; this version knows 1") as refused:
        open_or_begin_anew(file, 1, {0: SCHEMA})
    command = refused.value.remedy[refused.value.remedy.index("rm -f") : refused.value.remedy.index(". a.db then")]
    subprocess.run(["sh", "-ec", command], check=True)
    db, lost = open_or_begin_anew(file, 1, {0: SCHEMA})
    with closing(db):
        assert not lost and db.execute("select text from said").fetchall() == [("of before",)]
