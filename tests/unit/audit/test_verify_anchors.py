"""A log that was taken from another instance is whole in itself, and told by the starts in it."""

from __future__ import annotations

from pathlib import Path

from console.audit.log import AuditLog
from console.audit.verify_anchors import FIELD, STARTED, foreign


def test_every_start_names_this_instance(log: AuditLog) -> None:
    log.append("supervisor", STARTED, "pid 1")  # of an earlier version
    log.append("supervisor", STARTED, "pid 2", data={FIELD: "0123abcd"})
    log.append("agent:a", "says", "x", data={FIELD: "another"})
    assert foreign(log.path, "0123abcd") == ""
    assert "record 2 is of another instance ('0123abcd')" in foreign(log.path, "ffffffff")


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    assert "cannot be read" in foreign(tmp_path / "none.db", "0123abcd")
