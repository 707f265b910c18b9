"""L1 and fault 11: every kind of tampering is found, at the right row."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from console.audit.checkpoints import beside
from console.audit.database import SCHEMA
from console.audit.log import AuditLog
from console.audit.record import GENESIS, draft
from console.audit.verify import verify_file

ROWS = 45  # checkpoints at 10, 20, 30, 40 and, at close, 45


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "audit.db"
    log = AuditLog(made, checkpoint_rows=10)
    for i in range(ROWS):
        log.append("ann", "k", f"record {i + 1}", data={"i": i})
    log.close()
    return made


def tamper(path: Path, change: Callable[[sqlite3.Connection], object]) -> None:
    """As someone who can write the file: triggers out, change, triggers back."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for kind, name in SCHEMA:
            if kind == "trigger":
                connection.execute(f"DROP TRIGGER {name}")
        change(connection)
        for (kind, _), sql in SCHEMA.items():
            if kind == "trigger":
                connection.execute(sql)


def test_a_whole_log_is_whole(path: Path) -> None:
    verdict = verify_file(path)
    assert verdict.whole and verdict.records == ROWS and verdict.first_bad is None and verdict.why == ""
    assert verdict.checkpoint_seq == ROWS and verdict.checkpoint_at is not None


@pytest.mark.parametrize("column", ["actor", "kind", "what", "verdict", "agent_id", "data", "previous", "hash"])
def test_an_edited_field_is_found_at_its_row(path: Path, column: str) -> None:
    tamper(path, lambda c: c.execute(f"UPDATE records SET {column} = {column} || ' ' WHERE seq = 17"))
    assert verify_file(path).first_bad == 17


def test_an_edited_time_is_found(path: Path) -> None:
    tamper(path, lambda c: c.execute("UPDATE records SET at = at + 1 WHERE seq = 1"))
    assert verify_file(path).first_bad == 1


def test_a_deleted_middle_is_found(path: Path) -> None:
    tamper(path, lambda c: c.execute("DELETE FROM records WHERE seq = 23"))
    verdict = verify_file(path)
    assert verdict.first_bad == 23 and "missing" in verdict.why


def test_a_deleted_middle_closed_up_is_found(path: Path) -> None:
    def close_up(c: sqlite3.Connection) -> None:
        c.execute("DELETE FROM records WHERE seq = 23")
        for seq in range(24, ROWS + 1):
            c.execute("UPDATE records SET seq = ? WHERE seq = ?", (seq - 1, seq))

    tamper(path, close_up)
    assert verify_file(path).first_bad == 23


@pytest.mark.parametrize("left", [44, 41, 40, 39, 0])
def test_a_truncated_tail_is_found(path: Path, left: int) -> None:
    tamper(path, lambda c: c.execute("DELETE FROM records WHERE seq > ?", (left,)))
    verdict = verify_file(path)
    assert (verdict.whole, verdict.first_bad, verdict.records) == (False, left + 1, left)
    assert f"records {left + 1} to {ROWS} are missing" in verdict.why


def test_reordered_rows_are_found(path: Path) -> None:
    def swap(c: sqlite3.Connection) -> None:
        for old, new in ((7, -1), (8, 7), (-1, 8)):
            c.execute("UPDATE records SET seq = ? WHERE seq = ?", (new, old))

    tamper(path, swap)
    assert verify_file(path).first_bad == 7


def rewrite(connection: sqlite3.Connection, start: int) -> None:
    """Every hash from ``start`` on made consistent again, as a thief of the whole file would."""
    rows = connection.execute(
        "SELECT seq, at, actor, kind, what, verdict, agent_id FROM records WHERE seq >= ? ORDER BY seq", (start,)
    ).fetchall()
    before = connection.execute("SELECT hash FROM records WHERE seq = ?", (start - 1,)).fetchone()
    previous = before[0] if before else GENESIS
    for seq, at, actor, kind, _, verdict, agent_id in rows:
        made = draft(at, (actor, kind, "rewritten", verdict, agent_id), {}).numbered(seq, previous)
        connection.execute("UPDATE records SET what='rewritten', data='{}', previous=?, hash=? WHERE seq=?", (previous, made.hash, seq))
        previous = made.hash


