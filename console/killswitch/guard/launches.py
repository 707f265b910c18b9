"""Tickets and executed calls: whatever starts for an agent starts with the guard's consent, in a leaf that it made and can kill.

An agent starts only if no kill came in between its ticket and its start. Calls that the supervisor runs for an agent live in a group below
the agent's own leaf. A kill, freeze or halt of the agent takes its whole leaf, groups below included (cgroup-v2.rst). So no message about a
call is needed to stop it, and an agent that is confirmed dead has no running call.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from console.domain.errors import Conflict, ConsoleError, Denied, Frozen, Killed, NotFound, NotRecorded, Unavailable, UsageProblem
from console.domain.guard import text, whole
from console.domain.ids import AGENT_ID, ControlLevel
from console.domain.words import counted
from console.killswitch.guard.freeze import Freezing
from console.killswitch.guard.state import Guard
from console.killswitch.kernel import processes
from console.killswitch.kernel.cgroups import Leaf, Mount, Refused, container_folder, place_of
from console.killswitch.kernel.engine import CONTAINER_ID
from console.killswitch.kernel.peers import is_among
from console.killswitch.kernel.processes import Handle
from console.killswitch.store.causes import set_frozen
from console.killswitch.store.registry import Entry, Held

SPARE_DESCRIPTORS = 64


def spare_descriptors() -> int:
    """How many more files this process may open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    with os.scandir("/proc/self/fd") as entries:
        return soft - sum(1 for _ in entries)


