"""What agents did, read in pages: newest first or from a place on, searched in steps that end in time."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from console.domain.activity import KINDS, Entry, FilePlace, Holding, Kept, Kind, Window
from console.ledger.activity_file import FIELDS, ActivityFile

PAGE_MAX = 500
_STEP = 2000
"""Entries looked through between two looks at the clock."""


_CALLED = """
select tool, count(distinct agent || ' ' || case when pair <> '' then pair else source_id end), count(distinct agent), max(at)
from entries where kind = 'tool_call' and substr(tool, 1, ?) = ? group by tool order by tool"""


class ActivityPages(ActivityFile):
    """Read the activity. A search never holds up a writer. Raises ConsoleError when the disk refuses."""

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
            row = db.execute(f"select seq, length(text), {FIELDS} from entries where agent = ? and seq = ?", (agent, seq)).fetchone()
        return _kept(row) if row else None

    def tools_called(self, prefix: str) -> list[tuple[str, int, int, float]]:
        """(tool, calls, agents, when last) of tools whose name begins so. A call that two of its tellers name is one."""
        with self._look() as db:
            return db.execute(_CALLED, (len(prefix), prefix)).fetchall()

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
        fields = FIELDS.replace(" text,", f" substr(text, 1, {self.head:d}),")
        question = f"select seq, length(text), {fields} from entries where {' and '.join(where)} order by seq {order} limit ?"
        return db.execute(question, (*values, limit)).fetchall()


def _kept(row: Any) -> Kept:
    kind, source, at, text, who, turn, tool, pair, verdict, ref, rollback, failed, tokens, cost, audit, left_out = row[2:]
    entry = Entry(Kind(kind), source, at, text, who, turn, tool, pair, verdict, ref, rollback, bool(failed), tokens, cost, audit, left_out)
    return Kept(row[0], entry, row[1])
