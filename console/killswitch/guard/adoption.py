"""Adoption: a process that Watchfloor did not start is moved, with all its descendants, into a leaf of its own.

Files, labels and names decide nothing here. Pid and start time name the process. Its program and account must be those that the operator
confirmed. The leaf is in the registry, on disk, before the first process is moved. What is moved stands frozen until two looks in a row
find no process outside. A tree that forks is moved whole only into a frozen cgroup (docs/decisions/0001-kill-by-kernel-objects.md).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any

from console.domain.errors import Conflict, ConsoleError, Denied, NotRecorded, Unavailable, UsageProblem
from console.domain.ids import AGENT_ID, ControlLevel
from console.domain.kill import Suspect
from console.domain.process.failpoints import failpoint
from console.killswitch.guard.freeze import Freezing
from console.killswitch.guard.launches import SPARE_DESCRIPTORS, Launches, can_leave, spare_descriptors
from console.killswitch.guard.state import Guard
from console.killswitch.kernel import processes
from console.killswitch.kernel.cgroups import ENDED, MOVED, Leaf, Tree, in_an_instance, move, why_not_movable
from console.killswitch.kernel.descendants import APART_S, Closure, look_at_all, recent_look
from console.killswitch.kernel.peers import is_among
from console.killswitch.kernel.processes import Handle
from console.killswitch.kill.suspects import Origin, beside, is_likely, origin_from, origin_of
from console.killswitch.store.registry import Entry, Held

MOVE_S = 5.0
"""A tree that is not whole in its leaf after so long, or after ``LOOKS`` looks at all processes, stays adopted, and best effort."""
LOOKS, LONGEST_S = 6, 40.0
"""On a busy host one look at all processes takes seconds: time alone would end every try before two quiet looks."""
QUIET_LOOKS = 2
MOST_ALSO = 16
DEEPEST = 200
LISTED = 24
CAUSE = "adoption"
CUT_SHORT = "the guard ended while it was being adopted: what had left it by then is not known"
CONSOLE = "it has a line to the guard open, as consoles and panic buttons do"


@dataclass(frozen=True, slots=True)
class Asked:
    """What the operator confirmed: the process as it was shown."""

    agent_id: str
    pid: int
    start_ticks: int
    exe: str
    uid: int
    also: tuple[tuple[int, int], ...] = ()
    """Orphans (pid, start time) that the operator takes for its."""


class Adoption:
    """On the clerk's thread. ``spare``: processes that are never moved, nor any ancestor of theirs."""

    def __init__(self, guard: Guard, freezing: Freezing, launches: Launches) -> None:
        self._guard, self._freezing, self._launches = guard, freezing, launches

    # --- looking

    def examine(self, pid: int, ticks: int, spare: Iterable[int], around: str = "") -> dict[str, Any]:
        """One process as a candidate, and why it may not be adopted (empty: it may).

        ``around``: the agent's id, for what would come along and what would be left outside and may be the agent's.
        """
        why = self._why_not(pid, ticks, self._spared(spare))
        seen = processes.describe(pid)
        uids = sorted(processes.uids(pid))
        found: dict[str, Any] = {"pid": pid, "start_ticks": ticks, "uid": uids[0] if uids else None, "why_not": why}
        found |= {"exe": seen["exe"], "cmdline": seen["cmdline"], "cgroup": processes.cgroup_line(pid) or ""}
        found |= {"descendants": [], "orphans": [], "orphans_by": []}
        if around and not why:
            with_it, maybe = self._around(around, pid, ticks)
            found |= {"descendants": with_it[:LISTED], "descendants_n": len(with_it), "orphans_n": len(maybe)}
            found |= {"orphans": [(s.pid, s.start_ticks) for s in maybe[:LISTED]], "orphans_by": [s.by for s in maybe[:LISTED]]}
        return found

    def _around(self, agent_id: str, pid: int, ticks: int) -> tuple[list[tuple[int, int]], tuple[Suspect, ...]]:
        """(what descends from it by parent or session, what would be left outside and may be its)."""
        try:
            handle = Handle(pid, ticks)
        except OSError:
            return [], ()
        try:
            below, origin = Closure(handle).look(recent_look()), origin_of(pid)
            known = (pid, *(p for p, _ in below))
            return below, beside(agent_id, (pid, ticks), origin, known) if origin is not None else ()
        except OSError:
            return [], ()
        finally:
            handle.close()

    def _spared(self, more: Iterable[int]) -> frozenset[int]:
        pids = {os.getpid(), self._guard.supervisor_pid, *more}
        return frozenset().union(*(processes.ancestors(pid) for pid in pids if pid > 1))

    def _why_not(self, pid: int, ticks: int, spared: frozenset[int]) -> str:
        """Why this process is not adopted; the most lasting reason first."""
        if pid <= 1:
            return "process 1 is never adopted"
        if processes.start_ticks(pid) != ticks or not processes.is_alive(pid):
            return "it is not there any more (its number may be another process's)"
        if pid in spared:
            return "it is the guard, the supervisor or the caller, or an ancestor of one of them"
        if pid in self._guard.connected():
            return CONSOLE
        if any(held.entry.pid == pid and held.entry.start_ticks == ticks for held in list(self._guard.registry.held.values())):
            return "it is held already"
        if not processes.describe(pid)["exe"]:
            return "its program cannot be read: it is the kernel's, or hidden from this account"
        tree = self._guard.tree
        if tree is None:
            return f"not available, because there is no writable cgroup here: {self._guard.tree_why}"
        return in_an_instance(pid, self._guard.config.instance_id) or why_not_movable(pid, tree)

    # --- moving

    def adopt(self, asked: Asked, spare: Iterable[int], by: str) -> dict[str, Any]:
        """Move the process; return what came of it.

        Raises Killed or Denied while stopped, Conflict when it is not what was confirmed, and Denied when it may not be adopted. Raises
        Unavailable or NotRecorded when it cannot be held. Then it was not touched.
        """
        spared = self._spared(spare)
        self._launches.refuse_if_stopped()
        self._check(asked, spared)
        origin = origin_of(asked.pid)
        with ExitStack() as opened:
            also = [_open(pid, ticks) for pid, ticks in asked.also]
            for handle in also:
                opened.callback(handle.close)
            held = self._register(asked, _open(asked.pid, asked.start_ticks), origin)
            failpoint("adoption.registered")
            answer = self._bring(held, also, spared)
        if not answer["moved"]:
            self._undo(held, is_gone=answer["whole"] and not answer["left"])
            raise Unavailable(
                f"It could not be moved: {answer['left'].get(asked.pid, 'it ended meanwhile')}.", "It is as it was: only seen."
            )
        self._end(held, answer)
        self._guard.record_line(
            "adopt", agents=[asked.agent_id], pid=asked.pid, exe=asked.exe[:200], uid=asked.uid, by=by[:100], n=answer["moved"]
        )
        return answer | {"best_effort": held.entry.why_best_effort, "frozen": self._thaw(held)}

    def _check(self, asked: Asked, spared: frozenset[int]) -> None:
        if not AGENT_ID.match(asked.agent_id) or asked.agent_id == "all" or len(asked.also) > MOST_ALSO:
            raise UsageProblem("The agent's id is not valid, or too many orphans are named.", "Adopt one agent at a time.")
        if asked.agent_id in self._guard.registry.held:
            raise Conflict(f"Agent {asked.agent_id} is held already.", "watchfloor fleet shows it.")
        if processes.start_ticks(asked.pid) != asked.start_ticks:
            raise Conflict("The process that was shown has ended; its number may be another's by now.", "Look at the candidates again.")
        if (processes.describe(asked.pid)["exe"], processes.uids(asked.pid)) != (asked.exe, {asked.uid}):
            raise Conflict("It runs another program, or under another account, than was shown.", "Look at the candidates again.")
        for pid, ticks in ((asked.pid, asked.start_ticks), *asked.also):
            if why := self._why_not(pid, ticks, spared):
                raise Denied(f"Process {pid} is not adopted: {why}.", "Look at the candidates again; nothing was moved.")
        if spare_descriptors() < SPARE_DESCRIPTORS:
            raise Unavailable("The guard has too few spare file descriptors.", "Raise its LimitNOFILE, or end agents.")

    def _register(self, asked: Asked, init: Handle, origin: Origin | None) -> Held:
        """In memory and on disk, frozen, before anything is moved: from here on a press finds it."""
        guard = self._guard
        assert guard.tree is not None
        try:
            leaf, limits = guard.tree.make_leaf(asked.agent_id, None)
        except OSError as error:
            init.close()
            raise Unavailable(
                f"No cgroup could be made for it: {error.strerror}.", "watchfloor status shows where the guard works."
            ) from error
        with guard.lock:
            entry = Entry(asked.agent_id, "process", ControlLevel.ADOPTED.value, guard.latch.state.generation, str(leaf.path), leaf.inode)
            entry = replace(entry, limit_leaves=limits, confirmed=True, pid=init.pid, start_ticks=init.start_ticks, adopting=True)
            entry = replace(entry, origin=origin.as_words() if origin is not None else ())
            held = guard.registry.held[asked.agent_id] = Held(replace(entry, can_leave=can_leave(init.pid, leaf)), leaf, init=init)
            guard.causes.add(asked.agent_id, CAUSE)
            leaf.freeze(True)
        try:
            guard.registry.save()
            guard.causes.save()
            self._launches.refuse_if_changed(entry.generation)
        except (OSError, ConsoleError) as error:
            self._undo(held)
            if isinstance(error, ConsoleError):
                raise
            raise NotRecorded(
                f"The guard's registry cannot be written: {error.strerror}.", "Make room on the disk; nothing was moved."
            ) from error
        return held

    def _bring(self, held: Held, also: list[Handle], spared: frozenset[int]) -> dict[str, Any]:
        """Move the processes that are outside until ``QUIET_LOOKS`` looks in a row find none: {moved, left: {pid: why}, whole}."""
        tree, leaf, init = self._guard.tree, held.leaf, held.init
        if tree is None or leaf is None or init is None:
            return {"moved": 0, "left": {}, "whole": False}
        roots, left, quiet, looks = [init, *also], dict[int, str](), 0, 0
        closures, began = [Closure(root) for root in roots], time.monotonic()
        with suppress(OSError):
            _look(roots, closures)  # what is below it is known before anything else can happen: a press, say, that kills it first

        def bring(pid: int, ticks: int) -> bool:
            what = CONSOLE if pid in spared | self._guard.connected() else move(pid, ticks, tree, leaf)
            if what not in (MOVED, ENDED):
                left[pid] = what
            return what == MOVED

        moved = _from_the_top(roots, bring, lambda pid: pid in left or _is_held(pid, tree))
        while quiet < QUIET_LOOKS and not _is_over(began, looks) and init.pid not in left:
            try:
                failpoint("adoption.moving")
                outside = [one for one in _look(roots, closures) if one[0] not in left and not _is_held(one[0], tree)]
            except OSError:  # what there is cannot be seen: no quiet look
                outside, quiet = [], -1
            looks += 1
            moved += sum(bring(pid, ticks) for pid, ticks in outside)
            quiet = 0 if outside else quiet + 1
            time.sleep(APART_S)
        return {"moved": moved, "left": {p: w for p, w in left.items() if processes.is_alive(p)}, "whole": quiet >= QUIET_LOOKS}

    def _end(self, held: Held, answer: dict[str, Any], *, is_cut_short: bool = False) -> None:
        """What can be promised of it from now on, on disk."""
        guard, entry, maybe = self._guard, held.entry, tuple[Suspect, ...]()
        if (origin := origin_from(entry.origin)) is not None and not is_cut_short:
            with suppress(OSError):
                maybe = beside(entry.agent_id, (entry.pid, entry.start_ticks), origin, {entry.pid, *held.pids()})
        answer["orphans"] = [(s.pid, s.start_ticks) for s in maybe[:LISTED]]
        loose = CUT_SHORT if is_cut_short else _loose(answer, sum(is_likely(s) for s in maybe))
        may_leave = entry.can_leave or _any_can_leave(held.leaf)
        with guard.lock:
            held.entry = replace(held.entry, adopting=False, loose=loose, can_leave=may_leave)
        guard.record("registry", guard.registry.save)
        self._launches.tell_best_effort()
        held.look()
        guard.connections.look_soon()

    def _thaw(self, held: Held) -> str:
        """Lets it go on; why not, or empty."""
        try:
            self._freezing.thaw([held.entry.agent_id], CAUSE, "guard")
        except ConsoleError as error:
            return str(error)
        return ""

    def _undo(self, held: Held, *, is_gone: bool = False) -> None:
        """It is as it was. ``is_gone``: nothing of it lives, so a kill that came in between may call it zero."""
        guard = self._guard
        with guard.lock:
            if held.leaf is not None:
                held.leaf.freeze(False)
            held.entry = replace(held.entry, adopting=not is_gone)
            guard.registry.retire(held.entry.agent_id)
            guard.causes.forget(held.entry.agent_id)
        guard.record("registry", guard.registry.save, guard.causes.save)
        if not guard.is_killing():
            guard.registry.sweep(guard.afterwards.holds)

    def resume(self) -> None:
        """A guard that ended in the middle left it frozen, and on disk as being adopted: it is finished by the next one."""
        for held in [h for h in list(self._guard.registry.held.values()) if h.entry.adopting]:
            self._end(held, self._bring(held, [], self._spared(())), is_cut_short=True)
            self._thaw(held)


