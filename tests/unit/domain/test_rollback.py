"""Rollback records are values."""

from __future__ import annotations

from console.domain.rollback import RollbackKind, RollbackRecord, RollbackState


def test_a_record_of_a_new_file_has_no_content_before() -> None:
    record = RollbackRecord("r1", "a", "c", RollbackKind.FILE_WRITE, "x", None, 0, 0, None, False, 1.0, RollbackState.UNKNOWN)
    assert record.before_sha256 is None and not record.after_known and record.restored_at is None
