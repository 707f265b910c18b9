"""Which processes and homes are agents of ours: by cgroup, container and parent process, as the kernel has them; never by a file."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from console.domain.agent import ProcessIdentity, SandboxKind
from console.domain.ids import ControlLevel
from console.settings.places import Places
from console.sources.home_dirs import OwnHome, is_below
from console.sources.kinds import HOME_FOLDERS
from console.sources.processes import ProcessTable

if TYPE_CHECKING:  # a verb that reads transcripts asks for workspaces alone, and the engine is half of what would be loaded
    from console.enforcement.state import EngineState

_CONTAINER = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_ABOVE = 40
"""Parent processes looked at above one."""
HOMES_MAX = 2000
_TOPS = frozenset(config.partition("/")[0] for config in HOME_FOLDERS)
"""What hardly any workspace has is looked for first: it is done again and again, for each of them."""


@dataclass(frozen=True, slots=True)
class _Known:
    """Agents of ours that live, at one moment: made on the loop, read by the sources' threads."""

    processes: dict[int, tuple[ProcessIdentity, str]]
    containers: dict[str, str]
    homes: tuple[OwnHome, ...]


class OwnAgents:
    """Told by the loop who lives, asked by the sources' threads."""

    __slots__ = ("_leaf", "_known", "_adopted", "_facts", "_places", "_table")

    def __init__(self, places: Places, table: ProcessTable | None = None) -> None:
        self._places, self._table = places, table or ProcessTable()
        leaves = rf"/watchfloor-{re.escape(places.instance_id)}/agents/"
        self._leaf = re.compile(leaves + r"([a-z0-9][a-z0-9-]{0,62}?)-[0-9a-f]{8}(?=/|\n|\Z)")
        self._known = _Known({}, {}, ())
        self._adopted: tuple[str, ...] = ()
        self._facts: object = None

    def adopted(self) -> tuple[str, ...]:
        """Those who ran before they were ours: of their processes something else was said until then."""
        return self._adopted

    def update(self, state: EngineState) -> None:
        """On the loop's thread, before sources look. Agents change all the time, and what is asked of them here hardly ever does."""
        agents = state.agents
        facts = [(i, (a := agents[i]).process, a.container_id, a.context_id, a.sandbox, a.control_level) for i in state.held]
        if facts == self._facts:
            return
        self._facts = facts
        processes: dict[int, tuple[ProcessIdentity, str]] = {}
        containers: dict[str, str] = {}
        shared: dict[str, list[tuple[str, bool]]] = {}
        ours = sorted(state.held)
        self._adopted = tuple(i for i in ours if state.agents[i].control_level is ControlLevel.ADOPTED)
        for agent_id in ours:
            agent = state.agents[agent_id]
            if agent.process is not None:
                processes[agent.process.pid] = (agent.process, agent_id)
            if agent.container_id:
                containers[agent.container_id] = agent_id
            shared.setdefault(agent.context_id, []).append((agent_id, agent.sandbox is SandboxKind.GVISOR))
        root = self._places.workspaces_dir
        homes = tuple(OwnHome(root / c, tuple(i for i, _ in those), any(h for _, h in those)) for c, those in shared.items())
        self._known = _Known(processes, containers, homes)

    def homes(self) -> list[OwnHome]:
        """Workspaces of those that live."""
        return list(self._known.homes)

    def of(self, pid: int, cgroup: str) -> str:
        """The agent that this process belongs to, or empty. The outermost cgroup counts: further in, an agent may name them as it likes."""
        leaf = self._leaf.search(cgroup)
        if leaf:
            return leaf[1]
        known = self._known
        box = _CONTAINER.search(cgroup)
        if box and box[0] in known.containers:
            return known.containers[box[0]]
        above = pid if known.processes else 0
        for _ in range(_ABOVE):
            if above < 2:
                break
            found = known.processes.get(above)
            if found is not None and self._table.start_ticks(above) == found[0].start_ticks:
                return found[1]
            above = self._table.parent_and_inner(above)[0]
        return ""


def workspaces_with_transcripts(workspaces: Path) -> list[Path]:
    """Homes of agents of ours, living or not, in which a program may have written transcripts."""
    try:
        with os.scandir(workspaces) as entries:
            some = [Path(e.path) for e in islice(entries, HOMES_MAX) if any(os.path.lexists(f"{e.path}/{top}") for top in _TOPS)]  # noqa: PTH110
    except OSError:
        return []
    return sorted(f for f in some if any(is_below(f, f / config) for config in HOME_FOLDERS))
