"""Adapters by kind: every way of holding an agent, every source of sightings."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from console.domain.agent import SandboxKind
from console.sandbox.bubblewrap import Bubblewrap, try_in
from console.sandbox.containers.docker import Docker
from console.sandbox.containers.gvisor import Gvisor
from console.sandbox.interface import Sandbox
from console.sandbox.managed import Managed
from console.services.observe.own_agents import OwnAgents, workspaces_with_transcripts
from console.settings.options import Options
from console.settings.places import Places
from console.sources.docker import DockerSource
from console.sources.interface import Source
from console.sources.kind import Lacks, Outlook
from console.sources.kinds import KINDS, PROGRAMS, TRANSCRIPTS, VENDORS
from console.sources.otlp.source import OtlpSource
from console.sources.plain_processes import ProcessSource
from console.sources.programs import Programs
from console.sources.spend.of_session import SessionSpend
from console.sources.spend.rates import RateBook


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


def spend_of(places: Places, options: Options) -> SessionSpend:
    """What is read of transcripts: of the homes that are looked in, and of our own agents' workspaces."""
    root = Path(options.discover_root) if options.discover_root else None
    outside = places.is_default or root is not None
    own = partial(workspaces_with_transcripts, places.workspaces_dir)
    return SessionSpend(places.state_dir / "cost.db", TRANSCRIPTS, RateBook(VENDORS), root, own=own, outside=outside)


def sources_of(places: Places, options: Options, spend: SessionSpend | None = None, own: OwnAgents | None = None) -> tuple[Source, ...]:
    """Discovery: the operator's own home for the default instance, else only a root that was named; our own agents always."""
    root = Path(options.discover_root) if options.discover_root else None
    outside = places.is_default or root is not None
    own = own or OwnAgents(places)
    programs = Programs(PROGRAMS, whose=own.of, adopted=own.adopted)
    given = Outlook(root, spend, programs, own.homes, outside)
    found: tuple[Source, ...] = tuple(kind.look(given) for kind in KINDS if not isinstance(kind.look, Lacks))
    found = (*found, ProcessSource(programs, KINDS, root, outside=outside))
    found = (*found, DockerSource(options.engine(), places.instance_id)) if places.is_default else found
    return (*found, OtlpSource(RateBook(VENDORS), options.otlp.port, options.otlp.token_sha256))
