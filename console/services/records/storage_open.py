"""Opens what is kept. A damaged audit log or ledger is set aside whole, a new one begins, and the instance starts killed."""

from __future__ import annotations

import logging
import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from console.audit.anchors import broken_in, noted_in
from console.audit.checkpoints import beside
from console.audit.database import Damaged
from console.audit.log import AuditLog
from console.audit.receipt_seal import SUFFIX
from console.audit.segments import set_aside
from console.audit.set_aside import LOST, PUT_BACK, SET_ASIDE
from console.audit.verify_anchors import FIELD, STARTED, foreign
from console.audit.verify_presence import compare
from console.domain.engine.command import Record
from console.domain.errors import Conflict, ConsoleError
from console.domain.process.durable import replace_file
from console.domain.process.failpoints import failpoint
from console.domain.rollback import RECORDS_FILE
from console.killswitch.client.guard_client import GuardClient
from console.ledger.store import Ledger
from console.settings.places import Places

log = logging.getLogger(__name__)
LOSS = "ledger-lost"
"""A file: why the ledger was lost. It is there from before a new one begins until every session is SECRET; a crash loosens nothing."""
DAMAGED, MISSING = "the ledger is damaged", "the ledger is missing"
_DAMAGED = ("SQLITE_NOTADB", "SQLITE_CORRUPT")


def open_audit(places: Places) -> tuple[AuditLog, Path | None]:
    """Open the log. Returns it, and the place to which a damaged one was moved. The whole chain is verified, old records included.

    An older copy of the log and its checkpoints counts as damaged too: the ledger knows of newer records.

    Where the log and its checkpoints are gone though there were some, a new log starts. Its first record tells that, and the instance
    starts killed.
    """
    if not os.path.lexists(places.audit_db) and not os.path.lexists(beside(places.audit_db)) and _kept_one(places):
        log.error("the audit log is missing")
        start_killed(places, "the audit log is missing")
        audit = AuditLog(places.audit_db)
        audit.append("supervisor", LOST, "the log before this one is missing: what it held is not known", verdict="not_proven", must=True)
        return audit, None
    try:
        audit = AuditLog(places.audit_db)
    except Damaged as error:
        return _begin_anew(places, str(error))
    verdict = audit.verify()
    why = verdict.why or foreign(places.audit_db, places.instance_id) or broken_in(places.audit_db, noted_in(places.ledger_db))
    if not why:
        return audit, None
    audit.close()
    return _begin_anew(places, why)


def losses_found(places: Places, aside: Path | None, ledger_lost: str) -> list[Record]:
    """What this start found lost, for the record; in words for people as well. Blocks.

    A log that was put back together with the ledger is told by the receipts that were sealed since.
    """
    found = list[Record]()

    def lost(kind: str, words: str) -> None:
        found.append(Record("supervisor", kind, words, verdict="not_proven", must=True))

    if aside is not None:
        lost(SET_ASIDE, f"a damaged audit log was set aside as {aside.parent.name}; a new segment begins and this host starts killed")
    else:
        receipts = sorted(places.receipts_dir.glob(f"*{SUFFIX}"))
        seen = compare(places.audit_db, receipts, places.keys_dir / "host-key.pub")
        if seen.is_older:
            lost(PUT_BACK, seen.why)
    if ledger_lost:
        lost("ledger.lost", "the ledger was lost: every session with a workspace reads as SECRET from now on")
    return found


def _kept_one(places: Places) -> bool:
    """Whether this instance has had an audit log: nothing else of what is kept is made before it."""
    return os.path.lexists(places.rollback_dir / RECORDS_FILE)


def _begin_anew(places: Places, why: str) -> tuple[AuditLog, Path]:
    log.error("the audit log is damaged: %s", why)
    start_killed(places, "the audit log is damaged")  # before the damage is out of sight: a crash in between finds it again
    aside = set_aside(places.audit_db)
    failpoint("books.aside")
    return AuditLog(places.audit_db), aside


def started(places: Places, guard_pid: int) -> Record:
    """The record of a start; it names the instance, so that a log that was taken from another is told."""
    return Record("supervisor", STARTED, f"pid {os.getpid()}, guard pid {guard_pid}", data={FIELD: places.instance_id})


def open_ledger(path: Path) -> tuple[Ledger, Path | None]:
    """The ledger, and where a damaged one was put. A disk that refuses, or a newer version's ledger, stays an error."""
    try:
        return Ledger(path), None
    except Conflict:
        raise
    except ConsoleError as error:
        if not is_damaged(path):
            raise
        log.error("the ledger is damaged: %s", error)
        note_loss(path.parent, DAMAGED)
        aside = set_aside(path)
        failpoint("books.aside")
        return Ledger(path), aside


def note_loss(state_dir: Path, why: str) -> None:
    """Durable when it returns. Raises ConsoleError."""
    try:
        replace_file(state_dir / LOSS, why.encode())
    except OSError as error:
        raise ConsoleError(f"{state_dir} cannot be written: {error.strerror}.", "Free space or mend the disk.") from error


def noted_loss(state_dir: Path) -> str:
    """Why the ledger counts as lost, or nothing. What cannot be read counts as damage."""
    try:
        return (state_dir / LOSS).read_text(errors="replace") or DAMAGED
    except FileNotFoundError:
        return ""
    except OSError:
        return DAMAGED


def forget_loss(state_dir: Path) -> None:
    """Every session was made SECRET and that is on disk."""
    with suppress(OSError):  # then it is said and done once more at the next start
        (state_dir / LOSS).unlink(missing_ok=True)


def is_damaged(path: Path) -> bool:
    """Whether SQLite says that this is no database, or not a whole one."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok")
    except sqlite3.DatabaseError as error:
        return getattr(error, "sqlite_errorname", "") in _DAMAGED


def start_killed(places: Places, why: str) -> None:
    """Everything is pressed before anything is restored. ConsoleError when no guard answers: then nothing starts."""
    guard = GuardClient(places.guard_supervisor_sock)
    try:
        guard.press("all", why, "supervisor", timeout_s=10)
    finally:
        guard.close()
