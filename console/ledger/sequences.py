"""Steps of forbidden sequences that were taken, append-only, and what joins those who took them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from sqlalchemy import insert, select

from console.domain.agent import ControlLevel
from console.domain.lineage import Mark
from console.ledger.database import Database
from console.ledger.tables import AGENTS, SEQUENCE_MARKS


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
