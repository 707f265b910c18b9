"""The second look of a kill, 0.5 s after it: what had processes again, what the engine brought back, what got away.

Only a process that belongs to an agent by more than its environment is signalled (``has_lineage``). The caller, the guard and their
ancestors never are. Whatever is left alone is listed with the reason.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterable
from typing import Protocol

from console.domain.kill import Outcome, StepStatus, Survivor, Suspect
from console.domain.words import counted
from console.killswitch.kernel import processes
from console.killswitch.kernel.cgroups import place_of
from console.killswitch.kernel.engine import EngineSilent
from console.killswitch.kernel.faults import FAULTS, note_fault
from console.killswitch.kernel.peers import is_among
from console.killswitch.kill.suspects import beside, origin_from
from console.killswitch.kill.targets import Aim, Field, Order, kill_listed
from console.killswitch.store.registry import Entry, Held

BACK_S = 2.0
"""Containers that the engine keeps starting are killed again and again for that long; then the receipt names them."""
STRAYS_S = 1.0
PAUSE_S = 0.05
OPEN_TRIES = 3


class Kill(Protocol):
    """Of a kill (session.py) what the second look uses."""

    aims: list[Aim]
    amended: list[str]
    suspects: tuple[Suspect, ...]

    @property
    def order(self) -> Order: ...

    @property
    def field_(self) -> Field: ...

    @property
    def is_canary(self) -> bool: ...

    def ms(self) -> float: ...

    def in_scope(self, agent_id: str) -> bool: ...

    def settle_again(self, aims: list[Aim]) -> None: ...


class SecondLook:
    """Of one kill. ``look`` once; ``verdict`` whenever the targets have changed."""

    def __init__(self, kill: Kill) -> None:
        self._kill = kill
        self._words: list[str] = []
        self._unclear = False
        self.left_alone: list[Survivor] = []
        """Alive, marked as an agent's, and not signalled."""

    def look(self) -> None:
        """Strikes whatever shows up."""
        aims = self._kill.aims
        over = (Outcome.PROVEN_ZERO, Outcome.BEST_EFFORT)
        again = [a for a in aims if a.outcome in over and a.held is not None and a.held.is_populated()]
        for aim in again:
            aim.outcome, aim.ms = Outcome.DYING, None
        self._say(again, "agents had processes again, killed again")
        self._part("unregistered leaves", self._look_at_leaves)
        late = [a for a in self._kill.aims if a.outcome in (Outcome.NOT_PROVEN, Outcome.DYING)]
        for aim in late:
            aim.outcome = Outcome.DYING
        self._part("the engine's containers", self._look_at_engine)
        self._part("marked processes", self._hunt)
        self._part("what adoptions left outside", self._look_beside)
        self._kill.settle_again(late)

    def broke(self, words: str) -> None:
        """It did not come to its end: no later word makes it green."""
        self._unclear = True
        self._words.append(words)

    def _part(self, what: str, look: Callable[[], None]) -> None:
        """A fault in one part leaves that part unclear, and the others looked at."""
        try:
            look()
        except FAULTS as fault:
            note_fault(f"second look at {what}", fault)
            self.broke(f"the guard failed at {what} ({type(fault).__name__}): nothing is known of them")

    def _look_at_leaves(self) -> None:
        self._say(self._take_in_unknown(), "unregistered leaves had processes, killed")

    def verdict(self) -> tuple[StepStatus, str]:
        """Status and words of the step, as the targets stand now."""
        kill = self._kill
        failed = any(a.outcome in (Outcome.NOT_PROVEN, Outcome.DYING) for a in kill.aims)
        status = StepStatus.FAILED if failed else StepStatus.UNKNOWN if self._unclear else StepStatus.OK
        return status, "; ".join([*self._words, *kill.amended[-3:]]) or "nothing had come back"

    def _say(self, found: list[Aim], what: str) -> None:
        if found:
            self._words.append(f"{len(found)} {what}")

    def _take_in_unknown(self) -> list[Aim]:
        """Leaves of ours that appeared without a ticket."""
        kill, tree, found = self._kill, self._kill.field_.tree, list[Aim]()
        if tree is None or not kill.order.is_all or not tree.agents.is_populated():
            return found
        known = {a.held.entry.leaf for a in kill.aims if a.held is not None}
        for agent_id, folder in tree.leaves_on_disk():
            if str(folder) not in known:
                with contextlib.suppress(OSError):
                    held = Held(Entry(agent_id, "process", "managed", 0, str(folder), folder.stat().st_ino))
                    held.open()
                    if held.is_populated():
                        found.append(Aim(agent_id, held))
                    else:  # of one that ended, about to be removed
                        held.close()
        kill.aims += found
        if not any(a.held is not None and a.held.is_populated() for a in kill.aims) and tree.agents.is_populated():
            place = Entry("unregistered", "process", "unknown", 0, str(tree.agents.path), tree.agents.inode)
            found.append(Aim(place.agent_id, Held(place, tree.agents)))  # among the agents, and in no leaf of any
            kill.aims.append(found[-1])
        return found

    def _look_at_engine(self) -> None:
        """Containers that came back are killed until the engine lists none of them, or ``BACK_S`` are over."""
        kill, ever = self._kill, self._kill.field_.containers_ever
        if kill.field_.engine is not None:
            try:
                self._kill_those_back()
                return
            except EngineSilent:
                pass
        if ever:  # where no agent ever was in a container, none can have come back: a silent engine hides nothing
            self._unclear = True
            self._words.append("the engine did not answer: containers that came back cannot be ruled out")

    def _kill_those_back(self) -> None:
        """EngineSilent when it does not say what runs."""
        kill, engine, tree = self._kill, self._kill.field_.engine, self._kill.field_.tree
        assert engine is not None
        mount, deadline, back = tree.mount if tree else None, time.monotonic() + BACK_S, set[str]()
        while listed := [c for c in engine.running() if kill.in_scope(c.agent_id)]:
            found = [aim for c in listed if (aim := kill_listed(engine, c, mount)) is not None]
            back |= {aim.container_id for aim in found if not aim.is_unknown}
            if not found or time.monotonic() > deadline:
                self._blame(found)
                break  # with none alive, the engine's list is only late
            for aim in found:
                if aim.held is not None:
                    aim.held.close()
            time.sleep(PAUSE_S)
        if back:
            self._words.append(f"{counted(len(back), 'container')} had come back, killed again")

    def _blame(self, alive: list[Aim]) -> None:
        for aim in alive:
            aim.why = (aim.held.doubt if aim.held else "") or f"Container {aim.container_id[:12]} keeps coming back."
            aim.give_up(self._kill.ms())
        self._kill.aims += alive

    def _look_beside(self) -> None:
        """What an adoption of a target left outside and may be its: listed, and signalled by no kill."""
        kill, found = self._kill, list[Suspect]()
        for entry in [aim.held.entry for aim in kill.aims if aim.held is not None]:
            origin = origin_from(entry.origin)
            if origin is not None:
                found += beside(entry.agent_id, (entry.pid, entry.start_ticks), origin, kill.field_.spared())
        kill.suspects = tuple({one.pid: one for one in found}.values())

    def _hunt(self) -> None:
        """Marked processes outside every place of ours: an agent's are killed, others listed."""
        kill, place = self._kill, self._kill.field_
        marked: list[processes.Marked] = []
        try:
            marked.extend(m for m in processes.find_marked(place.instance_id, place.run_dir) if self._is_stray(m))
        except OSError as error:
            self._unclear = True
            self._words.append(f"not every process could be checked: {error.strerror}")
        spared = place.spared()
        theirs = [m for m in marked if has_lineage(m, kill.aims, place.agent_uids)]
        self._leave([m for m in marked if m not in theirs and m.pid not in spared], "known by its environment alone: not signalled")
        self._leave([m for m in theirs if m.pid in spared], "the caller, the guard, or an ancestor of one of them: never signalled")
        self._strike_strays([m for m in theirs if m.pid not in spared])

    def _is_stray(self, marked: processes.Marked) -> bool:
        is_meant = self._kill.is_canary or not marked.agent_id.startswith("canary-")  # to be called so helps as little as to have no mark
        return is_meant and self._kill.in_scope(marked.agent_id) and not self._is_at_home(marked.pid)

    def _is_at_home(self, pid: int) -> bool:
        """In a cgroup that the kill has struck: proven, or not, by that cgroup."""
        kill, tree = self._kill, self._kill.field_.tree
        where = place_of(pid, tree.mount if tree else None)
        folders = [tree.agents.path] if tree and kill.order.is_all else []
        folders += [leaf.path for a in kill.aims if a.held for leaf in (a.held.leaf, a.held.container) if leaf is not None]
        return is_among(where, folders)

    def _leave(self, found: list[processes.Marked], why: str) -> None:
        """Not signalled, so nothing is clear; listed."""
        for m in found:
            words = (processes.state(m.pid), processes.wait_channel(m.pid), processes.command_line(m.pid)[:200])
            self.left_alone.append(Survivor(m.agent_id, m.pid, *words, why))
        if found:
            self._unclear = True
            self._words.append(f"{len(found)} marked processes were left alone ({why})")

    def _strike_strays(self, found: list[processes.Marked]) -> None:
        struck: list[tuple[Aim, processes.Handle]] = []
        for marked in found:
            handle = self._open(marked)
            if handle is None:
                continue
            aim = self._aim_of(marked.agent_id)
            aim.strays.append(f"pid {marked.pid}: {processes.command_line(marked.pid)[:120]}: {handle.send(signal.SIGKILL)}")
            struck.append((aim, handle))
        deadline = time.monotonic() + STRAYS_S
        while any(handle.is_alive() for _, handle in struck) and time.monotonic() < deadline:
            time.sleep(0.01)
        left = 0
        for aim, handle in struck:
            if handle.is_alive():
                left += 1
                aim.loose.append(handle)
                aim.outcome, aim.why = Outcome.DYING, f"Stray process {handle.pid} is still alive."
                aim.give_up(self._kill.ms())
                continue
            handle.close()
            if aim.held is None and aim.outcome is Outcome.DYING:
                aim.outcome, aim.ms, aim.why = Outcome.BEST_EFFORT, self._kill.ms(), "Known only by its stray process, which is dead."
        if struck:
            words = f"{len(struck)} stray processes found by their environment and killed"
            self._words.append(words + (f", {left} of them still alive" if left else ""))

    def _open(self, marked: processes.Marked) -> processes.Handle | None:
        """None when it has ended. One that cannot be opened (too few descriptors, say) is listed: it may run on."""
        for _ in range(OPEN_TRIES):
            try:
                return processes.Handle(marked.pid, marked.start_ticks)
            except OSError as error:
                if isinstance(error, ProcessLookupError) or not processes.is_the_same(marked.pid, marked.start_ticks):
                    return None
                why = error.strerror or str(error)
            time.sleep(PAUSE_S)
        self._leave([marked], f"it could not be opened to be killed: {why}")
        return None

    def _aim_of(self, agent_id: str) -> Aim:
        for aim in self._kill.aims:
            if aim.agent_id == agent_id:
                return aim
        self._kill.aims.append(Aim(agent_id, None))
        return self._kill.aims[-1]


def has_lineage(marked: processes.Marked, aims: Iterable[Aim], agent_uids: frozenset[int]) -> bool:
    """Return whether more than its environment shows that a process is an agent's.

    One of these is enough: it runs under an account of launched agents (never ours, nor root's), it was seen in a leaf, or its PID
    namespace is an agent's.
    """
    uids = processes.uids(marked.pid)
    if uids and uids <= agent_uids:
        return True
    namespace = processes.pid_namespace(marked.pid)
    for held in (aim.held for aim in aims if aim.held is not None):
        if namespace is not None and namespace == held.entry.pid_namespace:
            return True
        seen = {(p["pid"], p["start"]) for p in held.before} | {(held.entry.pid, held.entry.start_ticks)}
        if (marked.pid, marked.start_ticks) in seen:
            return True
    return False
