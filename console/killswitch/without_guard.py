"""A kill without a guard: what it uses, from the records on disk."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from console.domain.guard import RETURN_WATCH_S
from console.killswitch.cgroups import find_mounts, find_tree
from console.killswitch.durable import Reserve
from console.killswitch.engine_socket import Engine
from console.killswitch.journal import Journal
from console.killswitch.kill.receipt import UNHELD_FILE, Unheld, write_receipt
from console.killswitch.kill.request import RECORD_S, in_thread
from console.killswitch.kill.respawners import Respawners, own_line
from console.killswitch.kill.session import KillSession
from console.killswitch.kill.started import agents_of
from console.killswitch.kill.targets import SEEN_FILE, Aim, Order, SeenAgents
from console.killswitch.latch import Latch
from console.killswitch.launched import read_launched
from console.killswitch.registry import Registry

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
            lambda: own_line(os.getppid()),
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
