"""Pressing from outside the guard: through it when it answers, without it, from the registry on disk, when it does not."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from console.domain.errors import ConsoleError, Denied, TimedOut, Unreachable, UsageProblem
from console.domain.kill import Receipt, StepName, StepStatus, receipt_from_json
from console.killswitch import processes
from console.killswitch.cgroups import find_mounts, find_tree
from console.killswitch.client import GuardClient
from console.killswitch.durable import Reserve
from console.killswitch.engine_socket import Engine
from console.killswitch.journal import Journal
from console.killswitch.kill.receipt import new_kill_id, read_receipt, write_receipt
from console.killswitch.kill.session import Field, KillSession, Order
from console.killswitch.kill.targets import Aim
from console.killswitch.latch import Latch
from console.killswitch.peers import inside_an_agent
from console.killswitch.registry import Registry
from console.killswitch.unheld import UNHELD_FILE, Unheld

SILENT_S = 2.0
"""A guard answers within milliseconds, in the middle of a kill as well: one that says nothing for so long is stopped, or hangs."""
RECORD_S = 3.0
"""A press without a guard waits no longer for the disk; its process ends then, proof in hand."""


def press_and_wait(
    state_dir: Path, run_dir: Path, instance_id: str, scope: str | list[str], reason: str, by: str, timeout_s: float = 10.0
) -> Receipt:
    """Kills and waits for the local receipt. The guard has 0.3 s to answer; then the same work is done here.

    Denied when this process is an agent's; TimedOut when the kill went out and its receipt did not come in time.
    """
    client = GuardClient(run_dir / "guard.sock", timeout_s=SILENT_S)
    try:
        kill_id = client.press(scope, reason, by)
    except (Unreachable, TimedOut):
        client.close()
        return press_without_guard(state_dir, run_dir, instance_id, scope, reason, by)
    try:
        return _wait(client, state_dir / "guard", kill_id, time.monotonic() + timeout_s)
    except Unreachable:  # it died, or was stopped, in the middle
        return press_without_guard(state_dir, run_dir, instance_id, scope, reason, by)
    finally:
        client.close()


def _wait(client: GuardClient, guard_dir: Path, kill_id: str, deadline: float) -> Receipt:
    while time.monotonic() < deadline:
        try:
            is_done = bool(client.progress(kill_id)["done"])
        except TimedOut as error:
            raise Unreachable("The guard has said nothing since it took the kill.", "") from error
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
    state_dir: Path, run_dir: Path, instance_id: str, scope: str | list[str], reason: str, by: str, order: str = ""
) -> Receipt:
    """The guard's work by the guard's code, in this process. A press on everything leaves the latch on disk.

    Raises Denied when this process is an agent's; whatever else goes wrong is in the receipt.
    """
    if inside_an_agent():
        raise Denied("An agent has no say here.", "")
    if not scope:
        raise UsageProblem('A press names "all" or at least one agent.', "Name at least one agent.")
    is_all = scope in ("all", ["all"])
    processes.raise_descriptors()
    guard_dir = state_dir / "guard"
    reserve = Reserve(guard_dir / "reserve")
    registry = Registry(guard_dir)
    entries = registry.recover()
    mounts = find_mounts()
    try:
        tree = find_tree(instance_id, mounts, registry.root)
    except OSError as error:
        tree, registry.incomplete = None, f"The agents' cgroups could not be opened ({error.strerror})."
    registry.restore(entries, tree)
    ids = list(registry.held) if is_all else list(dict.fromkeys(scope))
    engine = Engine(Path(registry.engine_socket), instance_id) if registry.engine_socket else None
    spared = (os.getpid(), os.getppid())
    kill = KillSession(
        Order(new_kill_id(), "all" if is_all else ",".join(ids), reason[:500], by[:100], order[:200]),
        Field(
            instance_id,
            run_dir,
            tree,
            engine,
            registry.containers_ever,
            lambda: frozenset().union(*(processes.ancestors(pid) for pid in spared)),
            registry.incomplete,
            registry.other_uids(),
        ),
        [Aim(i, registry.held.get(i)) for i in ids],
    )
    if registry.incomplete:
        kill.excluded.append(f"{registry.incomplete} Only leaves, containers and marked processes that were found were killed.")
    kill.strike()
    kill.note(StepName.REFUSE, StepStatus.OK, "No guard runs, so no launch is confirmed.")
    latch = Latch(guard_dir, reserve, run_dir)
    if is_all:
        latch.mark(kill.order.kill_id)
        kill.name_left = lambda: _name_left(kill, guard_dir)
    recorder = _aside(lambda: _record(kill, guard_dir, latch, registry, reserve))
    kill.on_done = lambda: _finish(kill, guard_dir, recorder)
    kill.run()
    if registry.retired:
        registry.sweep()
    receipt = kill.receipt()
    for held in registry.held.values():
        held.close()
    if tree is not None:
        tree.close()
    return receipt


def _name_left(kill: KillSession, guard_dir: Path) -> None:
    """Who was only seen, as a supervisor last said it to a guard. A disk that hangs leaves it unknown."""
    unheld = Unheld(guard_dir / UNHELD_FILE)
    reader = _aside(unheld.load)
    if reader is not None:
        reader.join(RECORD_S)
    unheld.name_in(kill)


def _record(kill: KillSession, guard_dir: Path, latch: Latch, registry: Registry, reserve: Reserve) -> None:
    """Latch and journal, as the guard does it; a full disk costs the record, never the kill."""
    try:
        guard_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        if kill.order.is_all:
            latch.load(registry.generation)
            latch.press(kill.order.kill_id, kill.order.reason)
            latch.save()
            kill.note(StepName.LATCH, StepStatus.OK, f"Generation {latch.state.generation}, on disk; pressed without the guard")
        else:
            kill.note(StepName.LATCH, StepStatus.SKIPPED, "Only the agents named: no latch.")
        words = {"kill_id": kill.order.kill_id, "scope": kill.order.scope[:4000], "reason": kill.order.reason, "by": kill.order.by}
        Journal(guard_dir, reserve).append("press", **words, generation=latch.state.generation, without_guard=True)
    except OSError as error:
        kill.note(StepName.LATCH, StepStatus.FAILED, f"Not on disk: {error.strerror or error}")


def _aside(job: Callable[[], None]) -> threading.Thread | None:
    """A disk that hangs delays no proof. At once, here, where no thread can be had."""
    thread = threading.Thread(target=job, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        job()
        return None
    return thread


def _finish(kill: KillSession, guard_dir: Path, recorder: threading.Thread | None) -> None:
    if recorder is not None:
        recorder.join(RECORD_S)
    if StepName.LATCH not in kill.steps:
        kill.note(StepName.LATCH, StepStatus.UNKNOWN, "The disk has not answered yet.")
    writer = _aside(lambda: _write(kill, guard_dir))
    if writer is not None:
        writer.join(RECORD_S)


def _write(kill: KillSession, guard_dir: Path) -> None:
    try:
        write_receipt(guard_dir, kill.receipt())
    except OSError as error:
        kill.excluded.append(f"The receipt could not be written: {error.strerror or error}")
