"""Faults 11, 12 and 17: whatever is restarted, lost, damaged or put back from a backup, what was killed stays killed and nothing starts."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from console.audit.verify import verify_file
from console.domain.errors import Conflict, ConsoleError
from console.domain.network import NetworkMode, Sensitivity
from tests.fakes.broken import Broken
from tests.fakes.instance import until
from tests.fakes.invariants import check_invariants, latched, living
from tests.fault.conftest import Make, sparse


def nothing_starts(it: Broken) -> None:
    assert it.api.fleet().killed
    with pytest.raises(ConsoleError, match="stopped|killed"):
        it.launch("sleep", "300")
    assert not living(it.places)


def test_restarts_while_killed_start_nothing(broken: Make, full_counts: bool) -> None:
    it = broken()
    it.start()
    for _ in range(2):
        it.stubborn()
    it.receipt_of(it.api.activate("the test").kill_id)
    for _ in range(50 if full_counts else 3):
        it.stop(signal.SIGKILL)
        it.start()
        nothing_starts(it)
        assert it.api.fleet().kill_reason == it.api.kill_switch().reason == "the test", "why is known to who starts, too"
    for _ in range(50 if full_counts else 3):
        before = it.living_guard()
        os.kill(before, signal.SIGKILL)  # our own guard, named by its own answer
        until(lambda before=before: it.guard_pid() not in (0, before), words="its supervisor starts another")  # type: ignore[misc]
        nothing_starts(it)
    check_invariants(it.places, killed=True)


def test_a_ledger_from_before_the_kill_brings_nobody_back(broken: Make) -> None:
    it = broken()
    it.start()
    it.stubborn()
    backup = it.state_dir / "backup.db"
    with closing(sqlite3.connect(it.places.ledger_db)) as source, closing(sqlite3.connect(backup)) as target:
        source.backup(target)
    it.receipt_of(it.api.activate("the test").kill_id)
    it.stop()
    for name in ("ledger.db-wal", "ledger.db-shm"):
        (it.state_dir / name).unlink(missing_ok=True)
    backup.rename(it.places.ledger_db)
    it.start()
    nothing_starts(it)
    check_invariants(it.places, killed=True)


def flip(path: Path, where: float) -> None:
    with path.open("r+b") as file:
        at = int(path.stat().st_size * where)
        file.seek(at)
        old = file.read(64)
        file.seek(at)
        file.write(bytes(byte ^ 0xFF for byte in old))


def header_zeroed(audit: Path) -> None:
    with audit.open("r+b") as file:
        file.write(bytes(100))


def tail_cut(audit: Path) -> None:
    with closing(sqlite3.connect(audit)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("DELETE FROM records WHERE seq > (SELECT max(seq) - 2 FROM records)")
        connection.commit()


def middle_changed(audit: Path) -> None:
    with closing(sqlite3.connect(audit)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("UPDATE records SET what = 'nothing happened' WHERE seq = 2")
        connection.commit()


@pytest.mark.parametrize("damage", [header_zeroed, tail_cut, middle_changed])
def test_on_a_damaged_audit_it_starts_killed_with_a_new_segment_and_the_old_one_kept(broken: Make, damage: Callable[[Path], None]) -> None:
    it = broken()
    it.start()
    it.stubborn()
    it.stop()
    damage(it.places.audit_db)
    it.start()
    until(lambda: not living(it.places), words="nobody runs without a record")
    until(lambda: it.api.fleet().killed)
    check_invariants(it.places, killed=True)
    [aside] = it.state_dir.glob("audit-set-aside-*/audit.db")
    assert not verify_file(aside).whole
    until(lambda: "set aside" in str(it.api.status().notices), words="every console says so")
    it.receipt_of()
    it.api.rearm("looked at it")
    it.state_becomes(it.launch("sleep", "300"), "running")
    check_invariants(it.places, killed=False)


def test_on_a_damaged_ledger_it_starts_killed_and_every_session_is_secret(broken: Make) -> None:
    it = broken()
    it.start()
    it.stubborn(context_id="vault")
    it.stop()
    shutil.copy(it.places.ledger_db, it.state_dir / "kept.db")
    for name in ("ledger.db-wal", "ledger.db-shm"):
        (it.state_dir / name).unlink(missing_ok=True)
    header_zeroed(it.places.ledger_db)
    it.start()
    until(lambda: not living(it.places), words="nobody runs whom no ledger knows")
    ratchet = {"vault": (Sensitivity.SECRET, NetworkMode.NONE)}
    until(lambda: latched(it.places))
    check_invariants(it.places, killed=True, ratchet={"vault": (Sensitivity.SECRET, NetworkMode.FULL)})
    assert list(it.state_dir.glob("ledger-set-aside-*/ledger.db")), "the damaged one is kept"
    it.receipt_of()
    it.api.rearm("looked at it")
    again = it.agent(it.launch("sleep", "300", context_id="vault"))
    assert (again.sensitivity, again.network_mode) == ("SECRET", "NONE")
    check_invariants(it.places, killed=False, ratchet=ratchet)


def rearmed(it: Broken) -> bool:
    """False while one of its presses still goes on: a loss that is found at a start may press once more."""
    try:
        it.api.rearm("looked at it")
    except Conflict:
        return False
    return True


@pytest.mark.parametrize("book", sparse(["ledger.db", "audit.db"], ("ledger.db",)))
def test_a_supervisor_that_dies_while_it_sets_a_damaged_book_aside_is_killed_all_the_same(broken: Make, book: str) -> None:
    it = broken()
    it.start()
    it.stubborn(context_id="vault")
    it.stop()
    for name in (f"{book}-wal", f"{book}-shm"):
        (it.state_dir / name).unlink(missing_ok=True)
    header_zeroed(it.state_dir / book)
    it.arm("books.aside:kill")
    assert not it.try_to_start() and it.reached() == "books.aside"
    it.arm("")
    assert not (it.state_dir / book).exists(), "the damage is out of sight"
    it.start()
    until(lambda: not living(it.places), words="nobody runs whom no book knows")
    until(lambda: latched(it.places))
    lost = {"vault": (Sensitivity.SECRET, NetworkMode.FULL)} if book == "ledger.db" else {}
    check_invariants(it.places, killed=True, ratchet=lost)
    until(lambda: ("the ledger was lost" in str(it.api.status().notices)) == (book == "ledger.db"))
    it.receipt_of()
    until(lambda: rearmed(it), words="no press goes on any more")
    it.stop()
    it.start()
    assert not it.api.fleet().killed and "lost" not in str(it.api.status().notices), "said and done once"
    check_invariants(it.places, killed=False, ratchet=lost)


@pytest.mark.parametrize("damage", sparse(["missing", "cut", "changed"], ("missing", "changed")))
def test_a_lost_or_damaged_latch_is_killed_when_everything_starts_again(broken: Make, damage: str) -> None:
    it = broken()
    it.start()
    it.stubborn()
    guard = it.living_guard()
    it.stop(signal.SIGKILL)
    os.kill(guard, signal.SIGKILL)  # our own guard, named by its own answer
    latch = it.places.guard_dir / "latch.json"
    until(lambda: not it.guard_pid())
    if damage == "missing":
        latch.unlink()
    elif damage == "cut":
        latch.write_bytes(latch.read_bytes()[:-10])
    else:
        flip(latch, 0.4)
    it.start()
    until(lambda: not living(it.places), words="it reads as killed")
    check_invariants(it.places, killed=True)
    until(lambda: it.api.fleet().killed)
