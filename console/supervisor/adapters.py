"""Adapters by kind: every way of holding an agent, every source of sightings."""

from __future__ import annotations

import re
from pathlib import Path

from console.domain.agent import SandboxKind
from console.sandbox.bubblewrap import Bubblewrap, try_in
from console.sandbox.docker import Docker
from console.sandbox.gvisor import Gvisor
from console.sandbox.interface import Sandbox
from console.sandbox.managed import Managed
from console.settings.options import Options
from console.settings.places import Places
from console.sources.claude_code import ClaudeCodeSource
from console.sources.codex import CodexSource
from console.sources.docker import DockerSource
from console.sources.interface import Source
from console.sources.session_spend import SessionSpend


def keep_trials_in(places: Places) -> None:
    """What this host has is tried in the instance's own folder, where the next start sweeps what a killed one left. Under the lock."""
    try_in(places.state_dir / "trials")


def sandboxes_of(options: Options) -> dict[SandboxKind, Sandbox]:
    """Every way of holding an agent, whether or not this host has it."""
    return {
        SandboxKind.NONE: Managed(),
        SandboxKind.BUBBLEWRAP: Bubblewrap(),
        SandboxKind.DOCKER: Docker(options.engine()),
        SandboxKind.GVISOR: Gvisor(options.engine()),
    }


def spend_of(places: Places, options: Options) -> SessionSpend | None:
    """What is read of transcripts, where sessions are looked for at all."""
    if not places.is_default and not options.discover_root:
        return None
    return SessionSpend(places.state_dir / "cost.db", Path(options.discover_root) if options.discover_root else None)


def sources_of(places: Places, options: Options, spend: SessionSpend | None = None) -> tuple[Source, ...]:
    """Discovery: the operator's own home for the default instance, else only a root that was named."""
    if not places.is_default and not options.discover_root:
        return ()
    root = Path(options.discover_root) if options.discover_root else None
    ours = re.compile(rf"/watchfloor-{places.instance_id}/agents/")

    def not_ours(pid: int) -> bool:
        """A program inside one of our own agents is that agent, not another one beside it."""
        try:
            return ours.search(Path(f"/proc/{pid}/cgroup").read_text()) is None
        except OSError:
            return False

    confined: tuple[Source, ...] = (ClaudeCodeSource(root, not_ours, spend=spend), CodexSource(root, not_ours, spend=spend))
    return (*confined, DockerSource(options.engine(), places.instance_id)) if places.is_default else confined
