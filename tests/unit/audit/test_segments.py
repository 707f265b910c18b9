"""Fault 11: a damaged log is kept whole, a new segment begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.audit.database import Damaged
from console.audit.log import AuditLog
from console.audit.segments import set_aside
from console.audit.verify import verify_file


def test_a_damaged_log_is_set_aside_and_a_new_one_begins(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    log = AuditLog(path)
    log.append("a", "k", "w")
    log.close()
    damaged = b"\0" * 100 + path.read_bytes()[100:]
    path.write_bytes(damaged)
    with pytest.raises(Damaged):
        AuditLog(path)
    kept = set_aside(path, at=0.0)
    assert kept == tmp_path / "audit-set-aside-19700101T000000Z" / "audit.db"
    assert kept.read_bytes() == damaged
    assert not verify_file(kept).whole
    new = AuditLog(path)
    assert new.append("supervisor", "audit", "a new segment").seq == 1
    new.close()
    assert verify_file(path).whole


def test_a_second_one_in_the_same_second_gets_its_own_folder(tmp_path: Path) -> None:
    folders = set()
    for _ in range(3):
        (tmp_path / "audit.db").write_bytes(b"x")
        folders.add(set_aside(tmp_path / "audit.db", at=0.0).parent.name)
    assert len(folders) == 3
