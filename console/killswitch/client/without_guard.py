"""A kill without a guard: what it uses, from the records on disk, the ledger and the audit log.

The registry may be an older one, or forged: what ledger and audit log say was launched is compared with it. They are read by the
standard library alone, and the guard never loads this module.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

from console.domain.guard import RETURN_WATCH_S
from console.killswitch.kernel import processes
from console.killswitch.kernel.cgroups import Mounts, Tree, find_mounts, tree_places
from console.killswitch.kernel.engine import Engine
from console.killswitch.kernel.faults import in_thread
from console.killswitch.kill.observed import SEEN_FILE, UNHELD_FILE, SeenAgents, Unheld
from console.killswitch.kill.receipt import write_receipt
from console.killswitch.kill.request import RECORD_S
from console.killswitch.kill.respawners import Respawners
from console.killswitch.kill.scan import agents_of
from console.killswitch.kill.session import KillSession
from console.killswitch.kill.targets import Aim, Order
from console.killswitch.store.atomic_file import Reserve
from console.killswitch.store.journal import Journal
from console.killswitch.store.latch import Latch
from console.killswitch.store.registry import NO_RECORD, Entry, Held, Registry

WHY = "It was launched, and the guard's record does not have it as it was: what it may have started is not known."
# A supervisor that is alive may be writing; the kill has gone out already and must not wait for its lock.
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
        # Without a process id it never began to run: its ticket was not confirmed.
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
    # Read-only: a kill must not create, repair or lock a database that a living supervisor uses.
    connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=TIMEOUT_S)
    try:
        return connection.execute(f"{query} ORDER BY {by} DESC LIMIT {MOST}", (_booted_at(),)).fetchall()
    finally:
        connection.close()


def _booted_at() -> float:
    """Seconds since the epoch, less a margin for a clock that was set meanwhile."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) - 86_400.0


def find_tree(instance_id: str, mounts: Mounts, recorded: str = "") -> Tree | None:
    """The instance's existing tree, without making or moving anything; None when there is none. OSError when that is unclear."""
    unclear: OSError | None = None
    for root in tree_places(instance_id, mounts, recorded):
        try:
            return Tree(root, mounts)
        except OSError as error:
            unclear = unclear if error.errno in (errno.ENODEV, errno.ENOENT) else error
    if unclear is not None:
        raise unclear
    return None


LISTS_S = 1.0
"""A kill without a guard waits no longer for ledger, audit log and lists; the first SIGKILL has gone out by then."""