@pytest.mark.parametrize(("start", "named"), [(1, 1), (14, 11), (31, 31), (43, 41)])
def test_a_consistent_rewrite_is_found_by_the_checkpoints(path: Path, start: int, named: int) -> None:
    tamper(path, lambda c: rewrite(c, start))
    verdict = verify_file(path)
    assert verdict.first_bad == named and "rewritten" in verdict.why


def test_a_rewrite_behind_a_running_writers_back_is_found_without_a_checkpoint(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.db")
    for i in range(5):
        log.append("a", "k", str(i))
    tamper(log.path, lambda c: rewrite(c, 2))
    assert verify_file(log.path).whole  # the honest limit: nothing off the host, nobody running
    verdict = log.verify()
    assert verdict.first_bad == 1 and "remembers another head" in verdict.why
    log.close()


def test_without_the_triggers_it_is_not_whole(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TRIGGER records_no_delete")
    assert "records_no_delete" in verify_file(path).why
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM records WHERE seq = 9")
    assert verify_file(path).first_bad == 9, "the record is the better answer than the trigger"


def test_a_table_that_is_not_ours_is_not_read(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ALTER TABLE records RENAME TO kept")
        connection.execute("CREATE VIEW records AS SELECT * FROM kept")
    verdict = verify_file(path)
    assert not verdict.whole and verdict.records == 0 and "table records" in verdict.why


@pytest.mark.parametrize("how", ["zeroed header", "zeroed", "rubbish", "cut in half", "empty", "gone"])
def test_a_broken_file_is_said_in_words(path: Path, how: str) -> None:
    raw = path.read_bytes()
    for side in ("-wal", "-shm"):
        path.with_name(path.name + side).unlink(missing_ok=True)
    broken = {
        "zeroed header": b"\0" * 100 + raw[100:],
        "zeroed": b"\0" * len(raw),
        "rubbish": b"rubbish!" * (len(raw) // 8),
        "cut in half": raw[: len(raw) // 2],
        "empty": b"",
    }
    path.unlink() if how == "gone" else path.write_bytes(broken[how])
    verdict = verify_file(path)
    assert not verdict.whole and verdict.why
    assert verdict.records == 0 or how == "cut in half"


def test_a_flipped_byte_in_the_middle_is_found_at_its_row(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    where = raw.index(b"record 29")
    raw[where + 7] ^= 1
    path.write_bytes(bytes(raw))
    assert verify_file(path).first_bad == 29


def test_every_flipped_byte_is_found_or_harmless(path: Path) -> None:
    whole = path.read_bytes()
    seen = rows_of(path)
    for where in range(100, len(whole), max(1, len(whole) // 120)):
        raw = bytearray(whole)
        raw[where] ^= 0x41
        path.write_bytes(bytes(raw))
        verdict = verify_file(path)
        if verdict.whole:  # unused space of a page
            assert rows_of(path) == seen


def rows_of(path: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT * FROM records ORDER BY seq").fetchall()


def test_a_log_in_a_folder_that_cannot_be_written_is_verified(path: Path) -> None:
    for side in ("-wal", "-shm"):
        path.with_name(path.name + side).unlink(missing_ok=True)
    path.parent.chmod(0o500)
    try:
        assert verify_file(path).whole
    finally:
        path.parent.chmod(0o700)


def test_checkpoints_elsewhere_can_be_named(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "witness"
    copy.write_bytes(beside(path).read_bytes())
    assert verify_file(path, copy).whole
    assert "missing" in verify_file(path, tmp_path / "nowhere").why
    assert "cannot be read" in verify_file(path, tmp_path).why
