"""Calls that were judged, kept so that a change of the rules can be tried on them before it holds. The oldest go first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from sqlalchemy import delete, func, insert, select

from console.ledger.database import Database
from console.ledger.tables import CALLS

KEPT_MAX = 50_000
ARGUMENT_MAX = 8192
"""A longer argument is not kept: a call judged in part is no evidence."""


@dataclass(frozen=True, slots=True)
class JudgedCall:
    """One call as it was judged. Every text is hostile; secrets were taken out before it was kept."""

    at: float
    agent_id: str
    context_id: str
    tool: str
    argument: str
    cwd: str
    verdict: str
    rule: str


@dataclass(frozen=True, slots=True)
class RuleHits:
    """How often a rule decided, and when last."""

    rule: str
    verdict: str
    hits: int
    last_at: float


class CallTables(Database):
    """The newest calls, bounded."""

    def add_calls(self, calls: Iterable[JudgedCall]) -> None:
        """Keeps them, and lets go of the oldest beyond ``KEPT_MAX``, in one transaction. Raises NotRecorded."""
        rows = [asdict(call) for call in calls if len(call.argument) <= ARGUMENT_MAX]
        if not rows:
            return
        with self.writing() as connection:
            connection.execute(insert(CALLS), rows)
            newest = connection.execute(select(func.max(CALLS.c.seq))).scalar() or 0
            connection.execute(delete(CALLS).where(CALLS.c.seq <= newest - KEPT_MAX))

    def calls_since(self, at: float, limit: int) -> list[JudgedCall]:
        """Calls at or after ``at``, newest first, at most ``limit``."""
        columns = [CALLS.c[name] for name in JudgedCall.__slots__]
        query = select(*columns).where(CALLS.c.at >= at).order_by(CALLS.c.seq.desc()).limit(limit)
        with self.reading() as connection:
            return [JudgedCall(*row) for row in connection.execute(query)]

    def calls_of_rule(self, rule: str, verdict: str, limit: int) -> list[JudgedCall]:
        """Calls that this rule decided with this verdict, newest first, at most ``limit``."""
        columns = [CALLS.c[name] for name in JudgedCall.__slots__]
        query = select(*columns).where(CALLS.c.rule == rule, CALLS.c.verdict == verdict).order_by(CALLS.c.seq.desc()).limit(limit)
        with self.reading() as connection:
            return [JudgedCall(*row) for row in connection.execute(query)]

    def rule_hits(self, at: float) -> list[RuleHits]:
        """By rule and verdict since ``at``, the most frequent first."""
        hits = func.count().label("hits")
        query = select(CALLS.c.rule, CALLS.c.verdict, hits, func.max(CALLS.c.at)).where(CALLS.c.at >= at)
        query = query.group_by(CALLS.c.rule, CALLS.c.verdict).order_by(hits.desc()).limit(1000)
        with self.reading() as connection:
            return [RuleHits(*row) for row in connection.execute(query)]
