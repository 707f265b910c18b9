"""What agents did, kept: ``activity.db`` of the state directory. It outlives the programs' own files, which they sweep.

Entries are only appended (an answer's count of tokens may grow) and dropped oldest first when a bound is reached, which is counted and
said. Files are known by how far they were read, in the same transaction as what was read.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator

from console.domain.activity import Entry, FilePlace, Kind, bounded
from console.domain.errors import ConsoleError
from console.ledger.activity_file import FIELDS
from console.ledger.activity_pages import ActivityPages

_INSERT = f"insert or ignore into entries(agent, {FIELDS}) values(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
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


class ActivityStore(ActivityPages):
    """Any thread, one at a time. Raises ConsoleError when the disk refuses."""

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
            # The program's file still holds what a bound dropped here, and reading it again would bring that back.
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
