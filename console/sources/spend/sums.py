"""Sums over what was spent, and the file they are kept in: ``cost.db`` of the state directory (SQLite)."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from console.domain.errors import ConsoleError
from console.domain.process.sqlite_file import open_or_begin_anew, refused
from console.domain.spend import NANO
from console.sources.spend.schema import UPGRADES, VERSION

By = Literal["day", "model", "session", "project", "source"]


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


class SpendSums:
    """Opened by one thread at a time. Raises ConsoleError when the disk refuses."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.closed = ""
        """The first day whose answers are kept one by one; empty: all. What is read of an earlier one is not added: it is in the sums."""
        self.late = 0
        """Answers that were not added because of that."""
        self.has_bare_ids = False
        """Whether answers of an earlier version may be kept by the first part of their id alone."""
        self._db, lost = open_or_begin_anew(file, VERSION, UPGRADES, lambda db: db.execute("select path from files limit 1").fetchone())
        self.lost = lost and f"{lost}: history whose transcripts are gone is missing"
        """Why the store started new, or empty."""
        try:
            kept = dict(self._asked("select name, value from meta where name in ('closed', 'bare_ids')"))
            self.closed, self.has_bare_ids = kept.get("closed", ""), "bare_ids" in kept
        except ConsoleError:
            self._db.close()
            raise

    def _asked(self, query: str, values: tuple[object, ...] = ()) -> list[Any]:
        try:
            return self._db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise refused(self.file, error) from error

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
            raise refused(self.file, error) from error

    def prices(self) -> list[str]:
        """Versions of the price table that prices were taken from."""
        return [row[0] for row in self._asked("select distinct prices from spent where prices <> '' order by 1")]

    def close(self) -> None:
        """Twice is once."""
        self._db.close()

    def sums(self, by: By, since: float = 0.0, until: float = 9e18, *, ours: bool | None = None) -> list[Sum]:
        """By day, model, session or project; the dearest first, days in order. ``ours``: of agents started here alone, or of others."""
        column = {"day": "day", "model": "model", "session": "session", "project": "project", "source": "source"}[by]
        whose = "" if ours is None else f"and ours = {int(ours)}"
        # From the beginning on, all rows are read as they lie (+: no index); each looked up by its moment would take twice as long.
        at = "at" if since > 0 else "+at"
        # Counting sessions takes most of the time, so it is done only where it is shown.
        more = {"project": "count(distinct session), project", "session": "1, max(project)"}.get(by, "0, ''")
        # total() and not sum(): no overflow, whatever transcripts claim.
        query = f"""
          select {column}, total(cost) / {NANO}.0, total(tokens), sum(answers), sum(unpriced), max(at), {more}
          from spent where {at} >= ? and {at} < ? {whose} group by 1 order by {"1" if by == "day" else "2 desc, 1"}"""
        rows = self._asked(query, (since, until))
        return [Sum(key, cost, int(tokens), *rest) for key, cost, tokens, *rest in rows]

    def by_slice(
        self, since: float, until: float, slice_s: float, *, ours: bool | None = None
    ) -> list[tuple[float, str, str, float, int, int, int]]:
        """(start of the slice, day, model, USD, tokens, unpriced answers, tokens of rows with such), ``until`` left out, oldest first.

        ``ours``: of agents started here alone, or of others.
        """
        whose = "" if ours is None else f"and ours = {int(ours)}"
        query = f"""
          select cast(at / ? as integer) * ?, day, model, total(cost) / {NANO}.0, total(tokens), sum(unpriced),
            total(case when unpriced > 0 then tokens else 0 end)
          from spent where at >= ? and at < ? {whose} group by 1, 2, 3 order by 1, 3"""
        rows = self._asked(query, (slice_s, slice_s, since, until))
        return [(start, day, model, cost, int(tokens), odd, int(odd_tokens)) for start, day, model, cost, tokens, odd, odd_tokens in rows]

    def unpriced(self, since: float = 0.0, until: float = 9e18) -> list[Sum]:
        """What could not be priced, by model."""
        return [one for one in self.sums("model", since, until) if one.unpriced]
