"""Workspaces of sessions: who uses them, what they hold, whether they are held as evidence, when they went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, func, select, update
from sqlalchemy.dialects.sqlite import insert

from console.ledger.database import Database
from console.ledger.tables import CONTEXTS, int64


@dataclass(frozen=True, slots=True)
class ContextRow:
    """One session's workspace. Times are seconds since the epoch."""

    context_id: str
    agent: str
    stateless: bool
    created_at: float
    last_used: float
    ended_at: float | None
    """When its last agent ended; None while one lives."""
    hold: str
    """Why it is held as evidence, or empty."""
    held_at: float | None
    held_s: float
    """Seconds of past holds since it was last used."""
    bytes: int
    measured_at: float | None
    complete: bool
    """Whether ``bytes`` is all of it, not a lower bound."""


class ContextTables(Database):
    """Rows of workspaces that are there; one that went keeps its row, marked."""

    def use_context(self, context_id: str, agent: str, at: float, stateless: bool = False) -> None:
        """An agent begins in the session: durable on return. A session once used by name stays one with state. Raises NotRecorded."""
        table = CONTEXTS.c
        fresh = {
            "context_id": context_id,
            "agent": agent,
            "stateless": int(stateless),
            "created_at": at,
            "last_used": at,
            "ended_at": None,
            "hold": "",
            "held_at": None,
            "held_s": 0.0,
            "bytes": 0,
            "measured_at": None,
            "complete": 0,
            "gone_at": None,
        }
        with self.writing() as connection:
            known = connection.execute(select(table.gone_at).where(table.context_id == context_id)).first()
            if known is None:
                connection.execute(insert(CONTEXTS), fresh)
            elif known[0] is not None:
                connection.execute(update(CONTEXTS).where(table.context_id == context_id).values(**fresh))
            else:
                # A clock that went back makes nothing older.
                values = {"last_used": func.max(table.last_used, at), "ended_at": None, "held_s": 0.0}
                values |= {} if stateless else {"stateless": 0}
                connection.execute(update(CONTEXTS).where(table.context_id == context_id).values(**values))

    def contexts_in_use(self, context_ids: Iterable[str], at: float) -> None:
        """Agents work in them at this moment. Raises NotRecorded."""
        table, wanted = CONTEXTS.c, list(context_ids)
        if wanted:
            with self.writing() as connection:
                there = update(CONTEXTS).where(table.context_id.in_(wanted), table.gone_at.is_(None))
                connection.execute(there.values(last_used=func.max(table.last_used, at)))

    def context_ended(self, context_id: str, at: float) -> None:
        """Its last agent ended. Raises NotRecorded."""
        table = CONTEXTS.c
        with self.writing() as connection:
            values = {"ended_at": at, "last_used": func.max(table.last_used, at)}
            connection.execute(update(CONTEXTS).where(table.context_id == context_id, table.gone_at.is_(None)).values(**values))

    def contexts_measured(self, found: Mapping[str, tuple[int, bool]], at: float) -> None:
        """What each holds (bytes, and whether that is all of it), in one transaction. Raises NotRecorded."""
        rows = [{"one": i, "bytes": int64(used), "complete": int(complete), "measured_at": at} for i, (used, complete) in found.items()]
        if rows:
            with self.writing() as connection:
                connection.execute(_MEASURED, rows)

    def hold_context(self, context_id: str, why: str, at: float) -> bool:
        """Holds it as evidence; a hold that is there stays as it is. Whether there is such a workspace. Raises NotRecorded."""
        table = CONTEXTS.c
        with self.writing() as connection:
            there = connection.execute(select(table.hold).where(table.context_id == context_id, table.gone_at.is_(None))).first()
            if there is not None and not there[0]:
                connection.execute(update(CONTEXTS).where(table.context_id == context_id).values(hold=why, held_at=at))
        return there is not None

    def release_context(self, context_id: str, at: float) -> bool:
        """Ends a hold; the time it lasted does not count against the session. Whether one ended. Raises NotRecorded."""
        table = CONTEXTS.c
        with self.writing() as connection:
            row = connection.execute(
                select(table.hold, table.held_at, table.held_s).where(table.context_id == context_id, table.gone_at.is_(None))
            ).first()
            if row is None or not row[0]:
                return False
            held_s = row[2] + max(0.0, at - (row[1] if row[1] is not None else at))
            connection.execute(update(CONTEXTS).where(table.context_id == context_id).values(hold="", held_at=None, held_s=held_s))
        return True

    def context_gone(self, context_id: str, at: float) -> None:
        """Its workspace was deleted. Raises NotRecorded."""
        with self.writing() as connection:
            connection.execute(update(CONTEXTS).where(CONTEXTS.c.context_id == context_id).values(gone_at=at, bytes=0))

    def contexts(self) -> list[ContextRow]:
        """Workspaces that are there, by id. Raises ConsoleError when the ledger cannot be read."""
        with self.reading() as connection:
            rows = connection.execute(select(CONTEXTS).where(CONTEXTS.c.gone_at.is_(None)).order_by(CONTEXTS.c.context_id)).mappings().all()
        return [_row(dict(row)) for row in rows]


_MEASURED = (
    update(CONTEXTS)
    .where(CONTEXTS.c.context_id == bindparam("one"))
    .values({name: bindparam(name) for name in ("bytes", "complete", "measured_at")})
)


def _row(row: dict[str, Any]) -> ContextRow:
    del row["gone_at"]
    return ContextRow(**{**row, "stateless": bool(row["stateless"]), "complete": bool(row["complete"])})
