from __future__ import annotations

from dataclasses import replace

import pytest

from console.domain.rollback import RollbackState
from console.rollback.images import ABSENT, Image
from console.rollback.journal import Entry
from console.rollback.words import conflict, dry_run, state

BEFORE, AFTER, OTHER = (
    Image("b" * 64, 3, stamp=(1, 2, 3, 4, 5)),
    Image("a" * 64, 4, stamp=(1, 2, 3, 4, 5)),
    Image("c" * 64, 5, stamp=(1, 2, 3, 4, 5)),
)


def entry(*, known: bool = True, restored: bool = False, record_id: str = "r-1", undoes: str = "") -> Entry:
    return Entry(
        1, record_id, "a1", "c1", "file_write", "d/x", "b" * 64, 3, 0o644, 7, 8, undoes, 1.0,
        "a" * 64 if known else None, int(known), 9.0 if restored else None, "ann" if restored else "",
    )  # fmt: skip


NEWER = entry(record_id="r-2")
S = RollbackState


@pytest.mark.parametrize(
    ("record", "now", "newer", "expected", "refused"),
    [
        (entry(), AFTER, None, S.CAN_RESTORE, False),
        (entry(), AFTER, NEWER, S.CAN_RESTORE, False),
        (entry(), BEFORE, None, S.CAN_RESTORE, False),
        (entry(), OTHER, None, S.CONFLICT, True),
        (entry(), ABSENT, None, S.CONFLICT, True),
        (entry(), None, None, S.CONFLICT, True),
        (entry(), OTHER, NEWER, S.NEWER_EXISTS, True),
        (entry(known=False), OTHER, None, S.UNKNOWN, False),
        (entry(known=False), BEFORE, None, S.UNKNOWN, False),
        (entry(known=False), ABSENT, None, S.UNKNOWN, False),
        (entry(known=False), OTHER, NEWER, S.NEWER_EXISTS, True),
        (entry(restored=True), BEFORE, None, S.RESTORED, False),
        (entry(restored=True), OTHER, None, S.RESTORED, True),
        (entry(restored=True), AFTER, NEWER, S.CAN_RESTORE, False),
    ],
)
def test_state_and_conflict(record: Entry, now: Image | None, newer: Entry | None, expected: RollbackState, refused: bool) -> None:
    assert state(record, now, newer) is expected
    assert bool(conflict(record, now, newer)) is refused


def test_conflicts_name_what_to_do_or_who() -> None:
    assert "r-2" in conflict(entry(), OTHER, NEWER) and "changed again by a1" in conflict(entry(), OTHER, NEWER)
    assert "put back from r-1" in conflict(entry(), OTHER, entry(record_id="r-2", undoes="r-1"))
    assert "put back by ann" in conflict(entry(restored=True), OTHER, None)
    assert "it is gone" in conflict(entry(), ABSENT, None)


def test_dry_run_says_what_would_be_written() -> None:
    said = " ".join(dry_run(entry(), AFTER, ""))
    assert "Keeps what is on disk now (4 bytes" in said and "Puts back d/x: 3 bytes, mode 0644, owner 7:8" in said
    assert "Recreates d/x" in " ".join(dry_run(entry(), ABSENT, ""))
    assert "not known" in dry_run(entry(known=False), AFTER, "")[0]
    assert dry_run(entry(), AFTER, "because") == ("Refused: because", "Nothing would be written.")
    assert "already is" in dry_run(entry(), BEFORE, "")[0]


def test_dry_run_of_a_file_that_was_new() -> None:
    made = replace(entry(), before_sha256=None)
    assert any("Removes d/x" in line for line in dry_run(made, AFTER, ""))
