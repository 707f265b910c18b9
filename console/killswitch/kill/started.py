"""What Watchfloor started: told by the agent in whose cgroup a process is, or below which it is, and by when that agent was started."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from console.domain.agent import ControlLevel
from console.killswitch import processes
from console.killswitch.registry import Registry


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
