"""Agents, what happened to them, and what they are told."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from functools import lru_cache
from operator import is_, itemgetter
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Executable, RowMapping, Table, bindparam, insert, select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from console.domain.agent import Agent, AgentId, AgentState, ContextId, ProcessIdentity, SandboxKind
from console.domain.budget import MAX_COST_USD, MAX_COUNT, Halt, Limits, Usage
from console.domain.ids import ControlLevel
from console.domain.network import STRICTEST, NetworkMode, read_sensitivity
from console.ledger.database import Database
from console.ledger.migrations import MIGRATIONS, Migration
from console.ledger.tables import AGENTS, EVENTS, NOTICES, int64

_E = TypeVar("_E", bound=StrEnum)
NOTICES_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class AgentLine:
    """One event of an agent, or one notice to it. Text is hostile."""

    seq: int
    """Grows by time of recording; notices are paged by it."""
    agent_id: str
    at: float
    """Seconds since the epoch."""
    kind: str
    text: str


class AgentTables(Database):
    """Agents by id, their events and notices."""

    def __init__(self, path: Path, migrations: tuple[Migration, ...] = MIGRATIONS) -> None:
        """As ``Database``."""
        super().__init__(path, migrations)
        self._rows: dict[str, Agent] = {}
        """Agents that live, as their rows are on disk. A writer keeps the lock until this has the new rows too."""

    def save_agents(self, agents: Iterable[Agent]) -> None:
        """Writes all of them or none, in one transaction. Raises NotRecorded."""
        listed = list(agents)
        if listed:
            with self._write_lock:
                with self.writing() as connection:
                    put_agents(connection, listed, self._rows)
                self._have_written(listed)

    def _have_written(self, agents: Iterable[Agent]) -> None:
        for agent in agents:
            if agent.state.is_live:
                self._rows[agent.agent_id] = agent
            else:
                self._rows.pop(agent.agent_id, None)

    def agents(self, include_ended: bool = True, limit: int = 10_000) -> list[Agent]:
        """Live ones first, then ended ones, newest first within each; at most ``limit``."""
        query = select(AGENTS).order_by(AGENTS.c.live.desc(), AGENTS.c.started_at.desc(), AGENTS.c.agent_id).limit(limit)
        if not include_ended:
            query = query.where(AGENTS.c.live == 1)
        with self.reading() as connection:
            return [_agent(row) for row in connection.execute(query).mappings()]

    def add_events(self, lines: Iterable[tuple[str, float, str, str]]) -> None:
        """Many events (agent id, at, kind, text) in one transaction. Raises NotRecorded."""
        self._add_lines(EVENTS, lines)

    def events(self, agent_id: str, limit: int = 100) -> list[AgentLine]:
        """The newest ``limit`` events of an agent, newest first."""
        query = select(EVENTS).where(EVENTS.c.agent_id == agent_id).order_by(EVENTS.c.seq.desc()).limit(limit)
        with self.reading() as connection:
            return [AgentLine(*row) for row in connection.execute(query)]

    def add_notice(self, agent_id: str, at: float, kind: str, text: str) -> None:
        """One notice to an agent, durable on return. Raises NotRecorded."""
        self._add_lines(NOTICES, [(agent_id, at, kind, text)])

    def notices(self, agent_id: str, after: int = 0) -> list[AgentLine]:
        """Up to 200 notices to this agent with a ``seq`` above ``after``, oldest first."""
        query = (
            select(NOTICES)
            .where(NOTICES.c.agent_id == agent_id, NOTICES.c.seq > int64(after))
            .order_by(NOTICES.c.seq)
            .limit(NOTICES_AT_ONCE)
        )
        with self.reading() as connection:
            return [AgentLine(*row) for row in connection.execute(query)]

    def _add_lines(self, table: Table, lines: Iterable[tuple[str, float, str, str]]) -> None:
        rows = [{"agent_id": agent_id, "at": at, "kind": kind, "text": text} for agent_id, at, kind, text in lines]
        if rows:
            with self.writing() as connection:
                connection.execute(insert(table), rows)


def _put() -> Executable:
    statement = upsert(AGENTS)
    changes = {c.name: statement.excluded[c.name] for c in AGENTS.columns if not c.primary_key}
    return statement.on_conflict_do_update(index_elements=["agent_id"], set_=changes)


_PUT, _NAMES = _put(), tuple(f.name for f in fields(Agent))
"""Made once: to make them takes as long as to run them."""


_USED = ("usage", "last_action", "last_action_at")
_REST = itemgetter(*(name for name in _NAMES if name not in _USED))
_USE = update(AGENTS).where(AGENTS.c.agent_id == bindparam("id")).values({name: bindparam(f"new_{name}") for name in _USED})


def put_agents(connection: Connection, agents: Iterable[Agent], kept: Mapping[str, Agent]) -> None:
    """Within a transaction of the caller's. ``kept``: agents as their rows are: of one that only used something, that alone is written."""
    used: list[Agent] = []
    whole: list[Agent] = []
    for agent in agents:
        had = kept.get(agent.agent_id)
        is_same = had is not None and all(map(is_, _REST(agent.__dict__), _REST(had.__dict__)))
        (used if is_same else whole).append(agent)
    if used:
        rows = [{"id": one.agent_id, **{f"new_{name}": getattr(one, name) for name in _USED}, "new_usage": flat(one.usage)} for one in used]
        if connection.execute(_USE, rows).rowcount != len(used):
            whole += used  # a row is not there that was: somebody else writes into this file
    if whole:
        connection.execute(_PUT, [_row(agent) for agent in whole])


