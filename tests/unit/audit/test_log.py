"""L2, L3 (in words), two writers, group commit, must-records, restarts."""

from __future__ import annotations

import itertools
import os
import shutil
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from console.audit.checkpoints import beside, read_checkpoints
from console.audit.database import SCHEMA, Damaged
from console.audit.log import AuditLog
from console.audit.reading import AuditReader
from console.audit.record import GENESIS, LIMIT_BYTES
from console.audit.segments import set_aside
from console.audit.verify import verify_file
from console.domain.errors import Conflict, NotRecorded, TooLarge, UsageProblem


def test_records_follow_each_other_and_come_back_exactly(log: AuditLog) -> None:
    hostile = "bob\n2026 INFO kill OFF\0\ud800\u202e<b>"
    first = log.append("ann", "kill", hostile, verdict="allow", agent_id="a1", data={"n": 1.5, "t": hostile})
    second = log.append("supervisor", "launch", "x")
    assert (first.seq, first.previous, second.previous) == (1, GENESIS, first.hash)
    assert log.page() == [second, first]
    assert log.head == (2, second.hash)
    assert log.verify().whole


def test_it_goes_on_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    for number in range(3):
        log = AuditLog(path)
        assert log.append("a", "k", str(number)).seq == number + 1
        log.close()
        log.close()
    verdict = verify_file(path)
    assert verdict.whole and verdict.records == 3 and verdict.checkpoint_seq == 3


def test_a_second_writer_is_refused_with_who_holds_it(log: AuditLog) -> None:
    with pytest.raises(Conflict, match=f"Process {os.getpid()} "):
        AuditLog(log.path)
    log.append("a", "k", "still works")


def test_threads_get_distinct_numbers_and_all_records_are_there(log: AuditLog) -> None:
    seen: list[int] = []

    def work(number: int) -> None:
        for i in range(50):
            seen.append(log.append(f"t{number}", "k", str(i), must=i % 7 == 0).seq)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(1, 401))
    assert log.verify().whole
    for number in range(8):  # of one thread, in its order
        mine = [r.what for r in reversed(log.page(limit=200, query=f"t{number}"))]
        assert mine == [str(i) for i in range(50)]


def test_what_is_not_json_is_refused_unless_it_must_be_recorded(log: AuditLog) -> None:
    with pytest.raises(UsageProblem):
        log.append("a", "k", "w", data={"x": float("nan")})
    with pytest.raises(TooLarge):
        log.append("a", "k", "w" * (LIMIT_BYTES + 1))
    assert log.total() == 0
    assert "left out" in log.append("a", "kill", "w" * LIMIT_BYTES, data={"x": float("nan")}, must=True).data["data"]


