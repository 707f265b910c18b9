"""How a session came to its network mode: every change of sensitivity and mode, isolations, and what was really enforced."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, func, insert, select

from console.domain.network import LOOSEST, NetworkMode, Sensitivity, higher, read_sensitivity, stricter_mode
from console.ledger.database import Database
from console.ledger.sessions import read_mode
from console.ledger.tables import AGENTS, MODES, NETWORK_EVENTS, SENSITIVITIES

WORDS_MAX = 500
FIRSTS_MAX = 50
"""Distinct values that are looked at: there are four levels and three modes, and whatever was written into the file by hand."""


@dataclass(frozen=True, slots=True)
class NetworkChange:
    """One moment of a session's history. Text is hostile."""

    at: float
    """Seconds since the epoch."""
    cause: str
    """``launch data operator switch restart isolated reconnected enforced``, or empty: kept by a version that did not say."""
    by: str = ""
    words: str = ""
    agent_id: str = ""
    """The agent that it is about; empty: the whole session."""
    mode: NetworkMode | None = None
    """The mode from then on, where it changed or was enforced."""
    sensitivity: Sensitivity | None = None
    """The sensitivity from then on, where it rose."""
    enforced: bool | None = None
    """Whether that was verified; None: it says nothing about that."""
    ms: float | None = None


@dataclass(frozen=True, slots=True)
class NetworkHistory:
    """Newest first."""

    changes: tuple[NetworkChange, ...]
    left_out: int
    """Older isolations and proofs that were not read; changes of sensitivity and mode are always whole."""
    registrations: int
    """Of private data, with those that changed nothing."""
    began_at: float | None
    """When its first agent started; None when the ledger knows of none."""


class NetworkHistoryTables(Database):
    """Append-only, as the ratchet itself."""

    def keep_network_changes(self, changes: Iterable[tuple[str, NetworkChange]]) -> None:
        """Isolations, reconnections and outcomes, each with its session; one transaction, durable on return. Raises NotRecorded."""
        rows = [
            {
                "context_id": context_id,
                "agent_id": change.agent_id,
                "at": change.at,
                "what": change.cause,
                "mode": str(change.mode or ""),
                "enforced": None if change.enforced is None else int(change.enforced),
                "ms": change.ms,
                "changed_by": change.by,
                "words": change.words[:WORDS_MAX],
            }
            for context_id, change in changes
        ]
        if rows:
            with self.writing() as connection:
                connection.execute(insert(NETWORK_EVENTS), rows)

    def network_history(self, context_id: str, agent_id: str = "", limit: int = 200) -> NetworkHistory:
        """Of a session; with an agent, isolations and outcomes of that one alone. Raises ConsoleError when the ledger cannot be read.

        What an agent can repeat (registering data) changes something at most a few times, so it cannot push anything out.
        """
        acts, left_out = self._acts(context_id, agent_id, limit)
        changes = [*self._ratchet(context_id), *acts]
        return NetworkHistory(
            tuple(sorted(changes, key=lambda change: change.at, reverse=True)), left_out, *self._around(context_id, agent_id)
        )

    def _acts(self, context_id: str, agent_id: str, limit: int) -> tuple[list[NetworkChange], int]:
        table = NETWORK_EVENTS.c
        wanted = (table.context_id == context_id) & (table.agent_id == agent_id if agent_id else table.seq > 0)
        with self.reading() as connection:
            query = select(NETWORK_EVENTS).where(wanted).order_by(table.seq.desc()).limit(limit)
            rows = connection.execute(query).mappings().all()
            total = connection.execute(select(func.count()).select_from(NETWORK_EVENTS).where(wanted)).scalar_one()
        return [_act(row) for row in rows], total - len(rows)

    def _around(self, context_id: str, agent_id: str) -> tuple[int, float | None]:
        registered = select(func.count()).select_from(SENSITIVITIES)
        registered = registered.where(SENSITIVITIES.c.context_id == context_id, SENSITIVITIES.c.cause != "launch")
        of = AGENTS.c.agent_id == agent_id if agent_id else AGENTS.c.context_id == context_id
        with self.reading() as connection:
            number = connection.execute(registered).scalar_one()
            began: float | None = connection.execute(select(func.min(AGENTS.c.started_at)).where(of)).scalar()
        return number, began

    def _ratchet(self, context_id: str) -> list[NetworkChange]:
        """The rows at which the level rose or the mode became stricter, joined where one act did both."""
        level, mode = Sensitivity.PUBLIC, LOOSEST
        found: dict[tuple[float, str, str], NetworkChange] = {}
        for row in self._firsts(SENSITIVITIES, SENSITIVITIES.c.level, context_id):
            joined = higher(level, read_sensitivity(row["level"]))
            if joined is not level:
                level = joined
                words = f"{row['dataset']} from {row['source']}" if row["source"] and row["cause"] != "launch" else row["dataset"]
                change = NetworkChange(row["at"], row["cause"], row["changed_by"], words[:WORDS_MAX], sensitivity=level)
                found[(row["at"], row["cause"], row["changed_by"])] = change
        for row in self._firsts(MODES, MODES.c.mode, context_id):
            joined_mode = stricter_mode(mode, read_mode(row["mode"]))
            if joined_mode is not mode:
                mode = joined_mode
                key = (row["at"], row["cause"], row["changed_by"])
                change = NetworkChange(row["at"], row["cause"], row["changed_by"], row["why"][:WORDS_MAX], mode=mode)
                found[key] = replace(found[key], mode=mode) if key in found else change
        return list(found.values())

    def _firsts(self, table: Table, value: ColumnElement[Any], context_id: str) -> Sequence[Any]:
        """The first row of each value, oldest first."""
        firsts: Select[Any] = select(func.min(table.c.seq)).where(table.c.context_id == context_id).group_by(value).limit(FIRSTS_MAX)
        with self.reading() as connection:
            return connection.execute(select(table).where(table.c.seq.in_(firsts)).order_by(table.c.seq)).mappings().all()


def _act(row: Any) -> NetworkChange:
    return NetworkChange(
        row["at"],
        row["what"],
        row["changed_by"],
        row["words"],
        row["agent_id"],
        read_mode(row["mode"]),
        enforced=None if row["enforced"] is None else row["enforced"] == 1,
        ms=row["ms"],
    )
