"""What went out through Envoy, and every version of the allowlist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any

from sqlalchemy import func, insert, select

from console.domain.errors import Conflict, ConsoleError
from console.domain.network import Allowlist, AllowlistEntry, EgressRecord, Sensitivity
from console.ledger.database import Database
from console.ledger.tables import ALLOWLISTS, EGRESS, int64

_RULE = re.compile(r"^entry (\S{1,64})\Z")


@dataclass(frozen=True, slots=True)
class EgressRow:
    """A record with its place in the log."""

    egress_id: int
    """Grows by time of recording; pages go by it."""
    record: EgressRecord


@dataclass(frozen=True, slots=True)
class AllowlistVersion:
    """One version of the list with who made it and why."""

    allowlist: Allowlist
    by: str
    reason: str
    at: float
    """Seconds since the epoch."""
    readable: bool = True
    """False: the stored list is damaged and reads as empty, which denies."""


class NetworkTables(Database):
    """The egress log, and the allowlist with its history (append-only)."""

    def add_egress(self, records: Iterable[EgressRecord]) -> int:
        """Appends all of them in one transaction, durable on return; the id of the newest there is. Raises NotRecorded."""
        rows = [_egress_row(record) for record in records]
        newest = select(func.coalesce(func.max(EGRESS.c.egress_id), 0))
        with self.writing() as connection:
            if rows:
                connection.execute(insert(EGRESS), rows)
            return int(connection.execute(newest).scalar_one())

    def egress_after(self, egress_id: int, limit: int) -> list[EgressRow]:
        """The oldest ``limit`` records above ``egress_id``, in the order they were taken."""
        names = [f.name for f in fields(EgressRecord)]
        query = select(EGRESS).where(EGRESS.c.egress_id > int64(egress_id)).order_by(EGRESS.c.egress_id).limit(limit)
        with self.reading() as connection:
            rows = connection.execute(query).mappings().all()
        return [EgressRow(row["egress_id"], EgressRecord(**{n: row[n] for n in names} | {"allowed": row["allowed"] == 1})) for row in rows]

    def egress(self, limit: int = 200, agent_id: str | None = None, before_id: int | None = None) -> list[EgressRow]:
        """The newest ``limit`` records, newest first; of one agent; below ``before_id`` for the next page."""
        query = select(EGRESS).order_by(EGRESS.c.egress_id.desc()).limit(limit)
        if agent_id is not None:
            query = query.where(EGRESS.c.agent_id == agent_id)
        if before_id is not None:
            query = query.where(EGRESS.c.egress_id < int64(before_id))
        names = [f.name for f in fields(EgressRecord)]
        with self.reading() as connection:
            rows = connection.execute(query).mappings().all()
        return [EgressRow(row["egress_id"], EgressRecord(**{n: row[n] for n in names} | {"allowed": row["allowed"] == 1})) for row in rows]

    def egress_since(self, at: float, limit: int = 100_000) -> tuple[list[EgressRecord], bool]:
        """(the newest ``limit`` records at or after ``at``, whether there are more)."""
        names = [f.name for f in fields(EgressRecord)]
        query = select(*(EGRESS.c[n] for n in names)).where(EGRESS.c.at >= at).order_by(EGRESS.c.egress_id.desc()).limit(limit + 1)
        with self.reading() as connection:
            rows = connection.execute(query).mappings().all()
        return [EgressRecord(**{**row, "allowed": row["allowed"] == 1}) for row in rows[:limit]], len(rows) > limit

    def hits(self, since: float) -> dict[str, tuple[int, float]]:
        """Entry id -> (allowed requests at or after ``since``, time of the last one ever, seconds since the epoch)."""
        count = func.total(EGRESS.c.at >= since)
        query = select(EGRESS.c.entry_id, count, func.max(EGRESS.c.at)).where(EGRESS.c.entry_id.is_not(None)).group_by(EGRESS.c.entry_id)
        with self.reading() as connection:
            return {entry_id: (int(n), float(last)) for entry_id, n, last in connection.execute(query)}

    def save_allowlist(self, allowlist: Allowlist, by: str, reason: str, at: float) -> None:
        """Appends a version. Raises Conflict unless its number is above every stored one, NotRecorded."""
        entries = json.dumps([asdict(entry) for entry in allowlist.entries])
        with self.writing() as connection:
            newest = connection.execute(select(func.max(ALLOWLISTS.c.version))).scalar()
            if newest is not None and allowlist.version <= newest:
                raise Conflict(f"The allowlist is already at version {newest}.", "Look at the newest version and change that one.")
            row = {"version": allowlist.version, "entries": entries, "changed_by": by, "reason": reason, "at": at}
            connection.execute(insert(ALLOWLISTS), row)

    def allowlist(self) -> Allowlist:
        """The newest version; an empty one when there is none or when it is damaged (an unreadable policy denies)."""
        newest = self.allowlist_history(limit=1)
        return newest[0].allowlist if newest else Allowlist()

    def allowlist_history(self, limit: int = 200) -> list[AllowlistVersion]:
        """The versions, newest first."""
        with self.reading() as connection:
            rows = connection.execute(select(ALLOWLISTS).order_by(ALLOWLISTS.c.version.desc()).limit(limit)).mappings().all()
        found = []
        for row in rows:
            entries = _entries(row["entries"])
            found.append(
                AllowlistVersion(Allowlist(row["version"], entries or ()), row["changed_by"], row["reason"], row["at"], entries is not None)
            )
        return found


def _egress_row(record: EgressRecord) -> dict[str, Any]:
    rule = _RULE.match(record.rule)
    numbers = {name: int64(getattr(record, name)) for name in ("status", "bytes_up", "bytes_down")}
    return asdict(record) | numbers | {"allowed": int(record.allowed), "entry_id": rule.group(1) if record.allowed and rule else None}


def _entries(text: str) -> tuple[AllowlistEntry, ...] | None:
    """The stored entries, each checked again; None when any of them is not acceptable."""
    try:
        return tuple(_entry(item) for item in json.loads(text))
    except (ValueError, TypeError, AttributeError, KeyError, ConsoleError):
        return None


def _entry(item: dict[str, Any]) -> AllowlistEntry:
    lists = {name: tuple(str(v) for v in item[name]) for name in ("methods", "paths", "private_networks")}
    # Not read_sensitivity: an unknown value would read as SECRET, which is the *loosest* thing a destination may receive.
    entry = AllowlistEntry(**item | lists | {"may_receive": Sensitivity(item["may_receive"])})
    entry.check()
    return entry
