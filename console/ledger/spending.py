"""What agents spent, as samples with a time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Integer, cast, func, insert, select

from console.domain.budget import checked_increment
from console.ledger.database import Database
from console.ledger.tables import SPEND


@dataclass(frozen=True, slots=True)
class SpendSample:
    """One increment of use."""

    agent_id: str
    root_id: str
    at: float
    """Seconds since the epoch."""
    cost_usd: float
    tokens: int


@dataclass(frozen=True, slots=True)
class Spend:
    """A sum."""

    cost_usd: float
    tokens: int


class SpendTables(Database):
    """Sums over time. A clock that went back never hides spend: nothing is cut off at the upper end."""

    def add_spends(self, samples: Iterable[SpendSample]) -> None:
        """All of them or none, durable on return. Raises UsageProblem on NaN, negatives and absurd sizes, NotRecorded."""
        rows = [
            {
                "agent_id": sample.agent_id,
                "root_id": sample.root_id,
                "at": sample.at,
                "cost_usd": float(checked_increment("cost_usd", sample.cost_usd)),
                "tokens": int(checked_increment("tokens", sample.tokens)),
            }
            for sample in samples
        ]
        if rows:
            with self.writing() as connection:
                connection.execute(insert(SPEND), rows)

    def spend_since(self, at: float) -> Spend:
        """What everything spent at or after ``at``."""
        # total() and not sum(): a float whatever the samples are, and no integer overflow.
        query = select(func.total(SPEND.c.cost_usd), func.total(SPEND.c.tokens)).where(SPEND.c.at >= at)
        with self.reading() as connection:
            cost, tokens = connection.execute(query).one()
        return Spend(float(cost), int(tokens))

    def spend_today(self, now: float) -> Spend:
        """What everything spent since the last local midnight."""
        midnight = datetime.fromtimestamp(now).replace(hour=0, minute=0, second=0, microsecond=0)
        return self.spend_since(midnight.timestamp())

    def spend_between(self, since: float, until: float) -> list[tuple[float, float, int]]:
        """(start of the quarter of an hour, USD, tokens) of everything, oldest first."""
        start = cast(SPEND.c.at / 900.0, Integer)
        query = (
            select(start, func.total(SPEND.c.cost_usd), func.total(SPEND.c.tokens))
            .where(SPEND.c.at >= since, SPEND.c.at < until)
            .group_by(start)
            .order_by(start)
        )
        with self.reading() as connection:
            return [(index * 900.0, float(cost), int(tokens)) for index, cost, tokens in connection.execute(query)]

    def samples_since(self, at: float, limit: int = 20_000) -> list[SpendSample]:
        """The newest samples at or after ``at``, oldest first."""
        query = select(SPEND).where(SPEND.c.at >= at).order_by(SPEND.c.seq.desc()).limit(limit)
        with self.reading() as connection:
            rows = [SpendSample(x.agent_id, x.root_id, x.at, x.cost_usd, x.tokens) for x in connection.execute(query)]
        return sorted(rows, key=lambda sample: sample.at)
