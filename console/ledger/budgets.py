"""Store budgets: limits, every change of a limit, charges and the agents they belong to, reserved room, and warnings given."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

from sqlalchemy import Connection, Executable, delete, func, insert, select
from sqlalchemy.dialects.sqlite import insert as upsert

from console.domain.agent import Agent
from console.domain.budget import Limits, Usage
from console.ledger.agents import AgentTables, flat, limits_of, put_agents, usage_of
from console.ledger.tables import BUDGET_CHANGES, BUDGET_LIMITS, BUDGET_USAGE, BUDGET_WARNED, KV, RESERVATIONS

Node = tuple[str, str]
DAY = "budget.day"
"""Under which key the open day is kept."""
_AT_ONCE = 300
"""Keys named in one statement: SQLite bounds how many values it takes."""


@dataclass(frozen=True, slots=True)
class LimitChange:
    """One limit of one node, changed. Key, by and reason are hostile."""

    at: float
    scope: str
    key: str
    name: str
    old: float | None
    new: float | None
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class KeptUsage:
    """What was charged to a node, as last written."""

    usage: Usage
    boot_s: float
    """CLOCK_BOOTTIME when it was written, of the boot ``boot_id``."""
    boot_id: str


@dataclass(frozen=True, slots=True)
class KeptReservation:
    """What a call had set aside."""

    reservation_id: str
    agent_id: str
    estimate: Usage
    expires_boot: float
    boot_id: str
    tool: str


@dataclass(slots=True)
class Books:
    """What one transaction writes: a charge and the reservation it settles are never parted by a crash."""

    agents: dict[str, Agent] = field(default_factory=dict)
    usage: dict[Node, KeptUsage] = field(default_factory=dict)
    held: dict[str, KeptReservation | None] = field(default_factory=dict)
    """By id; None: settled, or counted in full."""
    warned: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """(scope, key, limit) -> mark; 0 takes it back."""
    day: str | None = None
    """The day that is open, JSON."""
    limits: dict[Node, Limits] = field(default_factory=dict)
    """Of sessions, projects, the day and agent types."""

    def __bool__(self) -> bool:
        return bool(self.agents or self.usage or self.held or self.warned or self.day or self.limits)

    def take_in(self, newer: Books) -> None:
        """Both; where both name the same, the newer's word holds."""
        self.agents.update(newer.agents)
        self.usage.update(newer.usage)
        self.held.update(newer.held)
        self.warned.update(newer.warned)
        self.day = newer.day or self.day
        self.limits.update(newer.limits)


