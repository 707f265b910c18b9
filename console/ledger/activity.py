"""What agents did, kept: ``activity.db`` of the state directory. It outlives the programs' own files, which they sweep.

Entries are only appended (an answer's count of tokens may grow) and dropped oldest first when a bound is reached, which is counted and
said. Files are known by how far they were read, in the same transaction as what was read.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from console.domain.activity import KINDS, Entry, FilePlace, Holding, Kept, Kind, Window, bounded
from console.domain.errors import ConsoleError

VERSION = 1
PAGE_MAX = 500
_WAIT_S = 20.0
_STEP = 2000
"""Entries looked through between two looks at the clock."""
_FIELDS = "kind, source_id, at, text, who, turn, tool, pair, verdict, ref, rollback_id, failed, tokens, cost_nano, audit, left_out"
_SCHEMA = """
create table entries(
  seq integer primary key autoincrement, agent text not null, kind text not null, source_id text not null, at real not null,
  text text not null, who text not null, turn integer not null, tool text not null, pair text not null, verdict text not null,
  ref text not null, rollback_id text not null, failed integer not null, tokens integer not null, cost_nano integer,
  audit integer not null, left_out integer not null, unique(agent, source_id)) strict;
create index by_agent on entries(agent, seq);
create table agents(agent text primary key, count integer not null, dropped integer not null, dropped_at real not null, place text not null)
  without rowid, strict;
create table files(
  agent text not null, path text not null, dev integer not null, inode integer not null, offset integer not null, mark text not null,
  state text not null, skipping integer not null, primary key(agent, path)) without rowid, strict;
"""
_INSERT = f"insert or ignore into entries(agent, {_FIELDS}) values(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
_GROWN = "update entries set tokens = ?, cost_nano = ?, text = ? where agent = ? and source_id = ? and kind = 'spend' and tokens < ?"
"""An answer may be written while it still grows: its largest numbers count."""
_COUNTED = "insert into agents values(?,?,0,0.0,'') on conflict(agent) do update set count = count + excluded.count"
_READ = """insert into files values(?,?,?,?,?,?,?,?) on conflict(agent, path) do update set dev = excluded.dev, inode = excluded.inode,
  offset = excluded.offset, mark = excluded.mark, state = excluded.state, skipping = excluded.skipping"""
_RELEASE = "release one"
_STEPS = {
    (False, False): ("commit", "rollback"),
    (False, True): ("commit", "rollback"),
    (True, False): ("", ""),
    (True, True): (_RELEASE, "rollback to one"),
}
"""How what one file says is kept or undone: alone, or with the others of one transaction (and of these carefully: each by itself)."""
_DROP_AT_ONCE = 5000
_UNWEIGHED = 4 << 20
"""Characters kept within one transaction between two looks at how large the file is."""
_WHOLE = 1 << 63


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is kept."""

    per_agent: int = 100_000
    total: int = 1_000_000
    mib: int = 2048


