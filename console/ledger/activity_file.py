"""The file of what agents did, ``activity.db`` of the state directory (SQLite): its layout, who uses it when, how much it may hold."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.domain.process.sqlite_file import WAIT_S, open_or_begin_anew, refused

VERSION = 1
FIELDS = "kind, source_id, at, text, who, turn, tool, pair, verdict, ref, rollback_id, failed, tokens, cost_nano, audit, left_out"
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


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is kept."""

    per_agent: int = 100_000
    total: int = 1_000_000
    mib: int = 2048


class ActivityFile:
    """The file, and who may use it when."""

    def __init__(self, file: Path, bounds: Bounds | None = None) -> None:
        self.file, self.bounds = file, bounds or Bounds()
        self._lock, self._read_lock = threading.RLock(), threading.Lock()
        self._is_together = self._is_spoiled = self._is_careful = False
        self._unweighed = 0
        self._db, self.lost = open_or_begin_anew(file, VERSION, {0: _SCHEMA}, _look_inside, any_thread=True)
        """Why a new file was started, or empty."""
        if self.lost:
            self.lost += ": activity from before is missing here"
        # A connection of its own, so that a search never holds up a writer.
        self._reads = sqlite3.connect(file, timeout=WAIT_S, isolation_level=None, check_same_thread=False)
        self._reads.execute("pragma query_only = on")
        self._reads.create_function("fold", 1, _fold, deterministic=True)
        self._total = int(self._db.execute("select count(*) from entries").fetchone()[0])

    @contextlib.contextmanager
    def _use(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._db
            except sqlite3.Error as error:
                raise refused(self.file, error) from error

    @contextlib.contextmanager
    def _look(self) -> Iterator[sqlite3.Connection]:
        with self._read_lock:
            try:
                yield self._reads
            except sqlite3.Error as error:
                raise refused(self.file, error) from error

    def close(self) -> None:
        """Twice is once."""
        with self._lock, self._read_lock:
            self._db.close()
            self._reads.close()


def _look_inside(db: sqlite3.Connection) -> None:
    db.execute("select seq from entries limit 1").fetchone()


def _fold(text: Any) -> str:
    return text.casefold() if isinstance(text, str) else ""
