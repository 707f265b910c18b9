"""Where an agent that is only seen works: its process's own folder, by the kernel's word; a transcript is the agent's to write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from console.domain.agent import Agent, AgentId
from console.killswitch import processes

NOWHERE = Path("/nonexistent")
"""No rule on a workspace holds for anything: what it would allow asks."""
_LEVELS = 40


def working_folder(agent: Agent, above: Callable[[AgentId], Agent | None]) -> Path:
    """The folder of its process, or, of a sub-agent, of the process that it runs in; NOWHERE when that is not known for certain.

    Never ``/``: everything lies below that. ``above`` finds a parent by its id.
    """
    found: Agent | None = agent
    for _ in range(_LEVELS):
        if found is None or found.process is not None:
            break
        found = above(found.parent_id) if found.parent_id is not None else None
    if found is None or found.process is None:
        return NOWHERE
    pid = found.process.pid
    try:
        folder = Path(f"/proc/{pid}/cwd").readlink()
        # In a mount namespace of its own the same words are another folder.
        is_here = Path(f"/proc/{pid}/ns/mnt").stat().st_ino == Path("/proc/self/ns/mnt").stat().st_ino
    except OSError:
        return NOWHERE
    is_one = folder.is_absolute() and folder != Path("/") and not folder.name.endswith(" (deleted)")
    is_same = processes.start_ticks(pid) == found.process.start_ticks  # looked at last: the pid was its own all the while
    return folder if is_one and is_here and is_same else NOWHERE