class _Opened:
    """The file, and who may use it when."""

    def __init__(self, file: Path, bounds: Bounds | None = None) -> None:
        self.file, self.bounds = file, bounds or Bounds()
        self.lost = ""
        """Why the store began anew, or empty."""
        self._lock, self._read_lock = threading.RLock(), threading.Lock()
        self._is_together = self._is_spoiled = self._is_careful = False
        self._unweighed = 0
        try:
            self._db = self._opened()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise self._refused(error) from error
            aside = file.with_name(f"{file.name}.broken-{int(time.time())}")
            for suffix in ("", "-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    file.with_name(file.name + suffix).replace(aside.with_name(aside.name + suffix))
            self.lost = f"{file.name} was damaged ({error}) and lies aside as {aside.name}: activity from before is missing here"
            self._db = self._opened()
        # Whoever searches never keeps those waiting who write.
        self._reads = sqlite3.connect(file, timeout=_WAIT_S, isolation_level=None, check_same_thread=False)
        self._reads.execute("pragma query_only = on")
        self._reads.create_function("fold", 1, _fold, deterministic=True)
        self._total = int(self._db.execute("select count(*) from entries").fetchone()[0])

    def _opened(self) -> sqlite3.Connection:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self.file, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        db = sqlite3.connect(self.file, timeout=_WAIT_S, isolation_level=None, check_same_thread=False)
        try:
            db.execute("pragma journal_mode = wal")
            db.execute("pragma synchronous = normal")
            version = db.execute("pragma user_version").fetchone()[0]
            if version == 0:
                db.executescript(f"begin immediate; {_SCHEMA} pragma user_version = {VERSION}; commit;")
            elif version != VERSION:
                raise ConsoleError(f"{self.file.name} is of version {version}.", "It was written by a later Watchfloor: use that one.")
        except BaseException:
            db.close()
            raise
        return db

    def _refused(self, error: sqlite3.Error) -> ConsoleError:
        return ConsoleError(f"{self.file} cannot be used: {error}.", "Look at the disk and at who may write the state directory.")

    @contextlib.contextmanager
    def _use(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._db
            except sqlite3.Error as error:
                raise self._refused(error) from error

    @contextlib.contextmanager
    def _look(self) -> Iterator[sqlite3.Connection]:
        with self._read_lock:
            try:
                yield self._reads
            except sqlite3.Error as error:
                raise self._refused(error) from error

    def close(self) -> None:
        """Twice is once."""
        with self._lock, self._read_lock:
            self._db.close()
            self._reads.close()


class ActivityStore(_Opened):
    """Any thread, one at a time. Raises ConsoleError when the disk refuses."""

    # --- writing

    def add(self, agent: str, entries: Iterable[Entry], place: FilePlace | None = None, *, again: bool = False) -> tuple[int, int]:
        """Keeps what is new, and how far its file was read, in one transaction: (how many, the newest number).

        ``again``: a file is read from its beginning once more; what a bound had dropped then stays dropped.
        """
        new, read = list(map(bounded, entries)), _file(agent, place)  # raises before anything is written
        with self._use() as db:
            if not db.in_transaction:
                db.execute("begin immediate")
            before = self._total
            keep, undo = _STEPS[(self._is_together, self._is_careful)]
            if keep == _RELEASE:
                db.execute("savepoint one")
            try:
                found = self._added(db, agent, new, read, again=again)
                if keep:
                    db.execute(keep)
            except BaseException:
                self._total = before
                self._is_spoiled = not undo
                if undo:
                    db.execute(undo)
                raise
        return found

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """What this thread adds within is one transaction: all of it is kept at the end or, when that raises, nothing."""
        with self._use() as db:
            before, self._is_together, self._is_spoiled = self._total, True, False
            try:
                yield
                if self._is_spoiled:
                    # Something nobody thought of left a half: from now on each is undone alone.
                    self._is_careful = True
                    raise ConsoleError("What was new could not be kept whole.", "It is tried again.")
                if self._unweighed:
                    self._keep_size(db)
                if db.in_transaction:
                    db.execute("commit")
            except BaseException:
                self._total = before
                if db.in_transaction:
                    db.execute("rollback")
                raise
            finally:
                self._is_together = False

    def _added(
        self, db: sqlite3.Connection, agent: str, new: list[Entry], read: tuple[object, ...] | None, *, again: bool
    ) -> tuple[int, int]:
        if read is not None:
            db.execute(_READ, read)
        added, newest = self._insert(db, agent, new, again) if new else (0, 0)
        return added, newest if added else self._newest(db, agent)

    def _insert(self, db: sqlite3.Connection, agent: str, new: list[Entry], again: bool) -> tuple[int, int]:
        known = db.execute("select dropped_at from agents where agent = ?", (agent,)).fetchone() if again else None
        if floor := float(known[0]) if known else 0.0:
            new = [e for e in new if not 0 < e.at <= floor]
        before = db.total_changes
        db.executemany(_INSERT, [_row(agent, e) for e in new])
        added = db.total_changes - before
        if added < len(new):  # some of it was there
            grown = [(e.tokens, e.cost_nano, e.text, agent, e.source_id, e.tokens) for e in new if e.kind is Kind.SPEND]
            db.executemany(_GROWN, grown)
        if not added:
            return 0, 0
        self._total += added
        self._unweighed += sum(len(e.text) + 200 for e in new)
        db.execute(_COUNTED, (agent, added))
        count, newest = db.execute("select count, last_insert_rowid() from agents where agent = ?", (agent,)).fetchone()
        if self._keep_bounds(db, agent, count):
            newest = self._newest(db, agent)
        return added, newest

    @staticmethod
    def _newest(db: sqlite3.Connection, agent: str) -> int:
        return int(db.execute("select ifnull(max(seq), 0) from entries where agent = ?", (agent,)).fetchone()[0])

    def _keep_bounds(self, db: sqlite3.Connection, agent: str, count: int) -> bool:
        """Whether something of this agent's may have been dropped."""
        if dropped := count > self.bounds.per_agent:
            # A tenth at a time, so that an agent at its bound does not pay for every entry.
            self._drop(db, "agent = ?", (agent,), count - self.bounds.per_agent + self.bounds.per_agent // 10)
        if self._total > self.bounds.total or not self._is_together or self._unweighed > _UNWEIGHED:
            return self._keep_size(db) or dropped
        return dropped

    def _keep_size(self, db: sqlite3.Connection) -> bool:
        """Whether anything was dropped."""
        before, self._unweighed = self._total, 0
        while self._total > self.bounds.total or (self._total and self._mib(db) > self.bounds.mib):
            self._drop(db, "1", (), min(self._total, _DROP_AT_ONCE, max(1, self._total - self.bounds.total, self._total // 10)))
        return self._total < before

    @staticmethod
    def _mib(db: sqlite3.Connection) -> float:
        pages, free = db.execute("pragma page_count").fetchone()[0], db.execute("pragma freelist_count").fetchone()[0]
        return float((pages - free) * db.execute("pragma page_size").fetchone()[0] / 2**20)

    def _drop(self, db: sqlite3.Connection, where: str, values: tuple[object, ...], many: int) -> None:
        """The oldest; how many is kept for each agent."""
        last = db.execute(f"select seq from entries where {where} order by seq limit 1 offset ?", (*values, max(0, many - 1))).fetchone()
        if last is None:
            return
        gone = db.execute(f"select agent, count(*), max(at) from entries where {where} and seq <= ? group by agent", (*values, last[0]))
        for name, count, at in gone.fetchall():
            change = "update agents set count = count - ?, dropped = dropped + ?, dropped_at = max(dropped_at, ?) where agent = ?"
            db.execute(change, (count, count, at, name))
            self._total -= count
        db.execute(f"delete from entries where {where} and seq <= ?", (*values, last[0]))

    def set_place(self, agent: str, place: str) -> None:
        """Where its own files are (JSON), so that they are found again once it ended."""
        with self._use() as db:
            db.execute("insert into agents values(?,0,0,0.0,?) on conflict(agent) do update set place = excluded.place", (agent, place))

    # --- reading

    def place(self, agent: str) -> str:
        """As ``set_place`` left it, or empty."""
        with self._look() as db:
            row = db.execute("select place from agents where agent = ?", (agent,)).fetchone()
        return str(row[0]) if row else ""

    def files(self, agent: str) -> dict[str, FilePlace]:
        """By path."""
        with self._look() as db:
            rows = db.execute("select path, dev, inode, offset, mark, state, skipping from files where agent = ?", (agent,)).fetchall()
        return {p: FilePlace(p, dev, inode, offset, mark, state, bool(skips)) for p, dev, inode, offset, mark, state, skips in rows}

    def holding(self, agent: str) -> Holding:
        """How much there is."""
        with self._look() as db:
            return self._holding(db, agent)

    @staticmethod
    def _holding(db: sqlite3.Connection, agent: str) -> Holding:
        row = db.execute("select count, dropped from agents where agent = ?", (agent,)).fetchone()
        ends = db.execute("select ifnull(min(seq), 0), ifnull(max(seq), 0) from entries where agent = ?", (agent,)).fetchone()
        return Holding(row[0], ends[0], ends[1], row[1]) if row else Holding()

    def one(self, agent: str, seq: int) -> Kept | None:
        """An entry with all of its text that is kept."""
        with self._look() as db:
            row = db.execute(f"select seq, length(text), {_FIELDS} from entries where agent = ? and seq = ?", (agent, seq)).fetchone()
        return _kept(row) if row else None

    def window(
        self,
        agent: str,
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int = 200,
        query: str = "",
        kinds: Sequence[str] = (),
        head: int = 600,
        time_s: float = 1.0,
    ) -> Window:
        """Up to ``limit`` entries, oldest first: the newest there are, those below ``before``, or those above ``after``.

        ``query``: as plain text in text, tool, path and child; letters in either case. The search ends after ``time_s`` and says how far
        it came. ``head``: characters given of each text.
        """
        wanted = [kind for kind in dict.fromkeys(kinds) if kind in KINDS]
        limit = max(1, min(limit, PAGE_MAX))
        search = _Search(agent, query, wanted, head, "up" if after is not None else "down")
        with self._look() as db:
            holding = self._holding(db, agent)
            start = after if after is not None else before if before is not None else holding.newest + 1
            rows, to = search.run(db, start, holding, limit, time.monotonic() + time_s)
        rows.sort(key=lambda row: row.seq)
        whole = len(rows) < limit and not to
        down = after is None
        at_start = whole if down else not holding.oldest or (after or 0) < holding.oldest
        at_end = before is None if down else whole
        return Window(tuple(rows), holding, at_start, at_end, to)


@dataclass(frozen=True, slots=True)
class _Search:
    """One question, answered in steps so that time can be looked at between them."""

    agent: str
    query: str
    kinds: list[str]
    head: int
    way: Literal["up", "down"]

    def run(self, db: sqlite3.Connection, start: int, holding: Holding, limit: int, until: float) -> tuple[list[Kept], int]:
        """(entries, how far it came when time was over, else 0)."""
        found: list[Kept] = []
        at = start
        step = _STEP if self.query or self.kinds else PAGE_MAX
        while len(found) < limit:
            block = self._block(db, at, step)
            if block is None:
                return found, 0
            found += [_kept(row) for row in self._rows(db, at, block, limit - len(found))]
            at = block
            if len(found) < limit and time.monotonic() > until:
                return found, max(1, at)
        return found, 0

    def _block(self, db: sqlite3.Connection, at: int, step: int) -> int | None:
        """The number up to which ``step`` more entries reach; None: there are none."""
        order, sign = ("desc", "<") if self.way == "down" else ("asc", ">")
        numbers = f"select seq from entries where agent = ? and seq {sign} ? order by seq {order} limit ?"
        last = "min" if self.way == "down" else "max"
        row = db.execute(f"select {last}(seq) from ({numbers})", (self.agent, at, step)).fetchone()
        return None if row[0] is None else int(row[0])

    def _rows(self, db: sqlite3.Connection, at: int, block: int, limit: int) -> list[Any]:
        span = "seq < ? and seq >= ?" if self.way == "down" else "seq > ? and seq <= ?"
        where, values = [f"agent = ? and {span}"], [self.agent, at, block]
        if self.kinds:
            where.append(f"kind in ({','.join('?' * len(self.kinds))})")
            values += self.kinds
        if self.query:
            # instr() and not LIKE: no pattern characters to escape, and LIKE stops at a NUL, behind which text could hide.
            fold = "lower" if self.query.isascii() else "fold"
            where.append("(" + " or ".join(f"instr({fold}({name}), {fold}(?)) > 0" for name in ("text", "tool", "ref", "who")) + ")")
            values += [self.query] * 4
        order = "desc" if self.way == "down" else "asc"
        fields = _FIELDS.replace(" text,", f" substr(text, 1, {self.head:d}),")
        question = f"select seq, length(text), {fields} from entries where {' and '.join(where)} order by seq {order} limit ?"
        return db.execute(question, (*values, limit)).fetchall()


def _fold(text: Any) -> str:
    return text.casefold() if isinstance(text, str) else ""


def _file(agent: str, place: FilePlace | None) -> tuple[object, ...] | None:
    """Raises ValueError when no column can hold it."""
    if place is None:
        return None
    place.path.encode()
    if not all(-_WHOLE <= number < _WHOLE for number in (place.dev, place.inode, place.offset)):
        raise ValueError("the file's numbers are too large")
    return agent, place.path, place.dev, place.inode, place.offset, place.mark, place.state, int(place.skipping)


def _row(agent: str, e: Entry) -> tuple[object, ...]:
    numbers = (int(e.failed), e.tokens, e.cost_nano, e.audit, e.left_out)
    return (agent, e.kind.value, e.source_id, e.at, e.text, e.who, e.turn, e.tool, e.pair, e.verdict, e.ref, e.rollback_id, *numbers)


def _kept(row: Any) -> Kept:
    kind, source, at, text, who, turn, tool, pair, verdict, ref, rollback, failed, tokens, cost, audit, left_out = row[2:]
    entry = Entry(Kind(kind), source, at, text, who, turn, tool, pair, verdict, ref, rollback, bool(failed), tokens, cost, audit, left_out)
    return Kept(row[0], entry, row[1])
