"""Logs that were set aside are found, whatever is in their folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.audit.log import AuditLog
from console.audit.set_aside import ACKNOWLEDGED, LOST, SET_ASIDE, Losses, few, losses_of, moment, not_proven, older_logs
from console.audit.verify_presence import compare


def test_each_folder_counts_once_oldest_first_and_other_files_do_not(tmp_path: Path) -> None:
    for name in ("audit-set-aside-20260102T000000Z", "audit-set-aside-20260101T000000Z", "ledger-set-aside-1", "audit-other"):
        (tmp_path / name).mkdir()
    (tmp_path / "audit-set-aside-file").touch()
    found = older_logs(tmp_path / "audit.db")
    assert [log.parent.name[-16:] for log in found] == ["20260101T000000Z", "20260102T000000Z"]
    assert "not proven" in not_proven(found[0])


def test_no_number_is_too_much_for_a_time() -> None:
    assert moment(1e300) == moment(float("nan")) == "at no time" and moment(0.0).startswith("19")


@pytest.mark.parametrize(("kind", "words"), [(LOST, "is missing"), (SET_ASIDE, "set aside")])
def test_a_log_that_follows_a_lost_one_is_not_intact_until_an_operator_acknowledges_it(log: AuditLog, kind: str, words: str) -> None:
    assert losses_of(log.path) == Losses()
    log.append("ann", ACKNOWLEDGED, "of before: it covers nothing that comes later")
    log.append("supervisor", kind, "the log before this one is gone")
    log.append("ann", "kill.rearm", "looked at the agents, not at the record")
    losses = compare(log.path, []).losses
    assert losses.newest == 2 and words in losses.why and "watchfloor audit acknowledge" in losses.why
    log.append("ann", ACKNOWLEDGED, "disk failure, ticket 4711")
    losses = compare(log.path, []).losses
    assert losses.why == "" and "ann" in losses.acknowledged[0] and "ticket 4711" in losses.acknowledged[0]
    log.append("supervisor", kind, "again")
    assert len(losses_of(log.path).open) == 1 and len(losses_of(log.path).acknowledged) == 1


@pytest.mark.parametrize(("fmt", "mark"), [("jsonl", '"intact":false'), ("csv", "NOT INTACT")])
def test_an_export_says_that_records_were_lost_until_that_is_acknowledged(log: AuditLog, tmp_path: Path, fmt: str, mark: str) -> None:
    log.append("supervisor", SET_ASIDE, "the log before this one")
    assert log.export(tmp_path / "one", fmt) == 1
    assert mark in (tmp_path / "one").read_text().splitlines()[-1]
    log.append("ann", ACKNOWLEDGED, "seen")
    assert log.export(tmp_path / "two", fmt) == 2
    assert mark not in (tmp_path / "two").read_text()


def test_what_cannot_be_read_tells_of_no_loss(tmp_path: Path) -> None:
    (tmp_path / "audit.db").write_text("no database")
    assert losses_of(tmp_path / "audit.db") == losses_of(tmp_path / "nothing") == Losses()


def test_many_are_named_few() -> None:
    assert few(["a"] * 5, "receipts") == ["a"] * 5
    assert few(["a"] * 1006, "receipts") == [*["a"] * 5, "and 1,001 more receipts"]
