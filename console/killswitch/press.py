"""Pressing from outside the guard: through it when it answers, without it, from the registry on disk, when it does not."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from console.domain.errors import ConsoleError, Denied, NotFound, TimedOut, Unreachable, UsageProblem
from console.domain.guard import RETURN_WATCH_S, SILENT_S
from console.domain.kill import Receipt, receipt_from_json
from console.killswitch import processes
from console.killswitch.cgroups import find_mounts, find_tree
from console.killswitch.client import GuardClient
from console.killswitch.durable import Reserve
from console.killswitch.engine_socket import Engine
from console.killswitch.journal import Journal
from console.killswitch.kill.orders import claim
from console.killswitch.kill.receipt import UNHELD_FILE, Unheld, new_kill_id, read_receipt, write_receipt
from console.killswitch.kill.request import RECORD_S, carry_out, in_thread, wait_until_done
from console.killswitch.kill.respawners import Respawners, agents_of, own_line
from console.killswitch.kill.session import KillSession
from console.killswitch.kill.targets import SEEN_FILE, Aim, Order, SeenAgents
from console.killswitch.latch import Latch
from console.killswitch.launched import read_launched
from console.killswitch.peers import inside_an_agent
from console.killswitch.registry import Registry

LISTS_S = 1.0
"""A kill without a guard waits no longer for ledger, audit log and lists; the first SIGKILL has gone out by then."""


def press_and_wait(
    state_dir: Path, run_dir: Path, instance_id: str, scope: str | list[str], reason: str, by: str, timeout_s: float = 10.0
) -> Receipt:
    """Kills and waits for the local receipt.

    Denied when this process is an agent's; TimedOut when the kill went out and its receipt did not come in time.
    """
    done = place_order(state_dir, run_dir, instance_id, scope, reason, by)
    if isinstance(done, Receipt):
        return done
    client = GuardClient(run_dir / "guard.sock", timeout_s=SILENT_S)
    try:
        return _wait(client, state_dir / "guard", done, time.monotonic() + timeout_s)
    except Unreachable:  # it died, or was stopped, in the middle
        return press_without_guard(state_dir, run_dir, instance_id, scope, reason, by, kill_id=done)
    finally:
        client.close()


def place_order(
    state_dir: Path,
    run_dir: Path,
    instance_id: str,
    scope: str | list[str],
    reason: str,
    by: str,
    *,
    order: str = "",
    kill_id: str = "",
    sock: Path | None = None,
) -> str | Receipt:
    """Have one order with one id carried out: the id of the kill that the guard began, or the receipt of the one that was done here.

    A guard that is busy is asked whether it has the order. The same work is done here, under the same id, once no guard runs, or it stands
    still, or it did not take the order within ``SILENT_S``. A guard that comes to it later leaves it (kill/orders.py).

    Raises Denied when this process is an agent's.
    """
    kill_id = kill_id or new_kill_id()
    try:
        return GuardClient(sock or run_dir / "guard.sock").press(scope, reason, by, order, kill_id=kill_id)
    except (Unreachable, TimedOut):
        if not claim(run_dir, state_dir / "guard", kill_id):
            return kill_id  # the guard took it meanwhile
    return press_without_guard(state_dir, run_dir, instance_id, scope, reason, by, order, kill_id)


def _wait(client: GuardClient, guard_dir: Path, kill_id: str, deadline: float) -> Receipt:
    while time.monotonic() < deadline:
        try:
            is_done = bool(client.progress(kill_id)["done"])
        except TimedOut as error:
            raise Unreachable("The guard has said nothing since it took the kill.", "") from error
        except NotFound as error:  # it was restarted since; what was begun is carried to its end
            receipt = read_receipt(guard_dir, kill_id)
            if receipt is not None and receipt.complete:
                return receipt
            raise Unreachable("The guard that took the kill is gone.", "") from error
        if is_done:
            receipt = read_receipt(guard_dir, kill_id)
            if receipt is not None and receipt.complete:
                return receipt
            try:
                return receipt_from_json(json.loads(client.receipt_text(kill_id)))
            except (ValueError, KeyError, TypeError) as error:
                raise ConsoleError("The guard's receipt cannot be read.", f"See {guard_dir}.") from error
        time.sleep(0.02)
    raise TimedOut(f"Kill {kill_id} went out; its receipt is not complete yet.", "watchfloor receipt list shows it when it is.")


def press_without_guard(
    state_dir: Path,
    run_dir: Path,
    instance_id: str,
    scope: str | list[str],
    reason: str,
    by: str,
    order: str = "",
    kill_id: str = "",
) -> Receipt:
    """Carries a kill out in this process, by the guard's code. A kill of everything leaves the latch on disk.

    ``kill_id``: of an order that the guard did not take, or did not finish; empty: a new one.

    Raises Denied when this process is an agent's; whatever else goes wrong is in the receipt.
    """
    if inside_an_agent():
        raise Denied("An agent has no say here.", "")
    if not scope:
        raise UsageProblem('A press names "all" or at least one agent.', "Name at least one agent.")
    is_all = scope in ("all", ["all"])
    processes.raise_descriptors()
    keeper = WithoutGuard(state_dir, run_dir, instance_id)
    ids = list(keeper.registry.held) if is_all else list(dict.fromkeys(scope))
    asked = Order(kill_id or new_kill_id(), "all" if is_all else ",".join(ids), reason[:500], by[:100], order[:200])
    kill = carry_out(keeper, asked, ids, (os.getpid(), os.getppid()))
    wait_until_done(kill)
    receipt = kill.receipt()
    keeper.close(kill)
    return receipt


class WithoutGuard:
    """What a kill uses (kill/request.py: Keeper), from the records on disk. The registry is read, never written."""

    owns_registry = False
    connections = None
    precedence = None
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
        known = {aim.agent_id: aim.held.entry for aim in kill.aims if aim.held is not None}
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
