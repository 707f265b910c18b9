"""What ledger and audit log say was launched, for a kill without a guard: the registry may be an older one, or forged.

Read-only, and by the standard library alone; the guard never loads this.
"""

from __future__ import annotations

import json
import sqlite3
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

from console.killswitch import processes
from console.killswitch.kill.targets import Aim
from console.killswitch.registry import NO_RECORD, Entry, Held

WHY = "It was launched, and the guard's record does not have it as it was: what it may have started is not known."
TIMEOUT_S = 0.3
AGAIN_S = 0.25
"""Seconds until the ledger is asked again: an agent that has just ended leaves the registry a moment before the ledger knows."""
MOST = 100_000


@dataclass(frozen=True, slots=True)
class LaunchedAgent:
    """One agent that must be in the registry."""

    agent_id: str
    control_level: str
    pid: int = 0
    """0: not known."""
    start_ticks: int = 0
    container_id: str = ""

    def aim_beside(self, entry: Entry | None) -> Aim | None:
        """The target that it is when the registry has no such agent, or another process under its id; None when the two agree.

        ``entry``: None too where nothing of what the registry has was there: what such a record says of the rest may be forged.
        """
        if entry is not None and self._agrees_with(entry):
            return None
        now = Entry(self.agent_id, "process", self.control_level, 0, confirmed=True, pid=self.pid, start_ticks=self.start_ticks)
        held = Held(replace(now, loose=NO_RECORD), doubt=WHY)
        held.open()  # what has ended meanwhile stays None
        return Aim(self.agent_id, held)

    def _agrees_with(self, entry: Entry) -> bool:
        if self.container_id:
            return entry.container_id == self.container_id
        return not self.pid or (entry.pid, entry.start_ticks) == (self.pid, self.start_ticks)

    def is_there(self) -> bool:
        return self.pid > 1 and processes.is_the_same(self.pid, self.start_ticks)


@dataclass(frozen=True, slots=True)
class Launched:
    """``problem``: why agents may be missing from the list."""

    agents: tuple[LaunchedAgent, ...] = ()
    problem: str = ""


@dataclass(slots=True)
class _Ledger:
    live: dict[str, LaunchedAgent] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)


def read_launched(state_dir: Path, held: frozenset[str] = frozenset()) -> Launched:
    """Agents that were launched or adopted and have not ended, as far as ledger and audit log say. Never raises.

    ``held``: agents of the registry. Without either file nothing was ever launched here by a supervisor.
    """
    found = _read(state_dir)
    if any(one.agent_id not in held and not one.is_there() for one in found.agents):
        time.sleep(AGAIN_S)
        found = _read(state_dir)
    return found


def _read(state_dir: Path) -> Launched:
    ledger, audit = state_dir / "ledger.db", state_dir / "audit.db"
    try:
        rows = _from_ledger(ledger) if ledger.exists() else _Ledger()
    except (sqlite3.Error, OSError, ValueError, TypeError, KeyError) as error:
        return Launched(problem=f"The ledger cannot be read ({error}): agents may be missing from the registry.")
    try:
        launched = _from_audit(audit) if audit.exists() else {}
    except (sqlite3.Error, OSError, ValueError, TypeError) as error:
        return Launched(tuple(rows.live.values()), f"The audit log cannot be read ({error}): agents may be missing from the registry.")
    beyond = {i: LaunchedAgent(i, level) for i, level in launched.items() if i not in rows.known}  # an older ledger was put in its place
    return Launched(tuple((rows.live | beyond).values()))


def _from_ledger(path: Path) -> _Ledger:
    found = _Ledger()
    query = "SELECT agent_id, control_level, live, state, process, container_id FROM agents WHERE started_at >= ?"
    for agent_id, level, live, state, process, container_id in _rows(path, query, "started_at"):
        found.known.add(str(agent_id))
        told = json.loads(process) if isinstance(process, str) and process else None
        if not live or level == "observed" or (state == "starting" and not told):
            continue
        pid, ticks = (int(told["pid"]), int(told["start_ticks"])) if isinstance(told, dict) else (0, 0)
        found.live[str(agent_id)] = LaunchedAgent(str(agent_id), str(level), pid, ticks, str(container_id or ""))
    return found


def _from_audit(path: Path) -> dict[str, str]:
    """Agents (id, control level) with a record of their launch or adoption since this host was started."""
    query = "SELECT agent_id, kind FROM records WHERE at >= ? AND kind IN ('launch', 'adopt.done') AND agent_id != ''"
    return {str(agent_id): "adopted" if kind == "adopt.done" else "managed" for agent_id, kind in _rows(path, query, "at")}


def _rows(path: Path, query: str, by: str) -> list[tuple[object, ...]]:
    """Rows since this host was started: nothing older runs. sqlite3.Error."""
    connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=TIMEOUT_S)
    try:
        return connection.execute(f"{query} ORDER BY {by} DESC LIMIT {MOST}", (_booted_at(),)).fetchall()
    finally:
        connection.close()


def _booted_at() -> float:
    """Seconds since the epoch, less a margin for a clock that was set meanwhile."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) - 86_400.0
