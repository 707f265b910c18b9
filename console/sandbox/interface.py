"""What a sandbox is: a launch, its ticket, a prepared but gated agent, and the protocol every adapter keeps.

The order is fixed: ``prepare`` makes a process that sits in its leaf and its namespaces and waits;
the guard confirms it; ``go`` opens the gate. Not one instruction of the agent runs before ``go``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from console.domain.agent import AgentId, SandboxKind
from console.domain.errors import UsageProblem
from console.domain.ids import AGENT_ID, ControlLevel
from console.domain.network import NetworkMode
from console.domain.sandbox import Given

# execve(2): one string is at most 32 pages; ours must also fit beside the others.
MAX_STRING = 131_071
# Well below the kernel's bound, which is a quarter of the stack limit (execve(2)), usually 2 MiB.
MAX_TOTAL = 1_000_000
OUTPUT_BYTES = 16 * 1024 * 1024
PREPARE_S = 30.0
"""Longest wait in seconds for a sandbox to be built."""
KILLED_EXIT_CODE = 137
"""128 + SIGKILL: also what ``wait`` answers when the sandbox's own init was killed."""


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """Everything an adapter needs. Paths are absolute and resolved; ``check`` refuses what no adapter can start."""

    agent_id: AgentId
    argv: tuple[str, ...]
    env: Mapping[str, str]
    """The whole environment of the agent (see environment.py); nothing of ours is added by inheritance."""
    workspace: Path
    agent_socket: Path
    """The agent's own socket."""
    # In a folder named after the agent, the agent sees that folder: a supervisor that restarts can then put a new socket there. Otherwise
    # the agent sees the socket file alone.
    output: Path
    """Where stdout and stderr are kept; created with 0600, appended to, bounded."""
    network_mode: NetworkMode
    hide: tuple[Path, ...] = ()
    """Folders masked in the agent's mount namespace, its own socket and workspace excepted."""
    uid: int = 65534
    gid: int = 65534
    pids_max: int = 0
    """Most processes at once; 0: not capped here."""
    memory_max_bytes: int = 0
    """0: not capped here."""
    cpus: float = 0.0
    """Most processors' worth of time; 0: not capped here."""
    labels: Mapping[str, str] = field(default_factory=dict)
    extra_binds: tuple[tuple[Path, str], ...] = ()
    """(source, path inside), read-only."""
    output_max_bytes: int = OUTPUT_BYTES
    user_namespaces: bool = False
    """Its program builds a sandbox of its own and may create user namespaces; only without a sandbox of ours around it."""
    doorless: bool = False
    """It gets no socket of ours: one executed call, not an agent."""

    def check(self) -> None:
        """Raises UsageProblem when the agent cannot be started as asked."""
        if not AGENT_ID.match(self.agent_id):
            raise UsageProblem(f"Agent id {self.agent_id[:80]!r} is not valid.", "Use a-z, 0-9 and -, 1 to 63 characters.")
        if not self.argv or not self.argv[0]:
            raise UsageProblem("There is no command to run.", "Name the program.")
        _check_strings("The command line", self.argv)
        _check_strings("The environment", [f"{name}={value}" for name, value in self.env.items()])
        if any(not name or "=" in name for name in self.env):
            raise UsageProblem("A variable's name is empty or contains '='.", "Rename it.")
        # Measured: a process of root moves itself into another cgroup, and any other account is refused.
        if os.geteuid() == 0 and (self.uid == 0 or self.gid == 0):
            raise UsageProblem("An agent never runs as root: it could leave its cgroup.", "Give it a uid and a gid of its own.")


def _check_strings(whose: str, strings: list[str] | tuple[str, ...]) -> None:
    total = 0
    for text in strings:
        if "\0" in text:
            raise UsageProblem(f"{whose} contains a NUL character.", "Remove it.")
        try:
            size = len(os.fsencode(text))
        except UnicodeEncodeError as error:
            raise UsageProblem(f"{whose} is not valid text.", "Remove the lone surrogate.") from error
        if size > MAX_STRING:
            raise UsageProblem(f"{whose} has a string of {size:,} bytes; the kernel takes {MAX_STRING:,}.", "Put it into a file.")
        total += size + 1
    if total > MAX_TOTAL:
        raise UsageProblem(f"{whose} is {total:,} bytes long; at most {MAX_TOTAL:,} are taken.", "Put the input into a file.")


@dataclass(frozen=True, slots=True)
class Ticket:
    """The guard's permission to start one agent in one leaf."""

    leaf: str
    """Folder of the cgroup v2 leaf, or empty where there are no cgroups (the guard says why)."""
    limit_leaves: tuple[str, ...] = ()
    """Folders in other hierarchies that carry limits (v1 pids)."""
    generation: int = 0


@dataclass(frozen=True, slots=True)
class Prepared:
    """An agent that exists and waits at its gate."""

    agent_id: AgentId
    pid: int
    """Host pid of the sandbox's init."""
    start_ticks: int
    container_id: str = ""
    notes: tuple[str, ...] = ()
    """What could not be enforced here, in words for a person."""
    netns: bool = False
    """It has a network namespace of its own with nothing but loopback."""
    userns: bool = False
    """That namespace belongs to a user namespace: an unprivileged portal enters both."""
    mask: bool = False
    """``hide`` is out of its sight."""
    control_level: ControlLevel = ControlLevel.MANAGED
    portal_door: Path | None = None
    """Where the portal listens for a sandbox whose own network cannot be entered from outside (gVisor): a unix socket's path."""


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether an adapter works on this machine, found out by doing."""

    ok: bool
    reason: str
    remedy: str = ""


class Sandbox(Protocol):
    """One way to start agents. Every call blocks (call it from a thread) and is bounded in time."""

    kind: SandboxKind

    def available(self) -> Availability:
        """Whether this adapter works here; never raises."""

    def prepare(self, spec: LaunchSpec, ticket: Ticket) -> Prepared:
        """Builds the sandbox up to its closed gate. Raises ConsoleError, and then nothing is left behind."""

    def go(self, prepared: Prepared) -> None:
        """Opens the gate. Raises ConsoleError when the sandbox is gone."""

    def abort(self, prepared: Prepared) -> None:
        """Ends a sandbox, started or not; leaves no process."""

    def wait(self, prepared: Prepared, timeout: float | None) -> int | None:
        """Return the exit code (128 + signal when one ended it) once *everything* of the agent has ended; None: it ended, the code is
        unknown.

        Raises TimedOut when something still runs after ``timeout`` seconds (None: no limit).
        """

    def release(self, prepared: Prepared) -> None:
        """Release everything that is held for an ended agent, and end what is left of it."""

    def hardening(self, agent_id: AgentId) -> tuple[Given, ...]:
        """What the sandbox is made of, as read back before the agent ran; empty when it was not this supervisor that started it."""

    def ended_by(self, prepared: Prepared) -> str:
        """Which limit of ours ended it, in words (``memory limit 256 MiB``); empty: none. Asked between ``wait`` and ``release``."""

    def reattach(self, agent_id: AgentId, pid: int, start_ticks: int, container_id: str) -> Prepared:
        """Follows an agent that an earlier supervisor started. Its exit code may then be unknown (None)."""