class Launches:
    """The supervisor's side of starting and ending agents. Runs on the clerk's thread."""

    def __init__(self, guard: Guard, freezing: Freezing) -> None:
        self._guard = guard
        self._freezing = freezing
        self.tell_best_effort()  # of those that a former guard left

    def refuse_if_stopped(self) -> None:
        """Killed or Denied while anything is stopped."""
        self._guard.latch.obey_disk()
        if self._guard.latch.state.latched:
            raise Killed("Everything was stopped: nothing starts until you rearm.", "Rearm first (watchfloor rearm).")
        why = self._freezing.why_nothing_starts()
        if why:
            raise Denied(why, "watchfloor status shows what is missing.")

    def ticket(
        self,
        agent_id: str,
        kind: str,
        control_level: str,
        pids_max: int | None = None,
        memory_max: int | None = None,
        uid: int | None = None,
        cpus_milli: int | None = None,
    ) -> dict[str, Any]:
        """A leaf for one agent, that will run under account ``uid``.

        Raises Killed, Denied, Conflict, UsageProblem, Unavailable or NotRecorded.
        """
        is_valid = AGENT_ID.match(agent_id) and agent_id != "all"  # "all" is a scope: such an agent could not be meant alone
        if not is_valid or kind not in ("process", "container") or control_level not in set(ControlLevel):
            raise UsageProblem("The ticket's agent id, kind or control level is not valid.", "Use a-z, 0-9 and -, process or container.")
        guard = self._guard
        self.refuse_if_stopped()
        if agent_id in guard.registry.held:
            raise Conflict(f"Agent {agent_id} is registered already.", "Use a new id, or forget the old one first.")
        if spare_descriptors() < SPARE_DESCRIPTORS:
            raise Unavailable(
                "The guard has too few spare file descriptors to hold another agent.", "Raise its LimitNOFILE, or end agents."
            )
        leaf, limits = self._make_leaf(agent_id, pids_max, memory_max, cpus_milli)
        place, inode = (str(leaf.path), leaf.inode) if leaf else ("", 0)
        with guard.lock:
            generation = guard.latch.state.generation
            guard.registry.held[agent_id] = Held(Entry(agent_id, kind, control_level, generation, place, inode, limits), leaf)
            guard.registry.containers_ever |= kind == "container"
            guard.registry.uids |= set() if uid is None or kind == "container" else {uid}
        try:
            self._save(generation)
        except ConsoleError:
            with guard.lock:
                guard.registry.retire(agent_id)
            raise
        guard.record("return watch", *guard.respawners.launched(agent_id))
        return {"leaf": place, "limit_leaves": list(limits), "generation": generation, "inode": inode}

    def _make_leaf(
        self, agent_id: str, pids_max: int | None, memory_max: int | None, cpus_milli: int | None
    ) -> tuple[Leaf | None, tuple[str, ...]]:
        tree = self._guard.tree
        if tree is None:
            return None, ()
        try:
            return tree.make_leaf(agent_id, pids_max, memory_max, cpus_milli)
        except OSError as error:
            raise Unavailable(
                f"No cgroup could be made for {agent_id}: {error.strerror}.", "watchfloor status shows where the guard works."
            ) from error

    def _save(self, generation: int) -> None:
        """NotRecorded when the disk refuses; Killed or Denied when a stop came while it was written."""
        try:
            self._guard.registry.save()
        except OSError as error:
            raise NotRecorded(
                f"The guard's registry cannot be written: {error.strerror}.", "Make room on the disk; nothing starts until then."
            ) from error
        self.refuse_if_changed(generation)

    def refuse_if_changed(self, generation: int) -> None:
        """The same, and Killed when a press came since that generation."""
        self.refuse_if_stopped()
        if generation != self._guard.latch.state.generation:
            raise Killed("A kill came in between: this launch is refused.", "Launch again once the switch is rearmed.")

    def confirm(self, agent_id: str, generation: int, pid: int, start_ticks: int, container_id: str = "") -> dict[str, Any]:
        """The process is in its leaf and waits at its gate. Raises Killed when a press won, or what is wrong with the process.

        Asked again for the same process (its first answer was lost) it answers the same; another process is a Conflict.
        """
        guard = self._guard
        with guard.lock:
            held = guard.registry.held.get(agent_id)
        if held is None:
            raise NotFound(f"Agent {agent_id} has no ticket.", "Ask for one first.")
        self._refuse_if_killed(held, generation)
        try:
            init = Handle(pid, start_ticks)
        except OSError as error:
            raise Denied(f"Process {pid} is not there as described.", "It ended, or its pid was reused: abort this launch.") from error
        if not held.entry.confirmed:
            self._take(held, init, container_id, generation)
        else:
            init.close()
            if (held.entry.pid, held.entry.start_ticks, held.entry.container_id) != (pid, start_ticks, container_id):
                raise Conflict(f"Agent {agent_id} is confirmed already, with another process.", "Abort this launch.")
        held.look()
        guard.connections.look_soon()
        self.tell_best_effort()
        try:
            guard.registry.save()
        except OSError as error:
            raise NotRecorded(
                f"The guard's registry cannot be written: {error.strerror}.", "Abort this launch; make room on the disk."
            ) from error
        self._refuse_if_killed(held, generation)
        entry = held.entry
        return {"pid_namespace": entry.pid_namespace, "container_cgroup": entry.container_leaf, "best_effort": entry.why_best_effort}

    def _take(self, held: Held, init: Handle, container_id: str, generation: int) -> None:
        """From here on a press finds the process; nothing stays open when it is refused."""
        guard, container = self._guard, None
        try:
            entry, container = self._identify(held, init, container_id)
            with guard.lock:
                self._refuse_if_killed(held, generation)
                held.entry, held.init, held.container = entry, init, container
                if guard.causes.of(entry.agent_id):
                    set_frozen(held, True, None)
        except ConsoleError:
            init.close()
            if container is not None:
                container.close()
            raise

    def _refuse_if_killed(self, held: Held, generation: int) -> None:
        if held.entry.killed:
            raise Killed("A kill came in between: this launch is refused.", "Abort it.")
        self.refuse_if_changed(generation)

    def _identify(self, held: Held, init: Handle, container_id: str) -> tuple[Entry, Leaf | None]:
        """Where the process lives, checked against the ticket."""
        own = processes.pid_namespace("self")
        namespace = init.namespace if init.namespace is not None and init.namespace != own else 0
        entry = replace(held.entry, confirmed=True, pid=init.pid, start_ticks=init.start_ticks, pid_namespace=namespace)
        if entry.kind == "container":
            return self._identify_container(entry, init.pid, container_id)
        where = place_of(init.pid, self._guard.mounts.v2)
        if held.leaf is not None and not is_among(where, (held.leaf.path,)):
            raise Denied(f"Process {init.pid} is not in the leaf of its ticket.", "Enter the leaf before confirming; abort this launch.")
        return replace(entry, can_leave=held.leaf is not None and not namespace and can_leave(init.pid, held.leaf)), None

    def _identify_container(self, entry: Entry, pid: int, container_id: str) -> tuple[Entry, Leaf | None]:
        if not CONTAINER_ID.match(container_id):
            raise UsageProblem("The container's id is missing or not valid.", "Send the full id the engine gave.")
        entry = replace(entry, container_id=container_id)
        if self._guard.mounts.v2 is None:
            return entry, None
        try:
            leaf = _open_container(container_folder(pid, container_id, self._guard.mounts.v2), self._guard.mounts.v2)
        except Refused as refusal:
            if entry.pid_namespace:  # a v1-only engine: its PID namespace is killed through its init
                return entry, None
            raise Denied(refusal.what, "Abort this launch.") from refusal
        except OSError as error:
            raise Denied(f"The container's cgroup cannot be opened: {error.strerror}.", "Abort this launch.") from error
        return replace(entry, container_leaf=str(leaf.path), container_inode=leaf.inode), leaf

    def forget(self, *agent_ids: str) -> dict[str, Any]:
        """These agents ended: one write for all of them. Raises Conflict, once that is done, while anything of one is alive."""
        guard, known, alive = self._guard, False, list[str]()
        with guard.lock:
            for agent_id in agent_ids:
                held = guard.registry.held.get(agent_id)
                if held is not None and held.is_populated():
                    alive.append(agent_id)
                elif held is not None:
                    known = True
                    guard.registry.retire(agent_id)
                    guard.causes.forget(agent_id)
        if known:
            self.tell_best_effort()
            guard.record("registry", guard.registry.save, guard.causes.save)
            if not guard.is_killing():
                guard.registry.sweep(guard.afterwards.holds)
        if alive:
            words = f"Agent {alive[0]} still has processes." if len(alive) == 1 else f"{len(alive)} agents still have processes."
            raise Conflict(words, "Kill it first, or wait until it has ended.")
        return {"known": known}

    def tell_best_effort(self) -> None:
        """Said before any press: what of these agents no kill can prove."""
        guard = self._guard
        with guard.lock:
            reasons = {held.entry.agent_id: held.entry.why_best_effort for held in guard.registry.held.values()}
        best = [why for agent_id, why in reasons.items() if why and not agent_id.startswith("canary-")]
        guard.notices.pop("best-effort", None)
        if best:
            guard.notices["best-effort"] = f"A kill of {counted(len(best), 'agent')} is best effort: {'; '.join(dict.fromkeys(best))}."

    def procs(self, agent_id: str) -> dict[str, Any]:
        """How many processes an agent has, the first hundred, and whether any may be alive: a list that cannot be read is empty.

        Raises NotFound for one that is not registered, and Unavailable where that says nothing: agents are missing from the registry.
        """
        registry = self._guard.registry
        held = registry.held.get(agent_id)
        if held is None and registry.incomplete:
            raise Unavailable(
                f"Whether {agent_id} runs is not known: {registry.incomplete}", "Panic, then rearm: it takes a look at everything."
            )
        if held is None:
            raise NotFound(f"Agent {agent_id} is not registered.", "watchfloor fleet lists them.")
        pids = held.pids()
        alive, doubt = held.is_populated() or bool(held.doubt), held.entry.why_best_effort or held.doubt
        return {"count": len(pids), "pids": pids[:100], "alive": alive, "best_effort": doubt}

    def missed(self, scope: str | list[str]) -> dict[str, Any]:
        """Note agents that the supervisor follows and the registry does not know: an older registry was put in its place, for example.

        From then on an empty result confirms nothing, until an un-kill has checked everything.
        """
        guard = self._guard
        with guard.lock:
            unknown = [i for i in ([] if scope == "all" else scope) if i not in guard.registry.held]
            is_news = bool(unknown) and not guard.registry.incomplete
            if is_news:
                who = f"{counted(len(unknown), 'agent')} that the supervisor follows, for example {unknown[0][:63]}"
                words = f"The registry does not know {who}."
                guard.registry.incomplete = guard.notices["registry"] = words
        if is_news:
            guard.record("registry", guard.registry.save)
        return {"unknown": len(unknown)}


