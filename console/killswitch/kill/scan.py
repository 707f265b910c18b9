"""Which processes are worth a look after a kill (new ones, and those that run another program), and which of them Watchfloor started."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from console.domain.ids import ControlLevel
from console.killswitch.kernel import processes
from console.killswitch.store.registry import Registry

LOOK_S = 0.25
AGAIN_S = 2.0
"""A process may run another program than it began with: so often all that began since the kill are looked at once more."""
SIGNS_S = 1.0
YOUNG_LOOKS = 8
"""A process that has just begun is looked at this often before it counts as settled."""


@dataclass(frozen=True, slots=True)
class Process:
    """What one process shows of itself."""

    pid: int
    ticks: int
    parent: int
    uid: int
    argv: tuple[str, ...]
    variables: dict[str, str]
    exe: str
    cwd: str
    began: int
    """When it began to run its program: ``ticks``, or when it was seen to run another one than before."""


class _Mark(NamedTuple):
    """By which a process that runs another program (execve) is told from one that does not."""

    ticks: int
    program: tuple[int, ...]
    """Where its code and its stack begin: other numbers after each execve. Zeros where this account may not read them."""


def _mark(pid: int) -> _Mark | None:
    fields = processes.stat_fields(pid)
    return _Mark(int(fields[19]), tuple(map(int, fields[23:26]))) if len(fields) > 25 and fields[0] not in (b"Z", b"X") else None


@dataclass(slots=True)
class _Young:
    """A process that began since the kill."""

    ticks: int
    looks: int = 0
    due: float = 0.0
    shown: tuple[str, bytes] = ("", b"")
    """Its program and arguments at the last look: only another program is worth another."""


class Scan:
    """Which processes are worth a look: those not met before, and those that run another program than they did."""

    def __init__(self) -> None:
        self._old: dict[int, _Mark] = {}
        """Began before the kill, as it was then, or at the last look."""
        self._young: dict[int, _Young] = {}
        self.began: dict[int, int] = {}
        """Processes from before the kill that run another program since: from when on, at the latest."""
        self._again_at = self._signs_at = 0.0

    def mark(self) -> None:
        """At the kill: what runs now."""
        self._old = {pid: found for pid in processes.every_pid() if (found := _mark(pid)) is not None}

    def look(self, since_ticks: int) -> Iterator[Process]:
        """Each process that began since then, or runs another program since then, and was not seen as it is now.

        What cannot be read is left out.
        """
        pids = set(processes.every_pid())
        now = time.monotonic()
        is_again = now >= self._again_at  # a number may be another process's by now
        if is_again:
            self._again_at = now + AGAIN_S
        self._old = {pid: one for pid, one in self._old.items() if pid in pids}
        self._young = {pid: one for pid, one in self._young.items() if pid in pids}
        self.began = {pid: one for pid, one in self.began.items() if pid in pids}
        for pid in pids if is_again else pids - self._old.keys():
            had = self._young.get(pid)
            if (had is not None and now < had.due) or (ticks := self._new(pid, since_ticks)) is None:
                continue
            if had is None or had.ticks != ticks:
                had = self._young[pid] = _Young(ticks)
            had.looks += 1
            had.due = now + (LOOK_S if had.looks < YOUNG_LOOKS else AGAIN_S) - 0.01
            shown = (processes.link(pid, "exe"), processes.arguments(pid))
            if shown != had.shown:
                had.shown = shown
                if (found := look_at(pid, shown[1], self.began.get(pid, 0))) is not None:
                    yield found

    def _new(self, pid: int, since_ticks: int) -> int | None:
        """Its start time, when it began since then or was seen to run another program since; else None."""
        mark, before = _mark(pid), self._old.pop(pid, None)
        if mark is None:
            return None
        if mark.ticks >= since_ticks:
            self.began.pop(pid, None)
            return mark.ticks
        if before is not None and before.ticks == mark.ticks and before != mark and any(before.program) and any(mark.program):
            self.began[pid] = processes.ticks_now()
        if pid in self.began:
            return mark.ticks
        self._old[pid] = mark
        return None

    def signs_due(self) -> bool:
        """Whether it is time to look at the sockets."""
        if time.monotonic() < self._signs_at:
            return False
        self._signs_at = time.monotonic() + SIGNS_S
        return True


def look_at(pid: int, said: bytes, began: int = 0) -> Process | None:
    """One process, whose arguments were read already; None when it is gone, or was replaced while it was read."""
    ticks, parent, uids = processes.start_ticks(pid), processes.parent(pid), processes.uids(pid)
    if ticks is None or not uids:
        return None
    argv = tuple(os.fsdecode(word) for word in said.rstrip(b"\0").split(b"\0"))
    pairs = (word.partition(b"=") for word in environment(pid).split(b"\0"))
    variables = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs if name}
    found = Process(pid, ticks, parent, min(uids), argv, variables, processes.link(pid, "exe"), processes.link(pid, "cwd"), began or ticks)
    return found if processes.start_ticks(pid) == ticks else None


def environment(pid: int) -> bytes:
    """NUL between the variables; empty when it cannot be read, for whatever reason."""
    try:
        return processes.environment(pid)
    except OSError:
        return b""


@dataclass(frozen=True, slots=True)
class Registered:
    """A living agent that the guard holds, or the supervisor."""

    pid: int
    """0: there is none, or none yet."""
    ticks: int
    leaf: str = ""
    """Name of its cgroup."""
    is_adopted: bool = False

    def is_started_after(self, ticks: int) -> bool:
        """Whether Watchfloor started it since then, or is starting it."""
        return not self.is_adopted and (not self.pid or self.ticks >= ticks)

    def is_above(self, pid: int) -> bool:
        """Whether that process is it, or descends from it."""
        return self.pid > 1 and self.pid in processes.ancestors(pid) and processes.start_ticks(self.pid) == self.ticks


def agents_of(registry: Registry, supervisor_pid: int) -> list[Registered]:
    """The supervisor, then the registered agents that are not killed."""
    ticks = processes.start_ticks(supervisor_pid) if supervisor_pid > 1 else None
    entries = [held.entry for held in list(registry.held.values()) if not held.entry.killed]
    agents = [Registered(e.pid, e.start_ticks, Path(e.leaf).name, e.control_level == ControlLevel.ADOPTED) for e in entries]
    return [Registered(supervisor_pid if ticks is not None else 0, ticks or 0), *agents]


def agent_of(pid: int, agents: list[Registered]) -> Registered | None:
    """The agent in whose cgroup a process is; without one the nearest that it descends from."""
    line = f"{processes.cgroup_line(pid) or ''}/"
    if (found := next((one for one in agents if one.leaf and f"/{one.leaf}/" in line), None)) is not None:
        return found
    by_pid, met = {one.pid: one for one in agents if one.pid > 1}, set[int]()
    while pid > 1 and pid not in met:
        if (above := by_pid.get(pid)) is not None and above.is_above(pid):
            return above
        met.add(pid)
        pid = processes.parent(pid)
    return None
