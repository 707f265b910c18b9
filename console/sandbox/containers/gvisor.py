"""``--sandbox gvisor``: the same hardened container on a kernel of its own (runsc), which the engine must know as a runtime.

gVisor's network is inside it: a port that is opened from outside is not seen there. So nothing is: the container has loopback alone,
its init takes 127.0.0.1:3128 and carries every connection to a unix socket in the folder bound in, where the portal listens. That and
the agent's own socket need ``--host-uds=open``.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from console.domain.agent import SandboxKind
from console.domain.errors import ConsoleError, Unavailable
from console.sandbox.containers.config import DEFAULT_PIDS
from console.sandbox.containers.docker import Docker
from console.sandbox.hardening import Mode
from console.sandbox.interface import Availability, LaunchSpec, Prepared, Ticket

RUNTIME = "runsc"
# The name of the option changed between versions of runsc; any of these lets a bound socket be used.
OPENS_SOCKETS = ("--host-uds=open", "--host-uds=all", "--fsgofer-host-uds")
_REMEDY = (
    "Install runsc (apt install runsc) and name it in the engine's daemon.json: "
    '{"runtimes": {"runsc": {"path": "/usr/bin/runsc", "runtimeArgs": ["--network=none", "--host-uds=open"]}}}. '
    "Or launch with --sandbox docker or bubblewrap."
)
# Its processes may fork while they are moved, so the look is repeated; a tree that never settles is refused.
_MOVE_ROUNDS = 20
OWN_PROCESSES = 256


class Gvisor(Docker):
    """Contained agents as containers whose system calls gVisor answers."""

    kind = SandboxKind.GVISOR
    mode = Mode.RUNSC
    runtime = RUNTIME
    _forwards = True

    def available(self) -> Availability:
        """Whether the engine knows the runtime, with what the portal needs. Each launch is looked at from inside besides."""
        engine = super().available()
        if not engine.ok:
            return engine
        try:
            arguments = self._arguments()
        except ConsoleError as error:
            return Availability(False, error.what.rstrip("."), error.remedy)
        words = f"{engine.reason} Its runtime {RUNTIME} is started with {' '.join(arguments)[:200]}."
        if "--network=none" in arguments:
            words += " FULL: not available, because the runtime has no network at all."
        return Availability(True, words)

    def _arguments(self) -> list[str]:
        runtimes: dict[str, Any] = self._engine.info().get("Runtimes") or {}
        if RUNTIME not in runtimes:
            raise Unavailable(f"The engine has no runtime named {RUNTIME}.", _REMEDY)
        arguments = [str(word) for word in runtimes[RUNTIME].get("runtimeArgs") or ()]
        if not any(word in arguments for word in OPENS_SOCKETS):
            raise Unavailable(f"The runtime {RUNTIME} is started without --host-uds=open: no agent could reach its socket.", _REMEDY)
        return arguments

    def prepare(self, spec: LaunchSpec, ticket: Ticket) -> Prepared:
        """As a container's. Raises Unavailable also for FULL where the runtime has no network."""
        if "--network=none" in self._arguments() and not spec.network_mode.is_restricted:
            raise Unavailable(
                f"The runtime {RUNTIME} is started with --network=none: FULL is not available.",
                "Launch with PROXIED or NONE, or register the runtime without it.",
            )
        return super().prepare(spec, ticket)

    def _config(self, spec: LaunchSpec, digest: str, control: Path) -> dict[str, Any]:
        """gVisor itself needs processes and threads of the host's for each of the agent's, and falls over without them."""
        own = 2 * (spec.pids_max or DEFAULT_PIDS) + OWN_PROCESSES
        return super()._config(replace(spec, pids_max=own), digest, control)

    def _settle(self, container_id: str, ticket: Ticket) -> Path | None:
        """Beside cgroup v1, older runsc leaves its processes in the root of v2: they get a group there that the guard can kill.

        The group lies in the agent's leaf and is named after the container. Raises ConsoleError.
        """
        if not ticket.leaf or not _outside(container_id):
            return None
        folder = Path(ticket.leaf, container_id)
        try:
            folder.mkdir()
            for _ in range(_MOVE_ROUNDS):
                left = _outside(container_id)
                if not left:
                    return folder
                for member in left:
                    with contextlib.suppress(ProcessLookupError):
                        (folder / "cgroup.procs").write_text(str(member))
        except OSError as error:
            raise ConsoleError(f"gVisor's processes could not be put into a cgroup of their own: {error}.", _REMEDY) from error
        raise ConsoleError("gVisor's processes could not be put into a cgroup of their own: they fork on.", "Launch the agent again.")


def _outside(container_id: str) -> list[int]:
    """Processes of a container (one of their cgroups is named after it) whose v2 group is not the container's."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                lines = (entry / "cgroup").read_text().splitlines()
            except OSError:
                continue
            mine = any(f"/{container_id}" in line for line in lines)
            if mine and not any(line.startswith("0:") and f"/{container_id}" in line for line in lines):
                # Named by a cgroup of the container in some hierarchy, so it is certain whose it is; only its v2 group is wrong.
                found.append(int(entry.name))
    return found