def can_leave(pid: int, leaf: Leaf) -> bool:
    """Whether the process may write the cgroup.procs of our tree: it is root, or owns the leaf. Unknown reads as yes."""
    uids = processes.uids(pid)
    try:
        # A move needs write access to both groups' common ancestor (cgroup-v2.rst): root and the tree's owner have it.
        owners = {0, leaf.path.stat().st_uid}
    except OSError:
        return True
    return not uids or bool(uids & owners)


def _open_container(folder: Path, mount: Mount) -> Leaf:
    leaf = Leaf(folder)
    try:
        leaf.check(mount)
    except (Refused, OSError):
        leaf.close()
        raise
    return leaf


CALL = re.compile(r"^[0-9a-f]{8,32}\Z")
MOST = 16
"""Calls of one agent at once."""
YOUNG_S = 120.0
_BOUNDS = (("pids.max", "pids_max"), ("memory.max", "memory_max"), ("memory.limit_in_bytes", "memory_max"))


@dataclass(frozen=True, slots=True)
class _Place:
    held: Held
    leaf: Leaf
    folder: Path


class Calls:
    """The supervisor's side of executing a judged call. Runs on the clerk's thread."""

    def __init__(self, guard: Guard, launches: Launches) -> None:
        self._guard, self._launches = guard, launches

    def ticket(self, message: dict[str, Any]) -> dict[str, Any]:
        """A group for one call below its agent's leaf, and groups below what bounds the agent elsewhere.

        Raises Killed, Denied, NotFound, Conflict, Unavailable or UsageProblem.
        """
        bounds = {name: whole(message, name) for name in ("pids_max", "memory_max") if message.get(name) is not None}
        self._launches.refuse_if_stopped()
        place = self._place(message)
        self._refuse_if_frozen(place.held)
        below = [one for one in place.leaf.path.glob("call-*") if one.is_dir()]
        if len(below) >= MOST:
            below = [one for one in below if not self._was_left(one, place.held.entry.limit_leaves)]
        if len(below) >= MOST:
            raise Conflict(f"{len(below)} calls of {place.held.entry.agent_id} run already.", "Wait until one of them has ended.")
        limits = [Path(folder) / place.folder.name for folder in place.held.entry.limit_leaves]
        _make((place.folder, *limits))
        for folder in (place.folder, *limits):
            for file, name in _BOUNDS:
                if name in bounds and (folder / file).exists():
                    with contextlib.suppress(OSError):  # the agent's own bound stands above it; what holds is read back by the sandbox
                        (folder / file).write_text(str(bounds[name]))
        generation = self._guard.latch.state.generation
        return {"leaf": str(place.folder), "limit_leaves": [str(one) for one in limits], "generation": generation}

    def confirm(self, message: dict[str, Any]) -> dict[str, Any]:
        """The call's first process is in its group and waits at its gate. Raises Killed or Denied when a stop came in between."""
        place = self._place(message)
        generation, pid, ticks = (whole(message, name) for name in ("generation", "pid", "start_ticks"))
        self._launches.refuse_if_changed(generation)
        self._refuse_if_frozen(place.held)
        where = place_of(pid, self._guard.mounts.v2)
        if processes.start_ticks(pid) != ticks or not is_among(where, (place.folder,)):
            raise Denied(f"Process {pid} is not in the group of this call.", "Abort it.")
        # Whoever is killed from here on is killed with this process in it: it is inside, and stays behind its gate until we have answered.
        self._refuse_if_killed(place.held)
        self._launches.refuse_if_changed(generation)
        return {}

    def over(self, message: dict[str, Any]) -> dict[str, Any]:
        """Takes the groups of an ended call away. Raises Conflict while anything is alive in them; nothing is ever killed here."""
        agent_id, name = self._names(message)
        held = self._guard.registry.held.get(agent_id)
        if held is None or held.leaf is None:
            return {"known": False}
        folders = [held.leaf.path / name, *(Path(folder) / name for folder in held.entry.limit_leaves)]
        for folder in folders:
            try:
                folder.rmdir()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise Conflict(f"The call still has processes, or its group cannot be removed: {error.strerror}.", "") from error
        return {"known": True}

    def _was_left(self, folder: Path, elsewhere: tuple[str, ...]) -> bool:
        """Takes a dead supervisor's empty groups away; whether they are gone. A young one may be about to be entered."""
        try:
            if time.time() - folder.stat().st_mtime < YOUNG_S:
                return False
            for one in (*(Path(place) / folder.name for place in elsewhere), folder):
                if one.exists():
                    one.rmdir()
        except OSError:
            return False
        return True

    def _names(self, message: dict[str, Any]) -> tuple[str, str]:
        agent_id, call = text(message, "agent_id", limit=63), text(message, "call", limit=32)
        if not CALL.match(call):
            raise UsageProblem("A call is named by 8 to 32 hexadecimal characters.", "")
        return agent_id, f"call-{call}"

    def _place(self, message: dict[str, Any]) -> _Place:
        agent_id, name = self._names(message)
        with self._guard.lock:
            held = self._guard.registry.held.get(agent_id)
        if held is None or not held.entry.confirmed:
            raise NotFound(f"Agent {agent_id} is not registered.", "watchfloor fleet lists them.")
        self._refuse_if_killed(held)
        if held.leaf is None:
            why = "the agent has no cgroup of its own here: what a call starts could not be stopped with it"
            raise Unavailable(f"Executing calls is not available, because {why}.", "watchfloor doctor shows what is missing.")
        return _Place(held, held.leaf, held.leaf.path / name)

    def _refuse_if_killed(self, held: Held) -> None:
        if held.entry.killed:
            raise Killed("The agent was killed: nothing of it starts.", "")

    def _refuse_if_frozen(self, held: Held) -> None:
        if self._guard.causes.of(held.entry.agent_id):
            raise Frozen("The agent is frozen: nothing of it starts.", "Thaw it first.")


def _make(folders: Iterable[Path]) -> None:
    """All of them, or none. Raises Conflict, Unavailable."""
    made: list[Path] = []
    try:
        for folder in folders:
            folder.mkdir(mode=0o755)
            made.append(folder)
    except OSError as error:
        for folder in made:
            with contextlib.suppress(OSError):
                folder.rmdir()
        if isinstance(error, FileExistsError):
            raise Conflict("There is such a call already.", "Use a new id.") from error
        raise Unavailable(f"No cgroup could be made for the call: {error.strerror}.", "watchfloor status shows why.") from error
