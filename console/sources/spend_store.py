"""What was read of transcripts, kept: files with how far they were read, and every answer once with its price.

One SQLite file, ``cost.db`` of the state directory. It is more than a cache: programs delete their transcripts after some weeks.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from console.domain.errors import ConsoleError
from console.domain.spend import NANO, Answer, Tokens

VERSION = 2
_WAIT_S = 20.0
_SCHEMA = """
create table files(path text primary key, dev integer, inode integer, size integer, mtime_ns integer, offset integer, mark text, state text)
  without rowid, strict;
create table answers(
  uid integer not null, source text not null, answer_id text not null,
  at real not null, day text not null, model text not null, tier text not null,
  session text not null, agent text not null, project text not null, plain integer not null, cache_read integer not null,
  cache_write_5m integer not null, cache_write_1h integer not null, output integer not null, searches integer not null,
  nano integer, reported integer not null, prices text not null, primary key(uid, source, answer_id)) without rowid, strict;
"""
_INSERT = """
insert into answers values(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
  on conflict(uid, source, answer_id) do update set plain = excluded.plain, cache_read = excluded.cache_read, output = excluded.output,
    cache_write_5m = excluded.cache_write_5m, cache_write_1h = excluded.cache_write_1h, searches = excluded.searches, nano = excluded.nano,
    reported = excluded.reported, prices = excluded.prices
  where excluded.plain + excluded.cache_read + excluded.cache_write_5m + excluded.cache_write_1h + excluded.output
    > plain + cache_read + cache_write_5m + cache_write_1h + output
"""
By = Literal["day", "model", "session", "project", "source"]


@dataclass(frozen=True, slots=True)
class Place:
    """How far a file was read, and by what it is known again."""

    dev: int
    inode: int
    size: int
    mtime_ns: int
    offset: int
    mark: str
    """Digest of the last bytes before ``offset``."""
    state: str
    """What earlier lines said, JSON, or empty."""


@dataclass(frozen=True, slots=True)
class Sum:
    """Answers that have something in common."""

    key: str
    cost_usd: float
    """Of those that could be priced."""
    tokens: int
    answers: int
    unpriced: int
    """Answers whose model has no price: what they cost is not known."""
    last_at: float
    sessions: int = 0
    project: str = ""


class SpendStore:
    """Opened by one thread at a time. Raises ConsoleError when the disk refuses."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.lost = ""
        """Why the store began anew, or empty."""
        try:
            self._db = self._opened()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise self._refused(error) from error
            aside = file.with_name(f"{file.name}.broken-{int(time.time())}")
            for suffix in ("", "-wal", "-shm"):  # a log of the old one must not be played into the new one
                with contextlib.suppress(FileNotFoundError):
                    file.with_name(file.name + suffix).replace(aside.with_name(aside.name + suffix))
            self.lost = f"{file.name} was damaged ({error}) and lies aside as {aside.name}: history whose transcripts are gone is missing"
            self._db = self._opened()

    def _opened(self) -> sqlite3.Connection:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self.file, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        db = sqlite3.connect(self.file, timeout=_WAIT_S, isolation_level=None)
        try:
            db.execute("pragma journal_mode = wal")
            db.execute("pragma synchronous = normal")
            version = db.execute("pragma user_version").fetchone()[0]
            if version < VERSION:  # no released version wrote an older one: what it held is read anew
                dropped = "drop table if exists files; drop table if exists answers;"
                db.executescript(f"begin immediate; {dropped} {_SCHEMA} pragma user_version = {VERSION}; commit;")
            elif version != VERSION:
                raise ConsoleError(f"{self.file.name} is of version {version}.", "It was written by a later Watchfloor: use that one.")
            db.execute("create index if not exists by_session on answers(session, source, uid)")
            db.execute("create index if not exists by_at on answers(at)")
            db.execute("select count(*) from files").fetchone()
        except BaseException:
            db.close()
            raise
        return db

    def _asked(self, query: str, values: tuple[object, ...] = ()) -> list[Any]:
        try:
            return self._db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise self._refused(error) from error

    def _refused(self, error: sqlite3.Error) -> ConsoleError:
        return ConsoleError(f"{self.file} cannot be used: {error}.", "Look at the disk and at who may write the state directory.")

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction: all of it or nothing."""
        try:
            self._db.execute("begin immediate")
            try:
                yield
                self._db.execute("commit")
            except BaseException:
                self._db.execute("rollback")
                raise
        except sqlite3.Error as error:
            raise self._refused(error) from error

    def places(self) -> dict[str, Place]:
        """Every file that was read, by path."""
        rows = self._asked("select path, dev, inode, size, mtime_ns, offset, mark, state from files")
        return {row[0]: Place(*row[1:]) for row in rows}

    def forget_places(self, keys: Iterable[str]) -> None:
        """Of files that are gone; within ``writing``."""
        self._db.executemany("delete from files where path = ?", ((key,) for key in keys))

    def keep_places(self, places: dict[str, Place]) -> None:
        """Within ``writing``."""
        rows = ((path, p.dev, p.inode, p.size, p.mtime_ns, p.offset, p.mark, p.state) for path, p in places.items())
        self._db.executemany("insert or replace into files values(?,?,?,?,?,?,?,?)", rows)

    def add(self, priced: Iterable[tuple[Answer, int | None]], prices: str) -> None:
        """Answers with their price in nano-dollars; within ``writing``. One that is there counts once, with its larger numbers."""
        self._db.executemany(_INSERT, (_row(answer, nano, prices) for answer, nano in priced))

    def prices(self) -> list[str]:
        """Versions of the price table that prices were taken from."""
        return [row[0] for row in self._asked("select distinct prices from answers where prices <> '' order by 1")]

    def unpriced_models(self, prices: str) -> list[tuple[str, str]]:
        """(source, model) that another version of the price table did not know."""
        query = "select distinct source, model from answers where nano is null and reported < 0 and prices <> ?"
        return [(source, model) for source, model in self._asked(query, (prices,))]

    def close(self) -> None:
        """Twice is once."""
        self._db.close()

    def sums(self, by: By, since: float = 0.0, until: float = 9e18) -> list[Sum]:
        """By day, model, session or project; the dearest first, days in order."""
        column = {"day": "day", "model": "model", "session": "session", "project": "project", "source": "source"}[by]
        # total() and not sum(): no overflow, whatever transcripts claim.
        query = f"""
          select {column}, total(case when reported >= 0 then reported else nano end) / {NANO}.0,
            total(plain + cache_read + cache_write_5m + cache_write_1h + output), count(*),
            sum(nano is null and reported < 0), max(at), count(distinct session), max(project)
          from answers where at >= ? and at < ? group by 1 order by {"1" if by == "day" else "2 desc, 1"}"""
        rows = self._asked(query, (since, until))
        return [Sum(key, cost, int(tokens), *rest) for key, cost, tokens, *rest in rows]

    def by_agent(self, uid: int, source: str, session: str) -> list[tuple[str, float, int, int, int, str, float]]:
        """(agent, USD, tokens, answers, unpriced answers, model of the last answer, when) of one session of this user."""
        query = f"""
          select agent, total(case when reported >= 0 then reported else nano end) / {NANO}.0,
            total(plain + cache_read + cache_write_5m + cache_write_1h + output), count(*),
            sum(nano is null and reported < 0), model, max(at)
          from answers where uid = ? and source = ? and session = ? group by agent"""
        rows = self._asked(query, (uid, source, session))
        return [(agent, cost, int(tokens), count, unpriced, model, at) for agent, cost, tokens, count, unpriced, model, at in rows]

    def unpriced(self, since: float = 0.0, until: float = 9e18) -> list[Sum]:
        """What could not be priced, by model."""
        return [one for one in self.sums("model", since, until) if one.unpriced]

    def kept(self, source: str, model: str) -> list[Answer]:
        """Unpriced answers of a model, for another try."""
        query = """
          select uid, source, answer_id, at, model, tier, session, agent, project,
            plain, cache_read, cache_write_5m, cache_write_1h, output, searches
          from answers where source = ? and model = ? and nano is null"""
        return [replace(Answer(*(*row[1:9], Tokens(*row[9:]))), uid=row[0]) for row in self._asked(query, (source, model))]

    def set_price(self, answer: Answer, nano: int | None, prices: str) -> None:
        """Within ``writing``."""
        values = (nano, prices, answer.uid, answer.source, answer.answer_id)
        self._db.execute("update answers set nano = ?, prices = ? where uid = ? and source = ? and answer_id = ?", values)


def _row(answer: Answer, nano: int | None, prices: str) -> tuple[object, ...]:
    t = answer.tokens
    day = time.strftime("%Y-%m-%d", time.localtime(answer.at)) if answer.at else ""
    reported = -1 if answer.reported_nano is None else answer.reported_nano
    return (
        answer.uid, answer.source, answer.answer_id, answer.at, day,
        answer.model, answer.tier, answer.session, answer.agent, answer.project,
        t.plain, t.cache_read, t.cache_write_5m, t.cache_write_1h, t.output, t.web_searches, nano, reported, prices,
    )  # fmt: skip
