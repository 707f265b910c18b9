"""The append-only log: one writer, records durable before `append` returns, room kept for the ones that must be written."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from console.audit.checkpoints import Checkpoint, CheckpointFile, Checkpoints, beside, read_checkpoints
from console.audit.database import COLUMNS, damaged, is_damage, open_writer, reason
from console.audit.reading import PAGE_MAX, AuditReader
from console.audit.record import GENESIS, Draft, Record, digest, draft, shortened, text_of
from console.audit.verify import Verdict, verify_file
from console.domain.errors import Conflict, NotRecorded, UsageProblem
from console.domain.process.failpoints import failpoint

# These two bound how many of the newest records a cut end can take unseen (decision 0009).
CHECKPOINT_ROWS = 256
CHECKPOINT_S = 60.0
# Measured on a full disk: this much made room for the row of a kill (decision 0009).
RESERVE_BYTES = 256 * 1024
_REMEDY = "Free space or repair the disk. Stopping and tightening still work."
_REPLACED = "its file was replaced by another process"
_EVIDENCE = (
    "Keep the state directory as evidence: another process writes in it. Stopping and tightening still work. A restart checks it all."
)


class _Pending:
    """One append that waits for its commit."""

    def __init__(self, content: Draft, must: bool) -> None:
        self.content = content
        self.must = must
        self.record: Record | None = None
        self.problem = ""

    @property
    def settled(self) -> bool:
        return self.record is not None or bool(self.problem)


class AuditLog:
    """The writing side of the log. Thread-safe: the first thread at the disk commits for all that wait (group commit)."""

    def __init__(
        self,
        path: Path,
        *,
        clock: Callable[[], float] = time.time,
        checkpoint_rows: int = CHECKPOINT_ROWS,
        checkpoint_s: float = CHECKPOINT_S,
        reserve_bytes: int = RESERVE_BYTES,
    ) -> None:
        """Opens or begins the log. Raises Damaged (set it aside), Conflict (another writer, a newer schema), NotRecorded."""
        self.path = path
        self._clock = clock
        self._checkpoint_rows = checkpoint_rows
        self._checkpoint_s = checkpoint_s
        self._waiting: list[_Pending] = []
        self._waiting_lock = threading.Lock()
        self._disk_lock = threading.Lock()
        self._closing = threading.Event()
        self._reserve = Reserve(path.with_suffix(".reserve"), reserve_bytes)
        self.checkpoint_problem = ""
        """Why the last checkpoint could not be written, or empty; records are not affected."""
        self._lock_fd = _lock(path.with_suffix(".lock"))
        try:
            self._open()
        except BaseException:
            os.close(self._lock_fd)
            raise
        self._ticker = threading.Thread(target=self._tick, name="audit-checkpoints", daemon=True)
        self._ticker.start()

    def append(
        self,
        actor: str,
        kind: str,
        what: str,
        *,
        verdict: str = "",
        agent_id: str = "",
        data: Mapping[str, Any] | None = None,
        must: bool = False,
    ) -> Record:
        """Write one record, on disk when this returns. ``must`` is for kills and stops: it may use the reserve of a full disk.

        Raises NotRecorded: then nothing was written, and the action must not be taken. Raises UsageProblem and TooLarge on data that cannot
        be recorded. With ``must`` the record is written without such data, with a note.
        """
        pending = _Pending(self._draft((actor, kind, what, verdict, agent_id), data, must), must)
        with self._waiting_lock:
            self._waiting.append(pending)
        with self._disk_lock:
            if not pending.settled:
                with self._waiting_lock:
                    batch, self._waiting = self._waiting, []
                self._write(batch)
        if pending.record is None:
            remedy = _EVIDENCE if pending.problem == _REPLACED else _REMEDY
            raise NotRecorded(f"The audit log could not be written: {pending.problem or 'it was interrupted'}.", remedy)
        return pending.record

    @property
    def head(self) -> tuple[int, str]:
        """Number and hash of the newest record; (0, GENESIS) when there is none."""
        return self._head

    def verify(self) -> Verdict:
        """Verifies the file against its checkpoints and against what this writer remembers."""
        with self._disk_lock:
            head, foreign = self._head, "" if self._closing.is_set() else _foreign(self.path, self._identity, self._checkpoints)
        found = verify_file(self.path, beside(self.path), expect_head=head)
        return replace(found, whole=False, why=f"{foreign}.") if foreign and found.whole else found

    def page(self, before: int | None = None, limit: int = PAGE_MAX, query: str = "") -> list[Record]:
        """As `AuditReader.page`."""
        return AuditReader(self.path).page(before, limit, query)

    def total(self) -> int:
        """How many records there are."""
        return self._head[0]

    def export(self, target: Path | IO[str], fmt: str = "jsonl") -> int:
        """As `AuditReader.export`."""
        return AuditReader(self.path).export(target, fmt)

    def close(self) -> None:
        """Writes a last checkpoint and closes; later appends raise NotRecorded. May be called twice."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._ticker.join()
        with self._disk_lock:
            self._checkpoint()
            self._checkpoints.close()
            self._connection.close()
            os.close(self._lock_fd)

    # --- opening --------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        try:
            noted = read_checkpoints(beside(self.path))
            self._connection = self._connect()
            try:
                self._begin(noted)
            except BaseException:
                self._connection.close()
                raise
        except (sqlite3.Error, OSError) as error:
            if is_damage(error):
                raise damaged(self.path, reason(error)) from error
            raise NotRecorded(f"The audit log {self.path} cannot be opened: {reason(error)}.", _REMEDY) from error

    def _begin(self, noted: Checkpoints) -> None:
        self._identity = _identity(self.path)
        self._head = self._read_head(noted)
        self._checkpoints = CheckpointFile(beside(self.path), noted)
        self._checkpointed = noted.points[-1].seq if noted.points else -1
        self._checkpoint()
        if self._checkpointed < 0:  # without its first checkpoint a log would look cut later
            self._checkpoints.close()
            raise OSError(0, self.checkpoint_problem)
        self._reserve.take()

    def _connect(self) -> sqlite3.Connection:
        try:
            return open_writer(self.path)
        except (sqlite3.Error, OSError) as error:
            if is_damage(error):
                raise
            self._reserve.free()  # a full disk must not keep a supervisor from starting to say so
            return open_writer(self.path)

    def _read_head(self, noted: Checkpoints) -> tuple[int, str]:
        """The newest record, checked for itself and against the newest checkpoint; the whole is `verify`'s task."""
        row = self._connection.execute(f"SELECT {COLUMNS} FROM records ORDER BY seq DESC LIMIT 1").fetchone()
        seq, own = (0, GENESIS) if row is None else (int(row[0]), text_of(row[-1]))
        if row is not None and digest(seq, row[1], row[2:7], row[7], text_of(row[8])) != own:
            raise damaged(self.path, f"its last record {seq} was changed after it was written.")
        if noted.problem and (seq or noted.lines):
            raise damaged(self.path, f"{noted.problem}.")
        if noted.points:
            last = noted.points[-1]
            # The chain alone does not show a cut end (decision 0009); the checkpoint file does.
            if last.seq > seq:
                raise damaged(self.path, f"records {seq + 1} to {last.seq} are missing at the end.")
            there = self._connection.execute("SELECT hash FROM records WHERE seq = ?", (last.seq,)).fetchone()
            if last.seq and (there is None or text_of(there[0]) != last.hash):
                raise damaged(self.path, f"record {last.seq} is not the one its checkpoint names.")
        return seq, own

    # --- writing --------------------------------------------------------------------------------------------------

    def _draft(self, texts: tuple[str, str, str, str, str], data: Mapping[str, Any] | None, must: bool) -> Draft:
        at = self._clock()
        try:
            return draft(at, texts, data)
        except UsageProblem:
            if not must:
                raise
            return shortened(at, texts)

    def _write(self, batch: list[_Pending]) -> None:
        """Settles every pending append of the batch."""
        if self._closing.is_set():
            _fail(batch, "it is closed")
            return
        plain = [p for p in batch if not p.must]
        if plain and not self._reserve.take():
            _fail(plain, "the disk is full")
            batch = [p for p in batch if p.must]
        problem = self._try(batch)
        if problem and any(p.must for p in batch):
            _fail([p for p in batch if not p.must], problem)
            batch = [p for p in batch if p.must]
            self._reserve.free()
            problem = self._try(batch)
        if problem:
            _fail(batch, problem)
            return
        urgent = any(p.must for p in batch)
        if urgent or self._head[0] - self._checkpointed >= self._checkpoint_rows:
            self._checkpoint()

    def _try(self, batch: list[_Pending]) -> str:
        """One transaction for the batch; why it failed, or ''."""
        if not batch:
            return ""
        try:
            # SQLite would go on writing into the replaced inode, and every such record would be lost to readers.
            if _identity(self.path) != self._identity:
                return _REPLACED
            records = self._commit([p.content for p in batch])
        except (sqlite3.Error, OSError) as error:
            return reason(error)
        for pending, record in zip(batch, records, strict=True):
            pending.record = record
        self._head = (records[-1].seq, records[-1].hash)
        return ""

    def _commit(self, contents: list[Draft]) -> list[Record]:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            row = connection.execute("SELECT seq, hash FROM records ORDER BY seq DESC LIMIT 1").fetchone()
            seq, previous = (0, GENESIS) if row is None else (int(row[0]), text_of(row[1]))
            # Another process that appends by SQL alone would otherwise be covered by our next hash and look genuine.
            if (seq, previous) != self._head:
                raise sqlite3.IntegrityError("its newest record is not the one this writer wrote")
            records = []
            for content in contents:
                record = content.numbered(seq + 1, previous)
                connection.execute(f"INSERT INTO records ({COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?)", _row(record, content))
                records.append(record)
                seq, previous = record.seq, record.hash
            failpoint("audit.commit")
            connection.execute("COMMIT")  # WAL and synchronous=FULL: on disk when this returns
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        failpoint("audit.committed")
        return records

    def _checkpoint(self) -> None:
        """Notes the head. A failure is said in `checkpoint_problem` and tried again later; the records are durable without it."""
        self._checkpointed_at = time.monotonic()
        if self._checkpointed == self._head[0]:
            return
        try:
            self._checkpoints.add(Checkpoint(*self._head, at=self._clock()))
        except OSError as error:
            self.checkpoint_problem = reason(error)
            return
        self._checkpointed, self.checkpoint_problem = self._head[0], ""

    def _tick(self) -> None:
        while not self._closing.wait(max(0.05, self._checkpoint_s / 4)):
            if time.monotonic() - self._checkpointed_at >= self._checkpoint_s:
                with self._disk_lock:
                    self._checkpoint()