def test_after_close_nothing_is_recorded(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.db")
    log.close()
    with pytest.raises(NotRecorded, match="closed"):
        log.append("a", "k", "w")


def test_a_foreign_row_stops_the_writer(log: AuditLog) -> None:
    log.append("a", "k", "w")
    with closing(sqlite3.connect(log.path)) as other, other:
        other.execute("INSERT INTO records VALUES (2, 1.0, 'a', 'k', 'forged', '', '', '{}', 'x', 'y')")
    with pytest.raises(NotRecorded, match="not the one this writer wrote"):
        log.append("a", "k", "w")
    assert log.verify().first_bad == 2


def test_a_replaced_file_stops_the_writer(log: AuditLog) -> None:
    log.append("a", "k", "w")
    shutil.copy(log.path, log.path.with_suffix(".copy"))
    log.path.with_suffix(".copy").replace(log.path)
    with pytest.raises(NotRecorded, match="replaced"):
        log.append("a", "k", "w")
    log.path.unlink()
    with pytest.raises(NotRecorded):
        log.append("a", "k", "w", must=True)


def test_a_cut_that_no_checkpoint_covers_is_noticed_while_it_runs(log: AuditLog) -> None:
    for i in range(5):
        log.append("a", "k", str(i))
    with closing(sqlite3.connect(log.path)) as other, other:
        other.execute("DROP TRIGGER records_no_delete")
        other.execute("DELETE FROM records WHERE seq > 3")
        other.execute(sql_of("records_no_delete"))
    verdict = log.verify()
    assert (verdict.whole, verdict.first_bad, verdict.records) == (False, 4, 3)
    with pytest.raises(NotRecorded):
        log.append("a", "k", "on top of a cut log")


def sql_of(name: str) -> str:
    return SCHEMA[("trigger", name)]


def test_checkpoints_come_by_rows_and_at_once_for_a_kill(log: AuditLog) -> None:
    for i in range(9):
        log.append("a", "k", str(i))
    assert read_checkpoints(beside(log.path)).points[-1].seq == 0
    log.append("a", "k", "tenth")
    assert read_checkpoints(beside(log.path)).points[-1].seq == 10
    log.append("a", "kill", "all", must=True)
    assert read_checkpoints(beside(log.path)).points[-1].seq == 11


def test_checkpoints_come_by_time(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.db", checkpoint_s=0.1)
    log.append("a", "k", "w")
    deadline = time.monotonic() + 60
    while read_checkpoints(beside(log.path)).points[-1].seq < 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    log.close()
    assert read_checkpoints(beside(log.path)).points[-1].seq == 1


def test_a_checkpoint_that_fails_does_not_lose_the_record(log: AuditLog) -> None:
    beside(log.path).write_bytes(b"")
    log.append("a", "kill", "all", must=True)
    assert "changed by another process" in log.checkpoint_problem
    assert log.total() == 1
    assert not log.verify().whole


def test_the_clock_is_given(tmp_path: Path) -> None:
    ticks = itertools.count(100)
    log = AuditLog(tmp_path / "audit.db", clock=lambda: float(next(ticks)))
    first, second = log.append("a", "k", "1"), log.append("a", "k", "2")
    log.close()
    assert second.at > first.at >= 100.0


@pytest.mark.parametrize("content", [b"\0" * 16384, b"rubbish" * 5000])
def test_a_damaged_file_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "audit.db"
    path.write_bytes(content)
    with pytest.raises(Damaged) as caught:
        AuditLog(path)
    assert caught.value.remedy
    assert path.read_bytes() == content


def build(path: Path, rows: int = 15) -> None:
    log = AuditLog(path, checkpoint_rows=10)
    for i in range(rows):
        log.append("a", "k", str(i))
    log.close()


def test_a_removed_or_emptied_log_is_not_begun_anew_in_silence(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    build(path)
    path.write_bytes(b"")
    with pytest.raises(Damaged, match="records 1 to 15 are missing"):
        AuditLog(path)
    path.unlink()
    with pytest.raises(Damaged, match="records 1 to 15 are missing"):
        AuditLog(path)


@pytest.mark.parametrize("how", ["remove", "empty", "change"])
def test_without_its_checkpoints_a_log_is_not_whole(tmp_path: Path, how: str) -> None:
    path = tmp_path / "audit.db"
    build(path)
    noted = beside(path)
    if how == "remove":
        noted.unlink()
    else:
        noted.write_bytes(b"" if how == "empty" else noted.read_bytes().replace(b'"seq":15', b'"seq":14'))
    with pytest.raises(Damaged):
        AuditLog(path)
    assert not verify_file(path).whole


def test_a_crash_before_the_first_checkpoint_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    build(path, 0)
    beside(path).write_bytes(b"")
    AuditLog(path).close()
    beside(path).unlink()
    AuditLog(path).close()
    assert verify_file(path).whole


def test_a_changed_last_record_is_refused_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    build(path)
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("DROP TRIGGER records_no_update")
        other.execute("UPDATE records SET what='never mind' WHERE seq=15")
    with pytest.raises(Damaged, match="last record 15"):
        AuditLog(path)


def test_an_unusable_folder_is_not_recorded(tmp_path: Path) -> None:
    with pytest.raises(NotRecorded):
        AuditLog(tmp_path / "missing" / "audit.db")


def test_a_checkpoint_file_that_was_replaced_or_taken_away_is_said_while_it_is_written(log: AuditLog) -> None:
    noted = beside(log.path)
    old = noted.read_bytes()
    log.append("a", "k", "x")
    noted.rename(noted.with_suffix(".other"))
    assert "the checkpoint file is missing" in log.verify().why
    noted.write_bytes(old)
    verdict = log.verify()
    assert not verdict.whole and "replaced by another process" in verdict.why
    assert log.append("a", "k", "recorded all the same", must=True).seq == 2 and "replaced" in log.checkpoint_problem


@pytest.mark.parametrize("kind", ["pipe", "link", "dangling link"])
def test_what_is_no_plain_file_in_its_place_is_damage_and_set_aside(tmp_path: Path, kind: str) -> None:
    path, real = tmp_path / "audit.db", tmp_path / "real.db"
    AuditLog(real).close()
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(real if kind == "link" else tmp_path / "nowhere")
    assert "not a plain file" in verify_file(path).why
    with pytest.raises(Damaged, match="not a plain file"):
        AuditLog(path)
    assert os.path.lexists(set_aside(path)) and not os.path.lexists(path)
    AuditLog(path).close()


def test_a_file_that_was_replaced_by_its_own_copy_is_said_and_takes_no_record(log: AuditLog) -> None:
    log.append("a", "k", "x")
    with closing(sqlite3.connect(log.path)) as connection:
        connection.execute("VACUUM INTO ?", (str(log.path.with_name("copy.db")),))
    log.path.with_name("copy.db").replace(log.path)
    verdict = log.verify()
    assert not verdict.whole and verdict.why
    with pytest.raises(NotRecorded, match="replaced by another process") as refused:
        log.append("a", "k", "y")
    assert "evidence" in refused.value.remedy
    log.path.unlink()
    assert not log.verify().whole


def test_a_clock_that_is_set_back_breaks_nothing(tmp_path: Path) -> None:
    times = itertools.count(1e9, -3600.0)
    log = AuditLog(tmp_path / "audit.db", clock=lambda: next(times), checkpoint_rows=2)
    for number in range(6):
        log.append("a", "k", str(number))
    log.close()
    assert verify_file(log.path).whole and [r.what for r in AuditReader(log.path).page()] == ["5", "4", "3", "2", "1", "0"]
    again = AuditLog(log.path, clock=lambda: 5.0)
    assert again.append("a", "k", "long ago").seq == 7 and again.verify().whole
    again.close()