class WithoutGuard:
    """What a kill uses (kill/request.py: Keeper), from the records on disk. The registry is read, never written."""

    owns_registry = False
    precedence = None
    connections = None
    refusal = "No guard runs, so no launch is confirmed."

    def __init__(self, state_dir: Path, run_dir: Path, instance_id: str) -> None:
        self.instance_id, self.run_dir, self._state_dir, self._guard_dir = instance_id, run_dir, state_dir, state_dir / "guard"
        self._reserve = Reserve(self._guard_dir / "reserve")
        self.latch = Latch(self._guard_dir, self._reserve, run_dir)
        self.registry = Registry(self._guard_dir)
        self.seen = SeenAgents(instance_id, self._guard_dir / SEEN_FILE)
        self.unheld = Unheld(self._guard_dir / UNHELD_FILE)
        entries = self.registry.recover()
        try:
            self.tree = find_tree(instance_id, find_mounts(), self.registry.root)
        except OSError as error:
            self.tree, self.registry.incomplete = None, f"The agents' cgroups could not be opened ({error.strerror})."
        self.registry.restore(entries, self.tree)
        self._found = frozenset(agent_id for agent_id, held in self.registry.held.items() if held.is_found)
        """Before anything was killed."""
        self.engine = Engine(Path(self.registry.engine_socket), instance_id) if self.registry.engine_socket else None
        self._writing = threading.Lock()
        self.respawners = Respawners(
            instance_id,
            self._guard_dir,
            RETURN_WATCH_S,
            lambda kind, **line: self.journal.append(kind, **line),
            lambda kill, words: self.write_receipt(kill),
            {},
            lambda: processes.own_line(os.getppid()),
            lambda: agents_of(self.registry, 0),
        )
        self.respawners.known.load()

    @property
    def journal(self) -> Journal:
        return Journal(self._guard_dir, self._reserve)

    def press_latch(self, order: Order) -> None:
        """What the latch holds on disk is read after the first SIGKILL (``save_latch``)."""

    def save_latch(self, order: Order) -> None:
        self._guard_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.latch.load(self.registry.generation)
        self.latch.press(order.kill_id, order.reason)
        self.latch.save()

    def add_more(self, kill: KillSession) -> None:
        """Reads the lists of observed agents, and compares the registry with ledger and audit log."""
        if self.registry.incomplete:
            kill.excluded.append(f"{self.registry.incomplete} Only leaves, containers and marked processes that were found were killed.")
        found = Lists()
        reader = in_thread(lambda: self._read(kill, found), "lists")
        if reader is not None:
            reader.join(LISTS_S)
        if not found.is_read:
            kill.excluded.append("The disk has not answered: which observed agents are included, and what was launched, is not known.")
            kill.incomplete = kill.incomplete or "Ledger and audit log have not answered: agents may be missing from the registry."
        kill.excluded += found.problems
        kill.incomplete = kill.incomplete or found.incomplete
        kill.add(found.missing)

    def _read(self, kill: KillSession, found: Lists) -> None:
        """Disk only, on a thread of its own."""
        if kill.order.is_all:
            self.unheld.load()
        if problem := self.seen.load():
            found.problems.append(problem)
        known = {aim.agent_id: aim.held.entry for aim in kill.aims if aim.held is not None and aim.agent_id in self._found}
        launched = read_launched(self._state_dir, frozenset(known))
        found.incomplete = launched.problem if kill.order.is_all else ""
        wanted = [one for one in launched.agents if kill.in_scope(one.agent_id)]
        found.missing = [aim for one in wanted if (aim := one.aim_beside(known.get(one.agent_id))) is not None]
        found.is_read = True

    def record(self, what: str, *writes: Callable[[], object]) -> list[str]:
        """A full disk costs the record, never the kill."""
        problems = []
        for write in writes:
            try:
                write()
            except OSError as error:
                problems.append(f"{what} not written: {error.strerror or error}")
        return problems

    def write_receipt(self, kill: KillSession) -> None:
        writer = in_thread(lambda: self._write(kill), "receipt")
        if writer is not None:
            writer.join(RECORD_S)

    def _write(self, kill: KillSession) -> None:
        with self._writing:  # a writer that was late writes what is known by then
            if problems := self.record("receipt", lambda: write_receipt(self._guard_dir, kill.receipt())):
                kill.excluded.append(f"The receipt could not be written: {problems[0]}")

    def is_finished(self, kill: KillSession) -> None:
        if self.registry.retired:
            self.registry.sweep()
        writer = in_thread(lambda: self._leave_watch(kill), "return watch")  # the guard that comes next watches
        if writer is not None:
            writer.join(RECORD_S)

    def _leave_watch(self, kill: KillSession) -> None:
        self.record("return watch", *self.respawners.follow(kill, here=False))

    def close(self, kill: KillSession) -> None:
        """Closes what was opened, unless the kill still waits for the disk."""
        if kill.finished.is_set():
            for held in self.registry.held.values():
                held.close()
            if self.tree is not None:
                self.tree.close()


@dataclass(slots=True)
class Lists:
    """What the disk says besides the registry."""

    is_read: bool = False
    problems: list[str] = field(default_factory=list)
    missing: list[Aim] = field(default_factory=list)
    incomplete: str = ""
