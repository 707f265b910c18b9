"""What a kill is asked for and what it works on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from console.killswitch.cgroups import Tree
from console.killswitch.engine_socket import Engine


@dataclass(frozen=True, slots=True)
class Order:
    """Who asked for what."""

    kill_id: str
    scope: str
    """``all`` or a comma-separated list of agent ids."""
    reason: str
    by: str
    remote_order: str = ""

    @property
    def is_all(self) -> bool:
        return self.scope == "all"


@dataclass(frozen=True, slots=True)
class Field:
    """What a kill works on."""

    instance_id: str
    run_dir: Path
    tree: Tree | None
    engine: Engine | None
    containers_ever: bool
    spared: Callable[[], frozenset[int]]
    """Pids never signalled: the guard, the supervisor, the presser and their ancestors."""
    incomplete: str = ""
    """Why there may be agents that no aim stands for; zero is unknown then."""
    agent_uids: frozenset[int] = frozenset()
    """Other accounts than ours that agents of this instance were launched under."""
