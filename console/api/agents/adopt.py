"""What adoption asks and answers: which process a seen agent is, whether it may be adopted, and what became of it."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from console.api.agents.daemons import DaemonView
from console.api.message import SCHEMA_VERSION, Request, View

LACKS = (
    "its network mode cannot be enforced: it stays on the network it was started with",
    "its environment, files and account are those it was started with: nothing is taken from it",
    "no PID, mount or network namespace, no system call filter, no memory or process limit",
    "it has no socket of its own: it cannot spawn agents here, ask permission or report usage",
    "what it had sent or started elsewhere before, or left to the system's own services, is not held",
    "no record of files from before its start: what could start it again is unknown, so a kill never ends with exit code 0",
)
"""What an adopted agent does not get."""


class Candidate(View, kw_only=True):
    """One process. Text is hostile."""

    pid: int
    start_ticks: int
    """Field 22 of proc(5): with the pid it names one process for good."""
    kind: Literal["itself", "descendant", "orphan"]
    """``descendant`` comes along; ``orphan`` is left outside, may be the agent's, and comes along when it is named."""
    by: str = ""
    """What an ``orphan`` shares with the agent besides its account: ``marker``, ``session``, ``account`` (and cgroup), ``working folder``
    or ``program``."""
    exe: str = ""
    uid: int | None = None
    command: str = ""
    cgroup: str = ""
    why_not: str = ""
    """Why it is not adopted, or empty: it may be."""


class CandidatesView(View, kw_only=True):
    """GET /api/adopt/candidates?agent=ID. Nothing is moved."""

    schema_version: int = SCHEMA_VERSION
    agent: str
    name: str = ""
    why_not: str = ""
    """Why this agent cannot be adopted now, or empty."""
    candidates: list[Candidate] = []
    """Itself first; at most 20 are described."""
    descendants: int = 0
    """How many processes come along, as far as parent and session tell."""
    orphans: int = 0
    daemons: list[DaemonView] = []
    """Programs outside that host its session or would start it again: they do not come along."""
    lacks: list[str] = field(default_factory=lambda: list(LACKS))


class OrphanBody(Request, kw_only=True):
    """An orphan that the operator takes for the agent's."""

    pid: Annotated[int, Meta(gt=1, lt=1 << 23)]
    start_ticks: Annotated[int, Meta(ge=0, lt=1 << 62)]


class AdoptBody(Request, kw_only=True):
    """POST /api/adopt: the candidate exactly as it was shown; 409 when it is not that any more."""

    agent: Annotated[str, Meta(max_length=63)]
    pid: Annotated[int, Meta(gt=1, lt=1 << 23)]
    start_ticks: Annotated[int, Meta(ge=0, lt=1 << 62)]
    exe: Annotated[str, Meta(min_length=1, max_length=500)]
    uid: Annotated[int, Meta(ge=0, lt=1 << 32)]
    also: Annotated[list[OrphanBody], Meta(max_length=16)] = []
    reason: Annotated[str, Meta(max_length=500)] = ""


class AdoptedView(View, kw_only=True):
    """What became of it."""

    schema_version: int = SCHEMA_VERSION
    agent: str
    control_level: str = "adopted"
    moved: int
    left: dict[str, str] = {}
    """Processes (pid) that were not moved, and why; at most five."""
    left_n: int = 0
    orphans: int = 0
    """Processes that may be its and were left outside."""
    best_effort: str = ""
    """Why a kill of it cannot be proven; empty: it can."""
    owner_folder: str = ""
    """Where its owner (its account) reads that it was adopted and, once a budget stops it, why; empty: nowhere."""
    owner_why_not: str = ""
    """Why there is no such folder."""
    frozen: str = ""
    """Why it is frozen still (its thaw could not be recorded); empty: it goes on."""
    lacks: list[str] = field(default_factory=lambda: list(LACKS))
