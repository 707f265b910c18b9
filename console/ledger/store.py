"""The ledger: everything of an instance that must survive a restart, in one SQLite file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from sqlalchemy import insert, select
from sqlalchemy.dialects.sqlite import insert as upsert

from console.domain.calls.lineage import Mark
from console.domain.ids import ControlLevel
from console.ledger.approvals import ApprovalTables
from console.ledger.budgets import BudgetTables
from console.ledger.calls import CallTables
from console.ledger.contexts import ContextTables
from console.ledger.database import Database
from console.ledger.dry_plans import PlanTables
from console.ledger.network import NetworkTables
from console.ledger.network_history import NetworkHistoryTables
from console.ledger.sessions import SessionTables
from console.ledger.spending import SpendTables
from console.ledger.tables import AGENTS, KV, SEQUENCE_MARKS

# --- Steps of forbidden sequences that were taken, append-only, and what joins those who took them.


class SequenceTables(Database):
    """A mark is never taken back."""

    def add_marks(self, marks: Iterable[Mark]) -> None:
        """Writes them, durable on return. Raises NotRecorded."""
        rows = [asdict(mark) for mark in marks]
        if rows:
            with self.writing() as connection:
                connection.execute(insert(SEQUENCE_MARKS), rows)

    def marks(self) -> list[Mark]:
        """Every mark, oldest first; of equal ones the first. Raises ConsoleError when the ledger cannot be read."""
        table = SEQUENCE_MARKS.c
        columns = (table.pattern, table.step, table.value, table.agent_id, table.context_id, table.root_id, table.at, table.text)
        found: dict[tuple[str, ...], Mark] = {}
        with self.reading() as connection:
            for row in connection.execute(select(*columns, table.tighten).order_by(table.seq)):
                mark = Mark(*row)
                found.setdefault((*mark.key, mark.context_id, mark.root_id), mark)
        return list(found.values())

    def lineage_links(self) -> list[tuple[str, str, str]]:
        """Root agent, session and, of those that were only seen, the folder: of everybody who was ever kept. Raises ConsoleError."""
        table = AGENTS.c
        query = select(table.root_id, table.context_id, table.control_level, table.cwd).distinct()
        with self.reading() as connection:
            rows = connection.execute(query).all()
        return [(root, session, cwd if level == ControlLevel.OBSERVED else "") for root, session, level, cwd in rows]


class Ledger(
    SessionTables,
    ContextTables,
    SpendTables,
    NetworkTables,
    NetworkHistoryTables,
    BudgetTables,
    ApprovalTables,
    CallTables,
    SequenceTables,
    PlanTables,
):
    """All groups of tables over one file. Thread-safe; what a method wrote is on disk when it returns."""

    def kv_get(self, key: str) -> str | None:
        """A small setting of the instance, or None."""
        with self.reading() as connection:
            value: str | None = connection.execute(select(KV.c.value).where(KV.c.key == key)).scalar()
        return value

    def kv_set(self, key: str, value: str) -> None:
        """Sets it, durable on return. Raises NotRecorded."""
        statement = upsert(KV)
        with self.writing() as connection:
            connection.execute(
                statement.on_conflict_do_update(index_elements=["key"], set_={"value": statement.excluded.value}),
                {"key": key, "value": value},
            )
