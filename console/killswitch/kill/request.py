"""How a kill is carried out from the request on: the same for the guard and for a process without one.

What differs between them (who keeps the records, and how) is behind ``Keeper``.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

from console.domain.kill import StepName, StepStatus
from console.domain.process.precedence import Precedence
from console.killswitch.kernel import processes
from console.killswitch.kernel.cgroups import Tree
from console.killswitch.kernel.engine import Engine
from console.killswitch.kernel.faults import in_thread
from console.killswitch.kill.connections import Connections
from console.killswitch.kill.daemons import Struck
from console.killswitch.kill.observed import SeenAgents, Unheld
from console.killswitch.kill.outside import Outside
from console.killswitch.kill.respawners import Respawners
from console.killswitch.kill.session import KillSession
from console.killswitch.kill.targets import Aim, Field, Order
from console.killswitch.store.journal import Journal
from console.killswitch.store.latch import Latch
from console.killswitch.store.registry import Registry

RECORD_S = 3.0
"""The end of a kill waits no longer for the disk."""


class Keeper(Protocol):
    """The process that carries kills out, and its records."""

    instance_id: str
    run_dir: Path
    registry: Registry
    latch: Latch
    tree: Tree | None
    engine: Engine | None
    seen: SeenAgents
    unheld: Unheld
    refusal: str
    """What keeps new agents from starting, for the receipt."""
    owns_registry: bool
    """Whether it is the process that writes the registry."""

    respawners: Respawners
    """Daemons of the agents, and the watch of what starts a killed session again."""

    @property
    def journal(self) -> Journal: ...

    @property
    def precedence(self) -> Precedence | None:
        """None: the process has other work, and stays where it is."""

    @property
    def connections(self) -> Connections | None:
        """What a regular look keeps of the agents' connections. None: there was no look, and the receipt tells that."""

    def press_latch(self, order: Order) -> None:
        """Latches in memory if everything is meant, before the first SIGKILL; waits for nothing."""

    def save_latch(self, order: Order) -> None:
        """Latch to disk. OSError when it is not durable."""

    def add_more(self, kill: KillSession) -> None:
        """Brings ``seen`` and ``unheld`` up to date, and adds targets that only this process knows of. Waits a bounded time."""

    def record(self, what: str, *writes: Callable[[], object]) -> list[str]:
        """Carries out durable writes; a failure stops nothing and comes back in words."""

    def write_receipt(self, kill: KillSession) -> None:
        """The receipt as it is now, to disk; waits a bounded time."""

    def is_finished(self, kill: KillSession) -> None:
        """Takes over what is left to do for a kill that is over."""


def carry_out(keeper: Keeper, order: Order, ids: Iterable[str], spare: Iterable[int], heard_at: float = 0.0) -> KillSession:
    """Kill these agents. Never raises; returns after the first wave of SIGKILL, the rest goes on in a thread."""
    registry, listed, thread = keeper.registry, list(ids), keeper.precedence.take() if keeper.precedence else 0
    aims = [Aim(i, registry.held.get(i)) for i in listed]
    kill = KillSession(order, _field(keeper, tuple(spare)), aims, heard_at=heard_at)
    if keeper.connections is not None and not kill.is_canary:  # one a minute: what it is connected to is known
        kill.outside = Outside(keeper.connections)
    elif not kill.is_canary:
        kill.unrecorded = "No guard checked the agents' connections."
    keeper.press_latch(order)
    if not order.is_all:  # before the first write; of everything the latch says it, and thousands of marks would delay that write
        registry.mark_killed(listed, order.kill_id)
    kill.strike()
    struck = keeper.respawners.begin(kill, {one.agent_id for one in keeper.seen.of(order, listed)}.union(listed))
    if order.is_all:
        registry.mark_killed(listed, order.kill_id)
        keeper.latch.mark(order.kill_id)
        kill.name_left = lambda: keeper.unheld.name_in(kill)
    kill.add_aims = lambda: _add(keeper, kill)
    kill.note(StepName.REFUSE, StepStatus.OK, keeper.refusal if order.is_all else "These agents start nothing any more.")
    recorder = in_thread(lambda: _record(keeper, kill), "press-record")
    kill.on_zero = lambda: _zero(keeper, kill, struck)
    kill.on_done = lambda: _finish(keeper, kill, recorder, thread)
    in_thread(kill.run, "kill")
    return kill


def _zero(keeper: Keeper, kill: KillSession, struck: Struck) -> None:
    """Frozen daemons go on, and the receipt names them."""
    kill.daemons = struck.zero()
    keeper.write_receipt(kill)


def _field(keeper: Keeper, spare: tuple[int, ...]) -> Field:
    registry = keeper.registry
    return Field(
        keeper.instance_id,
        keeper.run_dir,
        keeper.tree,
        keeper.engine,
        registry.containers_ever,
        lambda: processes.own_line(*spare),
        registry.incomplete,
        registry.other_uids(),
    )


def _add(keeper: Keeper, kill: KillSession) -> None:
    """Targets that take time to look at: observed agents that the settings include, and whatever this process alone knows of.

    On the kill's thread, after the first wave: each may keep a reader of its memory waiting, and no lock is held here.
    """
    keeper.add_more(kill)
    held = {aim.agent_id for aim in kill.aims if aim.held is not None}
    if observed := [one for one in keeper.seen.of(kill.order, [aim.agent_id for aim in kill.aims]) if one.agent_id not in held]:
        aims, left = keeper.seen.aims(observed, kill.field_.spared())
        kill.add(aims)
        kill.excluded += left


def _record(keeper: Keeper, kill: KillSession) -> None:
    order, latch = kill.order, keeper.latch
    if order.is_all:
        problems = keeper.record("latch", functools.partial(keeper.save_latch, order))
        words = f"Blocked in memory only: {problems[0]}" if problems else f"Generation {latch.state.generation}, on disk"
        kill.note(StepName.LATCH, StepStatus.FAILED if problems else StepStatus.OK, words)
    else:
        kill.note(StepName.LATCH, StepStatus.SKIPPED, "Only the agents named: new agents can still start.")
    words_of = {"kill_id": order.kill_id, "scope": order.scope[:4000], "reason": order.reason, "by": order.by, "order": order.remote_order}
    line: dict[str, Any] = words_of | {"generation": latch.state.generation}
    if not kill.is_canary:  # one a minute, and no act of anybody
        keeper.record("journal", lambda: keeper.journal.append("press", **line))
    _save_registry(keeper)


def _finish(keeper: Keeper, kill: KillSession, recorder: threading.Thread | None, thread: int) -> None:
    if keeper.precedence is not None:
        keeper.precedence.give_back(thread)  # before anything that lasts is begun on this thread
    if recorder is not None:
        recorder.join(RECORD_S)
    if StepName.LATCH not in kill.steps:
        kill.note(StepName.LATCH, StepStatus.UNKNOWN, "The disk has not answered yet.")
    keeper.write_receipt(kill)
    if any(aim.is_best_effort for aim in kill.aims):  # what was seen to be over is known to the next guard, which has followed nothing
        _save_registry(keeper)
    keeper.is_finished(kill)


def _save_registry(keeper: Keeper) -> None:
    if keeper.owns_registry:
        keeper.record("registry", keeper.registry.save)
