"""Executed calls: what the supervisor runs for an agent lives in a group below the agent's own leaf, and starts with the guard's consent.

A kill, freeze or halt of the agent takes its whole leaf, groups below included (cgroup-v2.rst). So no message about a call is needed to
stop it, and an agent that is confirmed dead has no running call.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.domain.errors import Conflict, Denied, Frozen, Killed, NotFound, Unavailable, UsageProblem
from console.killswitch import processes
from console.killswitch.cgroups import Leaf
from console.killswitch.fields import text, whole
from console.killswitch.guard import Guard
from console.killswitch.launches import Launches
from console.killswitch.peers import is_among
from console.killswitch.registry import Held

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
        mount = self._guard.mounts.v2
        line = processes.cgroup_line(pid)
        where = mount.locate(line) if mount and line is not None else None
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
