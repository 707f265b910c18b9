"""Keep sums as answers come in, so that a question takes as long after a busy day as in its first minute.

Sums are kept for what was asked about: for a session the usage of each of its agents, for a day the spend of each source since then.
Triggers of the database keep both correct in the same transaction, whichever process writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from console.domain.spend import NANO
from console.sources.spend.schema import OF_SESSION, TRIGGERS
from console.sources.spend.sums import SpendSums

SESSIONS_MAX = 20_000
"""Sessions whose sums are kept. When there are more, all are summed again at the next question."""
BULK = 1000
"""More answers at once than this are a history. It is written without the triggers, and all sums are made again at the next question."""
Whose = tuple[int, str, str]
"""(uid, source, session)"""
OfAgent = tuple[str, float, int, int, int, str, float]
"""(agent, USD, tokens, answers, unpriced answers, model of the last answer, when)"""
_IS_SUMMED = "select 1 from sum_sessions where session = ? and source = ? and uid = ?"
_OF_SESSION = (
    f"select agent, cost / {NANO}.0, tokens, answers, unpriced, model, at from sum_agents where session = ? and source = ? and uid = ?"
)


class SpendTotals(SpendSums):
    """Opened by one thread at a time. Raises ConsoleError when the disk refuses."""

    def by_agents(self, keys: Sequence[Whose]) -> list[list[OfAgent]]:
        """Of each of these sessions, in their order, what its agents used."""
        asked = [(session, source, uid) for uid, source, session in keys]
        found = [self._asked(_OF_SESSION, key) for key in asked]
        # One of which nothing is said has used nothing, or was never summed.
        new = [key for key, rows in zip(asked, found, strict=True) if not rows and not self._asked(_IS_SUMMED, key)]
        if new:
            with self.writing():
                self._sum_sessions(new)
            found = [self._asked(_OF_SESSION, key) for key in asked]
        return [[(agent, cost, int(tokens), *rest) for agent, cost, tokens, *rest in rows] for rows in found]

    def _sum_sessions(self, new: list[tuple[str, str, int]]) -> None:
        if self._asked("select count(*) from sum_sessions")[0][0] + len(new) > SESSIONS_MAX:
            self.forget_sessions()
        for session, source, uid in dict.fromkeys(new):
            self._db.execute("insert into sum_sessions values(?,?,?)", (session, source, uid))
            self._db.execute(f"insert into sum_agents {OF_SESSION}", (session, source, uid, uid, source, session))

    def forget_sessions(self) -> None:
        """Drop the sums of all sessions; the next question makes them again. Call it within ``writing``."""
        self._db.execute("delete from sum_sessions")
        self._db.execute("delete from sum_agents")

    def since_day(self, day: str, at: float, *, ours: bool) -> tuple[float, int]:
        """(USD, unpriced answers) of this day and all after it. ``at``: when it began, in seconds since the epoch."""
        kept = self._asked("select value from meta where name = 'sums_from'")
        if not kept or kept[0][0] != day:
            with self.writing():
                self._sum_days(day, at, kept[0][0] if kept else "")
        row = self._asked(f"select total(cost) / {NANO}.0, total(unpriced) from sum_days where day >= ? and ours = ?", (day, int(ours)))[0]
        return float(row[0]), int(row[1])

    def _sum_days(self, day: str, at: float, kept: str) -> None:
        if not kept or day < kept:
            self._db.execute("delete from sum_days")
            # By its moment first, which is an index; two days cover every zone a clock may have been in.
            self._db.execute(
                """insert into sum_days select day, source, ours, total(cost), sum(unpriced) from spent where at >= ? and day >= ?
                   group by 1, 2, 3""",
                (at - 2 * 86_400, day),
            )
        self._db.execute("delete from sum_days where day < ?", (day,))
        self._db.execute("insert or replace into meta values('sums_from', ?)", (day,))

    def without_sums(self, rows: Iterable[tuple[object, ...]], insert: str) -> None:
        """Write a history; within ``writing``. All sums are made again at the next question."""
        # A repeated answer may belong to another session or day than the new line says, so the sums that it changes are not worked out.
        for name in TRIGGERS:
            self._db.execute(f"drop trigger {name}")
        self._db.executemany(insert, rows)
        for name, body in TRIGGERS.items():
            self._db.execute(f"create trigger {name} {body}")
        self.forget_sessions()
        self._db.execute("delete from meta where name = 'sums_from'")
