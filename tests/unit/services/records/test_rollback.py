"""Each row beside what the audit log says of it; one that was changed is shown and not put back."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.api.records import RestoreBody
from console.audit.log import AuditLog
from console.audit.rollback_rows import FACTS_FIELD, RollbackBook, compare_rows
from console.domain.engine.command import Record
from console.domain.errors import Conflict
from console.domain.rollback import RollbackKind, RollbackRecord
from console.rollback.store import RollbackStore
from console.services.records.rollback import RollbackDesk


class World:
    """A real store and a real log, and a scribe that writes at once."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "workspaces" / "s-1" / "a.txt"
        self.file.parent.mkdir(parents=True)
        self.file.write_text("one")
        self.records = folder / "rollback" / "records.db"
        self.records.parent.mkdir()
        self.store = RollbackStore(self.records.parent, folder / "workspaces")
        self.audit = AuditLog(folder / "audit.db")
        scribe: Any = SimpleNamespace(audit=self.audit, settle=lambda _s: True, record=self.write, record_first=self.write)
        self.desk = RollbackDesk(scribe, self.store, lambda agent_id: f"name of {agent_id}", lambda *_said: None)

    def write(self, record: Record) -> None:
        self.audit.append(record.actor, record.kind, record.what, verdict=record.verdict, data=record.data)

    def overwritten(self, *, recorded: bool = True) -> RollbackRecord:
        made = self.store.snapshot("a-1", "s-1", RollbackKind.FILE_WRITE, "a.txt")
        if recorded:
            self.audit.append("agent:a-1", "permission", "write", data={FACTS_FIELD: {made.record_id: made.facts_sha256}})
        self.file.write_text("two")
        return self.store.note_after(made.record_id)

    def restore(self, record_id: str) -> str:
        seen = self.desk.detail(record_id).now_sha256
        return asyncio.run(self.desk.restore(record_id, RestoreBody(reason="r", expect_now_sha256=seen), "ann")).doubt

    def close(self) -> None:
        self.store.close()
        self.audit.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def test_a_row_on_record_is_put_back_and_that_is_on_record_with_what_it_overwrote(world: World) -> None:
    made = world.overwritten()
    assert [(r.record_id, r.agent_name, r.doubt) for r in world.desk.rows()] == [(made.record_id, "name of a-1", "")]
    assert world.restore(made.record_id) == "" and world.file.read_text() == "one"
    assert [row.doubt for row in world.desk.rows()] == ["", ""]
    assert compare_rows(world.audit.path, world.records).rows == 2 and not compare_rows(world.audit.path, world.records).unknown
    assert world.restore(made.record_id) == ""  # again changes nothing
    assert [row.doubt for row in world.desk.rows()] == ["", ""]


def test_a_row_that_was_changed_is_shown_and_refused(world: World) -> None:
    made = world.overwritten()
    with closing(sqlite3.connect(world.records)) as connection:
        connection.execute("DROP TRIGGER records_facts")
        connection.execute("UPDATE records SET before_mode = 511")
        connection.commit()
    assert "changed after it was recorded" in world.desk.rows()[0].doubt
    assert "changed after it was recorded" in world.desk.detail(made.record_id).conflict
    with pytest.raises(Conflict, match="cannot be trusted"):
        world.restore(made.record_id)
    assert world.file.read_text() == "two" and world.audit.page()[0].kind == "rollback.refused"


def test_a_row_that_is_not_on_record_is_shown_as_that(world: World) -> None:
    made = world.overwritten(recorded=False)
    assert "not on record" in world.desk.detail(made.record_id).row.doubt
    world.audit.path.with_name("audit.db").rename(world.audit.path.with_name("gone.db"))
    assert world.desk.rows()[0].doubt == "the audit log cannot be read"
    world.audit.path.with_name("gone.db").rename(world.audit.path)


def test_a_row_of_which_the_log_cannot_be_asked_is_not_put_back(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    made = world.overwritten()

    def refuses(_book: RollbackBook, _log: Path) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(RollbackBook, "read", refuses)
    assert "cannot be read" in world.desk.detail(made.record_id).conflict
    with pytest.raises(Conflict, match="cannot be trusted: the audit log cannot be read"):
        world.restore(made.record_id)
    assert world.file.read_text() == "two"