def _row(agent: Agent) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(agent, name) for name in _NAMES}
    row["usage"], row["limits"], row["tree_limits"] = flat(agent.usage), _of_limits(agent.limits), _of_limits(agent.tree_limits)
    for name in ("control_level", "sandbox", "state", "sensitivity", "network_mode"):
        row[name] = str(row[name])
    row["argv"] = json.dumps(agent.argv)
    row["causes"] = json.dumps(agent.causes)
    row["halt"] = "" if agent.halt is None else json.dumps(asdict(agent.halt))
    row["scopes"] = None if agent.scopes is None else json.dumps(agent.scopes)
    row["process"] = None if agent.process is None else flat(agent.process)
    row["live"] = int(agent.state.is_live)
    row["network_enforced"] = int(agent.network_enforced)
    row["cut_off"] = int(agent.cut_off)
    return row


@lru_cache(maxsize=1024)
def _of_limits(value: Limits) -> str:
    """Many share the same."""
    return flat(value)


def flat(value: Limits | Usage | ProcessIdentity) -> str:
    """Its values by name, JSON; ``asdict`` would copy deeply."""
    return json.dumps({name: getattr(value, name) for name in value.__dataclass_fields__})


def _agent(row: RowMapping) -> Agent:
    """The agent of a row. What this version cannot read is taken as the worse: never as calm, contained or unrestricted."""
    state, reason = _state(row["state"], row["state_reason"])
    return Agent(
        agent_id=AgentId(row["agent_id"]),
        name=row["name"],
        parent_id=None if row["parent_id"] is None else AgentId(row["parent_id"]),
        root_id=AgentId(row["root_id"]),
        depth=row["depth"],
        context_id=ContextId(row["context_id"]),
        control_level=_enum(ControlLevel, row["control_level"], ControlLevel.OBSERVED),
        sandbox=_enum(SandboxKind, row["sandbox"], SandboxKind.NONE),
        started_at=row["started_at"],
        argv=tuple(str(word) for word in _json(row["argv"], list)),
        limits=limits_of(row["limits"]),
        tree_limits=limits_of(row["tree_limits"]),
        state=state,
        state_reason=reason,
        usage=usage_of(row["usage"]),
        sensitivity=read_sensitivity(row["sensitivity"]),
        network_mode=_enum(NetworkMode, row["network_mode"], STRICTEST),
        network_enforced=row["network_enforced"] == 1,
        network_note=row["network_note"],
        isolated=row["isolated"],
        cut_off=row["cut_off"] != 0,
        process=_process(row["process"]),
        container_id=row["container_id"],
        cwd=row["cwd"],
        source=row["source"],
        causes=tuple(str(cause) for cause in _json(row["causes"], list)),
        last_action=row["last_action"],
        last_action_at=row["last_action_at"],
        ended_at=row["ended_at"],
        exit_code=row["exit_code"],
        network_why=row["network_why"],
        network_since=row["network_since"],
        project=row["project"],
        # What cannot be read grants nothing.
        scopes=None if row["scopes"] is None else tuple(str(name) for name in _json(row["scopes"], list)),
        halt=_halt(row["halt"]),
        dry_run=row["dry_run"],
    )


def _enum(kind: type[_E], text: str, worst: _E) -> _E:
    try:
        return kind(text)
    except ValueError:
        return worst


def _state(text: str, reason: str) -> tuple[AgentState, str]:
    try:
        return AgentState(text), reason
    except ValueError:
        return AgentState.ALIVE_AFTER_KILL, f"The stored state {text!r} is not known to this version. {reason}".strip()


def _json(text: str | None, kind: type[Any]) -> Any:
    """The stored value, or an empty one of ``kind`` when it cannot be read."""
    try:
        value = json.loads(text or "null")
    except ValueError:
        return kind()
    return value if isinstance(value, kind) else kind()


def _known(kind: type[Any], text: str) -> dict[str, Any]:
    names = {f.name for f in fields(kind)}
    stored = _json(text, dict)
    return {k: v for k, v in stored.items() if k in names and isinstance(v, int | float) and not isinstance(v, bool)}


def limits_of(text: str) -> Limits:
    """Stored caps; unreadable ones read as zero, never as "not capped"."""
    return Limits(**_known(Limits, text)) if _is_object(text) else Limits(0, 0, 0.0, 0, 0.0, 0.0)


def usage_of(text: str) -> Usage:
    """Stored usage; an unreadable one reads as all used up, never as a fresh budget."""
    return Usage(**_known(Usage, text)) if _is_object(text) else Usage(MAX_COUNT, MAX_COUNT, 0.0, MAX_COUNT, MAX_COST_USD)


def _halt(text: str) -> Halt | None:
    found = _json(text, dict)
    try:
        end = found.get("used_at_end")
        words = (str(found["scope"]), str(found["key"]), str(found["limit"]))
        return Halt(*words, float(found["cap"]), float(found["used"]), None if end is None else float(end))
    except (KeyError, TypeError, ValueError):
        return None


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _process(text: str | None) -> ProcessIdentity | None:
    known = _known(ProcessIdentity, text) if text else {}
    return ProcessIdentity(**known) if len(known) == 2 else None
