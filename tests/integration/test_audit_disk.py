"""L3 and faults 1 to 3: killed in mid-write, full disk, read-only disk, failing writes. Acknowledged records are never lost."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from console.audit.log import AuditLog
from console.audit.verify import verify_file
from tests.fakes.killed_writer import killed_in_mid_write
from tests.fakes.private_disk import run_on_a_small_disk

pytestmark = pytest.mark.fault

_WRITER = """
from console.audit.log import AuditLog
log = AuditLog(folder / "audit.db", checkpoint_rows=7)
def work(number):
    i = 0
    while True:
        i += 1
        acknowledge(str(log.append(f"t{number}", "k", f"record {i}" * 20, must=i % 11 == 0).seq))
for n in range(4):
    threading.Thread(target=work, args=(n,)).start()
"""


def test_sigkill_in_mid_write_loses_no_acknowledged_record(tmp_path: Path, full_counts: bool) -> None:
    chance = random.Random(7)
    acknowledged: set[int] = set()
    for _ in range(200 if full_counts else 5):
        acknowledged |= {int(line) for line in killed_in_mid_write(tmp_path, _WRITER, chance.uniform(0.02, 0.25))}
        verdict = verify_file(tmp_path / "audit.db")
        assert verdict.whole, verdict.why
        assert verdict.records >= max(acknowledged)
    log = AuditLog(tmp_path / "audit.db")
    assert log.append("a", "k", "goes on").seq == verdict.records + 1
    assert log.verify().whole
    log.close()


def test_a_full_disk_refuses_actions_but_records_kills_and_recovers_alone(tmp_path: Path) -> None:
    said = run_on_a_small_disk(
        tmp_path / "disk",
        """
        from console.audit.log import AuditLog
        from console.audit.verify import verify_file
        from console.domain.errors import NotRecorded

        def tries(log, must):
            done = 0
            for i in range(20):
                try:
                    log.append("a", "kill" if must else "launch", "x" * 300, must=must)
                    done += 1
                except NotRecorded as error:
                    said["words"] = str(error)
            return done

        said = {}
        log = AuditLog(disk / "audit.db")
        said["before"] = tries(log, False)
        said["acked"] = 0

        def fill_up(log):
            fill()
            while True:   # what room SQLite had already taken may be used up
                try:
                    log.append("a", "launch", "x" * 300)
                    said["acked"] += 1
                except NotRecorded:
                    break

        fill_up(log)
        said["kills"] = tries(log, True)
        said["actions"] = tries(log, False)
        said["kills again"] = tries(log, True)
        said["live"] = log.verify().why
        log.close()
        log = AuditLog(disk / "audit.db")   # a supervisor that starts on the full disk
        fill_up(log)   # closing had given SQLite's own log back
        said["actions after restart"] = tries(log, False)
        said["kills after restart"] = tries(log, True)
        empty()
        said["recovered"] = tries(log, False)
        said["reserve"] = (disk / "audit.reserve").stat().st_blocks * 512
        said["total"] = log.total()
        log.close()
        said["whole"] = verify_file(disk / "audit.db").why
        print(json.dumps(said))
        """,
    )
    assert said["before"] == 20
    assert said["kills"] == said["kills again"] == said["kills after restart"] == 20
    assert said["actions"] == said["actions after restart"] == 0
    assert "full" in said["words"]
    assert said["recovered"] == 20 and said["reserve"] >= 256 * 1024
    assert said["total"] == 100 + said["acked"]
    assert said["live"] == said["whole"] == ""


def test_failing_writes_refuse_and_leave_nothing_half_written(tmp_path: Path) -> None:
    said = run_on_a_small_disk(
        tmp_path / "disk",
        """
        import resource, signal
        from console.audit.log import AuditLog
        from console.domain.errors import NotRecorded
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        log = AuditLog(disk / "audit.db")
        log.append("a", "k", "first")
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))   # every write beyond 100 bytes of a file fails (EFBIG)
        refused = []
        for must in (False, True, False):
            try:
                log.append("a", "k", "x" * 5000, must=must)
            except NotRecorded as error:
                refused.append(str(error))
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        second = log.append("a", "k", "second").seq
        print(json.dumps({"refused": refused, "second": second, "why": log.verify().why, "rows": [r.what for r in log.page()]}))
        log.close()
        """,
        size="8m",
    )
    assert len(said["refused"]) == 3 and all(said["refused"])
    assert said["second"] == 2 and said["rows"] == ["second", "first"] and said["why"] == ""


def test_a_read_only_disk_refuses_the_writer_and_serves_readers(tmp_path: Path) -> None:
    said = run_on_a_small_disk(
        tmp_path / "disk",
        """
        from console.audit.log import AuditLog
        from console.audit.reading import AuditReader
        from console.audit.verify import verify_file
        from console.domain.errors import NotRecorded
        log = AuditLog(disk / "audit.db")
        log.append("a", "k", "first")
        log.close()
        read_only(True)
        said = {"refused": ""}
        try:
            AuditLog(disk / "audit.db")
        except NotRecorded as error:
            said["refused"] = str(error)
        verdict = verify_file(disk / "audit.db")
        said["whole"], said["why"] = verdict.whole, verdict.why
        said["rows"] = [r.what for r in AuditReader(disk / "audit.db").page()]
        read_only(False)
        log = AuditLog(disk / "audit.db")
        said["next"] = log.append("a", "k", "second").seq
        log.close()
        print(json.dumps(said))
        """,
    )
    assert "Read-only" in said["refused"]
    assert said["whole"] and said["rows"] == ["first"] and said["next"] == 2


def test_verify_and_pages_hold_while_it_is_being_written(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    killed_in_mid_write(tmp_path, _WRITER, 0.05)
    log = AuditLog(path, checkpoint_rows=5)
    for i in range(300):
        log.append("a", "k", str(i))
        if i % 25 == 0:
            assert verify_file(path).whole and log.verify().whole
            assert log.page(limit=1)[0].what == str(i)
    log.close()
