"""Logs that were set aside are found, whatever is in their folder."""

from __future__ import annotations

from pathlib import Path

from console.audit.log import AuditLog
from console.audit.older import LOST, few, moment, not_proven, older_logs
from console.audit.on_record import compare


def test_each_folder_counts_once_oldest_first_and_other_files_do_not(tmp_path: Path) -> None:
    for name in ("audit-set-aside-20260102T000000Z", "audit-set-aside-20260101T000000Z", "ledger-set-aside-1", "audit-other"):
        (tmp_path / name).mkdir()
    (tmp_path / "audit-set-aside-file").touch()
    found = older_logs(tmp_path / "audit.db")
    assert [log.parent.name[-16:] for log in found] == ["20260101T000000Z", "20260102T000000Z"]
    assert "not proven" in not_proven(found[0])


def test_no_number_is_too_much_for_a_time() -> None:
    assert moment(1e300) == moment(float("nan")) == "at no time" and moment(0.0).startswith("19")


def test_a_log_that_is_missing_is_not_known_until_a_rearm_took_note_of_it(log: AuditLog) -> None:
    assert compare(log.path, []).unknown == ()
    log.append("ann", "kill.rearm", "of before")
    log.append("supervisor", LOST, "the log before this one is missing")
    assert "record 2" in compare(log.path, []).unknown[0]
    log.append("ann", "kill.rearm", "looked at it")
    assert compare(log.path, []).unknown == ()


def test_many_are_named_few() -> None:
    assert few(["a"] * 5, "receipts") == ["a"] * 5
    assert few(["a"] * 1006, "receipts") == [*["a"] * 5, "and 1,001 more receipts"]
