"""Rollback records are values."""

from __future__ import annotations

from console.domain.rollback import FACTS, RollbackKind, RollbackRecord, RollbackState, facts_digest


def test_a_record_of_a_new_file_has_no_content_before() -> None:
    record = RollbackRecord("r1", "a", "c", RollbackKind.FILE_WRITE, "x", None, 0, 0, None, False, 1.0, RollbackState.UNKNOWN)
    assert record.before_sha256 is None and not record.after_known and record.restored_at is None


def test_the_digest_changes_with_any_fact_and_takes_any_value() -> None:
    facts = ["r", "a", "s", "file_write", "x\udcff", None, 1, 2, 3, 4, "", 5.5]
    assert len(facts) == len(FACTS)
    found = {facts_digest([*facts[:n], b"other", *facts[n + 1 :]]) for n in range(len(facts))} | {facts_digest(facts)}
    assert len(found) == len(facts) + 1