class BudgetTables(AgentTables):
    """Everything here is durable on return, or NotRecorded was raised and nothing of it was written."""

    def keep_books(self, books: Books, at: float) -> None:
        """All of it in one transaction."""
        if not books:
            return
        with self._write_lock:
            with self.writing() as connection:
                self._put(connection, books, at)
            self._have_written(books.agents.values())

    def _put(self, connection: Connection, books: Books, at: float) -> None:
        put_agents(connection, books.agents.values(), self._rows)
        _put_usage(connection, books.usage, at)
        _put_held(connection, books.held)
        _put_warned(connection, books.warned)
        _put_limits(connection, books.limits)
        if books.day:
            statement = upsert(KV)
            changed = statement.on_conflict_do_update(index_elements=["key"], set_={"value": statement.excluded.value})
            connection.execute(changed, {"key": DAY, "value": books.day})

    def change_limits(self, scope: str, key: str, limits: Limits, changes: Iterable[LimitChange]) -> None:
        """What holds from now on, and its history. For agents and trees the limits stand in their own rows."""
        rows = [
            {"at": x.at, "scope": x.scope, "key": x.key, "name": x.name, "old": x.old, "new": x.new, "changed_by": x.by, "reason": x.reason}
            for x in changes
        ]
        with self.writing() as connection:
            if scope not in ("agent", "tree"):
                _put_limits(connection, {(scope, key): limits})
            if rows:
                connection.execute(insert(BUDGET_CHANGES), rows)

    def budget_limits(self) -> dict[Node, Limits]:
        """Every limit that was set for a session, a project, the day or an agent type."""
        with self.reading() as connection:
            return {(row.scope, row.key): limits_of(row.limits) for row in connection.execute(select(BUDGET_LIMITS))}

    def budget_changes(self, scope: str = "", key: str = "", limit: int = 50) -> tuple[list[LimitChange], int]:
        """The newest changes, and how many there are. Without a scope of everything, without a key of the whole scope."""
        table = BUDGET_CHANGES.c
        where = [c for c in (table.scope == scope if scope else None, table.key == key if key else None) if c is not None]
        query = select(BUDGET_CHANGES).where(*where).order_by(table.seq.desc()).limit(limit)
        with self.reading() as connection:
            rows = [LimitChange(x.at, x.scope, x.key, x.name, x.old, x.new, x.changed_by, x.reason) for x in connection.execute(query)]
            total = connection.execute(select(func.count()).select_from(BUDGET_CHANGES).where(*where)).scalar() or 0
        return rows, int(total)

    def budget_usage(self) -> dict[Node, KeptUsage]:
        """What was charged to every node. An unreadable row reads as used up."""
        with self.reading() as connection:
            rows = connection.execute(select(BUDGET_USAGE))
            return {(row.scope, row.key): KeptUsage(usage_of(row.usage), row.boot_s, row.boot_id) for row in rows}

    def budget_warned(self) -> dict[tuple[str, str, str], int]:
        """The highest mark that was said of each limit."""
        with self.reading() as connection:
            return {(row.scope, row.key, row.name): row.mark for row in connection.execute(select(BUDGET_WARNED))}

    def reservations(self) -> list[KeptReservation]:
        """What is set aside."""
        with self.reading() as connection:
            rows = connection.execute(select(RESERVATIONS).order_by(RESERVATIONS.c.reservation_id))
            return [KeptReservation(x.reservation_id, x.agent_id, usage_of(x.estimate), x.expires_boot, x.boot_id, x.tool) for x in rows]


def _usage_put() -> Executable:
    statement = upsert(BUDGET_USAGE)
    new = {name: statement.excluded[name] for name in ("usage", "boot_s", "boot_id", "at")}
    return statement.on_conflict_do_update(index_elements=["scope", "key"], set_=new)


_PUT_USAGE = _usage_put()


def _put_usage(connection: Connection, usage: dict[Node, KeptUsage], at: float) -> None:
    rows = [
        {"scope": scope, "key": key, "usage": flat(kept.usage), "boot_s": kept.boot_s, "boot_id": kept.boot_id, "at": at}
        for (scope, key), kept in usage.items()
    ]
    if rows:
        connection.execute(_PUT_USAGE, rows)


def _put_held(connection: Connection, held: dict[str, KeptReservation | None]) -> None:
    gone = [reservation_id for reservation_id, kept in held.items() if kept is None]
    for start in range(0, len(gone), _AT_ONCE):
        connection.execute(delete(RESERVATIONS).where(RESERVATIONS.c.reservation_id.in_(gone[start : start + _AT_ONCE])))
    rows = [asdict(kept) | {"estimate": json.dumps(asdict(kept.estimate))} for kept in held.values() if kept is not None]
    if rows:
        statement = upsert(RESERVATIONS)
        new = {name: statement.excluded[name] for name in ("agent_id", "estimate", "expires_boot", "boot_id", "tool")}
        connection.execute(statement.on_conflict_do_update(index_elements=["reservation_id"], set_=new), rows)


def _put_limits(connection: Connection, limits: dict[Node, Limits]) -> None:
    rows = [{"scope": scope, "key": key, "limits": json.dumps(asdict(held))} for (scope, key), held in limits.items()]
    if rows:
        statement = upsert(BUDGET_LIMITS)
        new = {"limits": statement.excluded.limits}
        connection.execute(statement.on_conflict_do_update(index_elements=["scope", "key"], set_=new), rows)


def _put_warned(connection: Connection, warned: dict[tuple[str, str, str], int]) -> None:
    rows = [{"scope": scope, "key": key, "name": name, "mark": mark} for (scope, key, name), mark in warned.items()]
    if rows:
        statement = upsert(BUDGET_WARNED)
        changed = statement.on_conflict_do_update(index_elements=["scope", "key", "name"], set_={"mark": statement.excluded.mark})
        connection.execute(changed, rows)
