"""The ledger: everything of an instance that must survive a restart, in one SQLite file."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.dialects.sqlite import insert as upsert

from console.ledger.approvals import ApprovalTables
from console.ledger.budgets import BudgetTables
from console.ledger.calls import CallTables
from console.ledger.contexts import ContextTables
from console.ledger.dry_plans import PlanTables
from console.ledger.network import NetworkTables
from console.ledger.network_history import NetworkHistoryTables
from console.ledger.sequences import SequenceTables
from console.ledger.sessions import SessionTables
from console.ledger.spending import SpendTables
from console.ledger.tables import KV


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
