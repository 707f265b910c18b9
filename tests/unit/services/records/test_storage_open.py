"""Damaged books are told from a disk that refuses."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from console.audit.log import AuditLog
from console.audit.set_aside import ACKNOWLEDGED, SET_ASIDE
from console.audit.verify import verify_file
from console.audit.verify_verdict import beside as judged
from console.domain.errors import ConsoleError
from console.domain.rollback import RECORDS_FILE
from console.services.records import storage_open
from console.services.records.record_writer import note_head
from console.services.records.storage_open import (
    DAMAGED,
    forget_loss,
    is_damaged,
    losses_found,
    note_loss,
    noted_loss,
    open_audit,
    open_ledger,
    started,
)
from console.settings.places import Places


def test_a_good_ledger_is_opened_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    for _ in range(2):
        ledger, aside = open_ledger(path)
        ledger.close()
        assert aside is None and not is_damaged(path)


@pytest.mark.parametrize("damage", [bytes(100), b"not a database at all"])
def test_a_damaged_one_is_kept_beside_and_a_new_one_begins(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "ledger.db"
    ledger, _ = open_ledger(path)
    ledger.close()
    path.write_bytes(damage + path.read_bytes()[len(damage) :])
    assert is_damaged(path)
    ledger, aside = open_ledger(path)
    assert ledger.agents() == [] and aside is not None and aside.read_bytes().startswith(damage)
    assert noted_loss(tmp_path) == DAMAGED
    ledger.close()


def test_a_folder_that_cannot_be_written_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.mkdir()
    with pytest.raises(ConsoleError):
        open_ledger(path)
    assert path.is_dir() and not is_damaged(path)


def test_a_newer_versions_ledger_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    ledger, _ = open_ledger(path)
    ledger.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO schema_version SELECT 999, what, applied_at FROM schema_version LIMIT 1")
        connection.commit()
    with pytest.raises(ConsoleError, match="999"):
        open_ledger(path)
    assert not is_damaged(path)


def test_a_loss_is_noted_until_it_is_forgotten_and_one_that_cannot_be_read_is_damage(tmp_path: Path) -> None:
    assert noted_loss(tmp_path) == ""
    note_loss(tmp_path, "why")
    assert noted_loss(tmp_path) == "why"
    forget_loss(tmp_path)
    assert noted_loss(tmp_path) == ""
    (tmp_path / "ledger-lost").write_bytes(b"")
    assert noted_loss(tmp_path) == DAMAGED
    (tmp_path / "ledger-lost").unlink()
    (tmp_path / "ledger-lost").mkdir()
    assert noted_loss(tmp_path) == DAMAGED
    with pytest.raises(ConsoleError):
        note_loss(tmp_path / "nowhere", "why")


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    monkeypatch.setattr(storage_open, "start_killed", lambda _places, why: PRESSED.append(why))
    PRESSED.clear()
    return Places(tmp_path, tmp_path / "run", "0123abcd", False)


PRESSED: list[str] = []


def kinds(audit: AuditLog) -> list[str]:
    found = [record.kind for record in audit.page()]
    audit.close()
    return found


def test_the_first_log_of_an_instance_just_begins_and_goes_on(places: Places) -> None:
    for _ in range(2):
        audit, aside = open_audit(places)
        entry = started(places, 7)
        audit.append(entry.actor, entry.kind, entry.what, data=entry.data)
        assert aside is None and PRESSED == [] and set(kinds(audit)) == {"supervisor.started"}


def test_a_log_that_is_gone_where_one_was_starts_killed_and_says_so_first(places: Places) -> None:
    places.rollback_dir.mkdir()
    (places.rollback_dir / RECORDS_FILE).touch()
    audit, aside = open_audit(places)
    assert aside is None and PRESSED == ["the audit log is missing"] and kinds(audit) == ["audit.lost"]
    audit, _ = open_audit(places)
    assert len(PRESSED) == 1 and kinds(audit) == ["audit.lost"], "once"


def test_a_log_of_another_instance_is_set_aside_and_this_one_starts_killed(places: Places) -> None:
    audit, _ = open_audit(places)
    entry = started(replace(places, instance_id="ffffffff"), 7)
    audit.append(entry.actor, entry.kind, entry.what, data=entry.data)
    audit.close()
    audit, aside = open_audit(places)
    assert aside is not None and aside.exists() and PRESSED == ["the audit log is damaged"] and kinds(audit) == []


def copied(source: Path, target: Path) -> None:
    for name in ("audit.db", "audit.checkpoints"):
        shutil.copy(source / name, target)


def test_an_older_copy_that_was_put_back_with_its_checkpoints_is_known_by_the_ledger(places: Places, tmp_path: Path) -> None:
    ledger, _ = open_ledger(places.ledger_db)
    (tmp_path / "old").mkdir()
    for turn in range(2):
        audit, aside = open_audit(places)
        assert aside is None
        audit.append("ann", "launch", "a1")
        audit.close()
        copied(tmp_path, tmp_path / "old")
        audit, _ = open_audit(places)
        audit.append("ann", "launch", "a2")
        note_head(ledger, audit)
        audit.close()
        copied(tmp_path / "old", tmp_path)
        down = judged(places, verify_file(places.audit_db)).verdict
        assert verify_file(places.audit_db).whole and not down.whole and "which the ledger names, is missing" in down.why
        audit, aside = open_audit(places)
        assert aside is not None and len(PRESSED) == turn + 1
        [loss] = losses_found(places, aside, "")
        assert loss.kind == SET_ASIDE
        audit.append(loss.actor, loss.kind, loss.what)
        note_head(ledger, audit)
        audit.close()
    audit, aside = open_audit(places)
    assert aside is None and len(PRESSED) == 2 and not judged(places, audit.verify()).verdict.whole, (
        "found once, and said until acknowledged"
    )
    audit.append("ann", ACKNOWLEDGED, "ticket 7")
    assert judged(places, audit.verify()).verdict.whole
    audit.close()
    ledger.close()