def _look(roots: list[Handle], closures: list[Closure]) -> list[tuple[int, int]]:
    """Those that were named first, and all that is found below them. OSError when it cannot be seen who there is."""
    found, table = dict.fromkeys((root.pid, root.start_ticks) for root in roots if root.is_alive()), look_at_all()
    for closure in closures:
        found |= dict.fromkeys(closure.look(table))
    return list(found)


def _is_over(began: float, looks: int) -> bool:
    """Whether a tree has had its time: both seconds and looks, since one look may take longer than all the seconds."""
    now = time.monotonic() - began
    return (now > MOVE_S and looks >= LOOKS) or now > LONGEST_S


def _from_the_top(roots: list[Handle], bring: Callable[[int, int], bool], is_done: Callable[[int], bool]) -> int:
    """Moves each root and its children, level by level, without a look at all processes: what is moved is frozen and forks no more."""
    moved, level = 0, [(root.pid, root.start_ticks) for root in roots]
    for _ in range(DEEPEST):
        moved += sum(bring(pid, ticks) for pid, ticks in level if not is_done(pid))
        below = [child for pid, ticks in level if processes.is_the_same(pid, ticks) for child in processes.children(pid)]
        level = [(pid, ticks) for pid in below if (ticks := processes.start_ticks(pid)) is not None]
        if not level:
            break
    return moved


def _is_held(pid: int, tree: Tree) -> bool:
    """In this leaf by now, or in another agent's of ours. That its cgroup bears an instance's name says nothing: anybody can make one."""
    return is_among(tree.mount.locate(processes.cgroup_line(pid) or ""), (tree.agents.path,))


def _any_can_leave(leaf: Leaf | None) -> bool:
    """Whether one of those who were moved may leave: what it started may run under another account than itself."""
    return leaf is not None and any(can_leave(pid, leaf) and processes.is_alive(pid) for pid in leaf.pids())


def _open(pid: int, ticks: int) -> Handle:
    try:
        return Handle(pid, ticks)
    except OSError as error:
        raise Conflict(f"Process {pid} is not there as it was shown.", "Look at the candidates again.") from error


def _loose(answer: dict[str, Any], maybe: int) -> str:
    """Why no kill of it can be proven, as far as its adoption goes; empty: the leaf holds all that was found of it."""
    if answer["left"]:
        return f"{len(answer['left'])} of its processes could not be moved into its cgroup"
    if not answer["whole"]:
        return "it started processes faster than they could be moved: some may be outside its cgroup"
    if maybe:
        return f"{maybe} orphans that may be its were left outside its cgroup"
    return ""
