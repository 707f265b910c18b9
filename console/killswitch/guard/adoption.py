"""Adoption: a process that Watchfloor did not start is moved, with all its descendants, into a leaf of its own.

Files, labels and names decide nothing here. Pid and start time name the process. Its program and account must be those that the operator
confirmed. The leaf is in the registry, on disk and frozen, before the first process is moved. A helper (helpers/adopt.py) looks and moves;
what can be promised of the agent afterwards is decided and written down here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from console.domain.errors import Conflict, ConsoleError, Denied, NotRecorded, Unavailable, UsageProblem
from console.domain.guard import CONSOLE, MOVE_S
from console.domain.ids import AGENT_ID, ControlLevel
from console.domain.process.failpoints import failpoint
from console.killswitch.guard.freeze import Freezing
from console.killswitch.guard.helper import Helper
from console.killswitch.guard.launches import SPARE_DESCRIPTORS, Launches, can_leave, spare_descriptors
from console.killswitch.guard.state import Guard
from console.killswitch.kernel import processes
from console.killswitch.kernel.processes import Handle
from console.killswitch.store.registry import Entry, Held

HELPER = "adopt"
MOST_ALSO = 16
CAUSE = "adoption"
CUT_SHORT = "the guard ended while it was being adopted: what had left it by then is not known"
AGAIN = "Look at the candidates again."


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

    def examine(self, pid: int, ticks: int, spare: Iterable[int], around: str = "") -> dict[str, Any]:
        """One process as a candidate, and why it may not be adopted (empty: it may).

        ``around``: the agent's id, for what would come along and what would be left outside and may be the agent's.
        """
        with Helper(HELPER) as helper:
            found: dict[str, Any] = helper.ask(self._request("examine", [(pid, ticks)], spare, around=around), {"found": dict})["found"]
            helper.end()
        if not all(isinstance(found.get(key), str) for key in ("exe", "cmdline", "cgroup", "why_not")):
            raise Unavailable("The guard's helper (adopt) does not describe the process.", "Try again.")
        return found

    def _request(self, op: str, roots: list[tuple[int, int]], spare: Iterable[int], **more: Any) -> dict[str, Any]:
        """The request for these processes, the first of them the agent's first."""
        guard, (pid, ticks) = self._guard, roots[0]
        held = {(one.entry.pid, one.entry.start_ticks) for one in list(guard.registry.held.values())}
        asked = {"op": op, "pid": pid, "start_ticks": ticks, "also": [number for root in roots[1:] for number in root]}
        asked |= {"spared": [os.getpid(), guard.supervisor_pid, *spare], "connected": sorted(guard.connected())}
        asked |= {"held": [root[0] for root in roots if root in held], "instance": guard.config.instance_id}
        asked |= {"tree": str(guard.tree.root) if guard.tree is not None else "", "tree_why": guard.tree_why[:500]}
        return asked | more

    def adopt(self, asked: Asked, spare: Iterable[int], by: str) -> dict[str, Any]:
        """Move the process; return what came of it.

        Raises Killed or Denied while stopped, Conflict when it is not what was confirmed, and Denied when it may not be adopted. Raises
        Unavailable or NotRecorded when it cannot be held. Then it was not touched.
        """
        spared = tuple(spare)
        self._launches.refuse_if_stopped()
        with Helper(HELPER, MOVE_S) as helper:
            # It has looked at what descends from the process before a press can find the agent, and kill what holds that together.
            origin = self._check(helper, asked, spared)
            held = self._register(asked, _open(asked.pid, asked.start_ticks), origin)
            failpoint("adoption.registered")
            answer = self._bring(helper, held, asked.also, spared)
        if not answer["moved"]:
            self._undo(held, is_gone=answer["whole"] and not answer["left"])
            why = answer["failed"] or answer["left"].get(str(asked.pid), "it ended meanwhile")
            raise Unavailable(f"It could not be moved: {why}.", "It is as it was: only seen.")
        self._end(held, _loose(answer))
        self._guard.record_line(
            "adopt", agents=[asked.agent_id], pid=asked.pid, exe=asked.exe[:200], uid=asked.uid, by=by[:100], n=answer["moved"]
        )
        told = {key: answer[key] for key in ("moved", "left", "whole", "orphans")}
        return told | {"best_effort": held.entry.why_best_effort, "frozen": self._thaw(held)}

    def _check(self, helper: Helper, asked: Asked, spare: Iterable[int]) -> tuple[str, ...]:
        """Its origin, in words for the registry; empty when that cannot be seen. Raises what speaks against its adoption."""
        if not AGENT_ID.match(asked.agent_id) or asked.agent_id == "all" or len(asked.also) > MOST_ALSO:
            raise UsageProblem("The agent's id is not valid, or too many orphans are named.", "Adopt one agent at a time.")
        if asked.agent_id in self._guard.registry.held:
            raise Conflict(f"Agent {asked.agent_id} is held already.", "watchfloor fleet shows it.")
        shape: dict[str, type] = {"changed": str, "refused": list, "origin": list}
        roots = [(asked.pid, asked.start_ticks), *asked.also]
        found = helper.ask(self._request("check", roots, spare, exe=asked.exe, uid=asked.uid), shape)
        if found["changed"]:
            raise Conflict(found["changed"], AGAIN)
        if found["refused"]:
            pid, why = (*found["refused"], "", "")[:2]
            raise Denied(f"Process {pid} is not adopted: {why}.", f"{AGAIN[:-1]}; nothing was moved.")
        if spare_descriptors() < SPARE_DESCRIPTORS:
            raise Unavailable("The guard has too few spare file descriptors.", "Raise its LimitNOFILE, or end agents.")
        return tuple(str(word) for word in found["origin"])

    def _register(self, asked: Asked, init: Handle, origin: tuple[str, ...]) -> Held:
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
            entry = replace(entry, origin=origin)
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

    def _bring(self, helper: Helper, held: Held, also: Iterable[tuple[int, int]], spare: Iterable[int]) -> dict[str, Any]:
        """What the helper moved: {moved, left: {pid: why}, whole, orphans, likely, failed}. A helper that died may have moved a part."""
        entry, leaf = held.entry, held.leaf
        answer: dict[str, Any] = {"moved": 0, "left": {}, "whole": False, "orphans": [], "likely": 0, "failed": ""}
        if self._guard.tree is None or leaf is None or held.init is None:
            return answer
        shape: dict[str, type] = {"moved": int, "left": dict, "whole": bool, "orphans": list, "likely": int}
        place = {"leaf": str(leaf.path), "inode": leaf.inode, "agent_id": entry.agent_id, "origin": list(entry.origin)}
        try:
            failpoint("adoption.moving")
            answer |= helper.ask(self._request("bring", [(entry.pid, entry.start_ticks), *also], spare, **place), shape)
            helper.end()
            answer["left"] = {str(pid): str(why) for pid, why in answer["left"].items()}
        except (ConsoleError, OSError) as error:
            helper.kill()  # it moves nothing more: what is counted now stays true
            answer |= {"moved": len(leaf.pids()), "failed": str(error)[:200]}
        for pid in set(leaf.pids()) & self._guard.connected():  # it opened its line while the helper was moving
            self._give_back(pid, entry)
            answer["left"][str(pid)] = CONSOLE
        return answer

    def _give_back(self, pid: int, entry: Entry) -> None:
        """To the cgroup that its agent came from: a console is never held, nor frozen."""
        tree = self._guard.tree
        home = tree.mount.locate(entry.origin[-1]) if tree is not None and entry.origin else None
        if home is not None:
            with suppress(OSError):
                (home / "cgroup.procs").write_text(str(pid))

    def _end(self, held: Held, loose: str) -> None:
        """What can be promised of it from now on, on disk. ``loose``: why not all of it may be in its leaf."""
        guard, entry = self._guard, held.entry
        # What one of them started may run under another account than itself.
        moved = held.leaf.pids() if held.leaf is not None else []
        may_leave = entry.can_leave or any(held.leaf and can_leave(pid, held.leaf) and processes.is_alive(pid) for pid in moved)
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
            with suppress(Unavailable), Helper(HELPER, MOVE_S) as helper:
                self._bring(helper, held, (), ())
            self._end(held, CUT_SHORT)
            self._thaw(held)


def _open(pid: int, ticks: int) -> Handle:
    try:
        return Handle(pid, ticks)
    except OSError as error:
        raise Conflict(f"Process {pid} is not there as it was shown.", AGAIN) from error


def _loose(answer: dict[str, Any]) -> str:
    """Why no kill of it can be proven, as far as its adoption goes; empty: the leaf holds all that was found of it."""
    if answer["failed"]:
        return f"its adoption was not finished: {answer['failed']}"
    if answer["left"]:
        return f"{len(answer['left'])} of its processes could not be moved into its cgroup"
    if not answer["whole"]:
        return "it started processes faster than they could be moved: some may be outside its cgroup"
    if answer["likely"]:
        return f"{answer['likely']} orphans that may be its were left outside its cgroup"
    return ""