def _lock(path: Path) -> int:
    """One writer per file. Raises Conflict with who holds it, NotRecorded."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise NotRecorded(f"The audit log's folder {path.parent} cannot be written: {error.strerror}.", _REMEDY) from error
    try:
        # Not a pid file: the kernel drops the lock when its process dies, so a crash leaves no stale one.
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            os.ftruncate(fd, 0)
            # Only for the words of the refusal below; the lock itself does not depend on it.
            os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        except OSError:
            pass  # on a full disk the lock holds without the number
    except OSError as error:
        holder = os.pread(fd, 20, 0).decode("ascii", "replace").strip()
        os.close(fd)
        raise Conflict(f"Process {holder or 'unknown'} is writing this audit log.", "Stop it first, or use another --state-dir.") from error
    return fd


def _identity(path: Path) -> tuple[int, int]:
    seen = path.lstat()
    return seen.st_dev, seen.st_ino


def _foreign(path: Path, identity: tuple[int, int], checkpoints: CheckpointFile) -> str:
    """Return what another process did to the files since they were opened, in words, or ''."""
    try:
        return checkpoints.foreign() if _identity(path) == identity else _REPLACED
    except OSError as error:
        return f"the file is gone: {reason(error)}"


def _row(record: Record, content: Draft) -> tuple[Any, ...]:
    texts = tuple(_storable(text) for text in content.texts)
    return (record.seq, record.at, *texts, content.data, record.previous, record.hash)


def _storable(text: str) -> str | bytes:
    """TEXT where UTF-8 has an encoding, else BLOB, byte for byte what is hashed."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def _fail(batch: list[_Pending], problem: str) -> None:
    for pending in batch:
        if not pending.settled:
            pending.problem = problem


# --- Room kept on the disk for the records that must still be written when it is full: kills and stops.


class Reserve:
    """A file of real blocks. While it is not whole nothing but a kill or stop is recorded, so that it is never eaten by the rest."""

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._size = size
        self.whole = False

    def take(self) -> bool:
        """Makes it whole again if there is room; True when it is."""
        if self.whole:
            return True
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            return False
        try:
            # A sparse file would keep no blocks, and the record of a kill would not fit on the full disk.
            os.posix_fallocate(fd, 0, self._size)
            self.whole = True
        except OSError:
            os.ftruncate(fd, 0)  # what it got in part is of use to others
        finally:
            os.close(fd)
        return self.whole

    def free(self) -> None:
        """Gives the room back to the disk. Never raises: it is called on the way to a kill's record."""
        self.whole = False
        try:
            self._path.unlink(missing_ok=True)
        except OSError:
            return
