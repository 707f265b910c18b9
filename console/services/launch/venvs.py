"""A virtual environment for each session, made when its first agent that has pip starts: offline, by the agent's uid, in its sandbox.

What lies in it is the agents' own, so its programs come last on their PATH: none stands in for one of the system's.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from console.domain.agent import Agent, AgentId, SandboxKind
from console.domain.errors import ConsoleError, TimedOut
from console.domain.ids import ControlLevel
from console.domain.network import STRICTEST
from console.killswitch.client.guard_client import GuardClient
from console.sandbox.interface import LaunchSpec, Sandbox, Ticket
from console.services.launch.effective_limits import Bounding

FOLDER = ".venv"
MAKE_S = 120.0
# ensurepip needs half a minute of a small machine, and Debian ships it apart: whoever wants pip in it runs `python -m ensurepip` there.
_MAKE = 'exec python3 -I -m venv --without-pip "$1"'


def on_path(path: str, workspace: Path) -> str:
    """``path`` with the session's own programs behind everything else."""
    return f"{path}:{workspace / FOLDER / 'bin'}"


async def ensure_venv(sandbox: Sandbox, guard: GuardClient, agent: Agent, spec: LaunchSpec) -> str:
    """Makes it where the session has none; why it could not be made, or empty. The guard holds what makes it, like any agent."""
    place = spec.workspace / FOLDER
    if await asyncio.to_thread(_is_there, place):
        return ""
    maker = AgentId(f"venv-{agent.agent_id}"[:63])
    argv = ("/bin/sh", "-c", _MAKE, "sh", str(place))
    output = spec.output.with_name(f"{maker}.log")
    making = replace(spec, agent_id=maker, argv=argv, network_mode=STRICTEST, output=output, env={"PATH": "/usr/bin:/bin"})
    try:
        code = await asyncio.to_thread(_make, sandbox, guard, agent.sandbox, making)
    except (ConsoleError, OSError) as error:
        return f"no virtual environment: {error}"
    finally:
        await asyncio.to_thread(output.unlink, missing_ok=True)
    return "" if code == 0 else f"no virtual environment: python3 -m venv ended with {code}"


def _is_there(place: Path) -> bool:
    """Whether anything stands there, whatever an agent made of it."""
    try:
        place.lstat()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def _make(sandbox: Sandbox, guard: GuardClient, kind: SandboxKind, spec: LaunchSpec) -> int | None:
    """As a launch goes: ticket, gate, confirmation, go; then its end, and nothing of it left."""
    boxed = kind in (SandboxKind.DOCKER, SandboxKind.GVISOR)
    level = ControlLevel.MANAGED if kind is SandboxKind.NONE else ControlLevel.CONTAINED
    words: dict[str, Any] = {
        "kind": "container" if boxed else "process",
        "control_level": level.value,
        "uid": spec.uid,
        **Bounding.of_ticket(spec),
    }
    answer = guard.call("ticket", agent_id=spec.agent_id, **words)
    ticket = Ticket(str(answer.get("leaf", "")), tuple(answer.get("limit_leaves", ())), int(answer["generation"]))
    try:
        prepared = sandbox.prepare(spec, ticket)
        try:
            held: dict[str, Any] = {"container_id": prepared.container_id} if prepared.container_id else {}
            process = {"pid": prepared.pid, "start_ticks": prepared.start_ticks}
            guard.call("confirm", agent_id=spec.agent_id, generation=ticket.generation, **process, **held)
            sandbox.go(prepared)
            return sandbox.wait(prepared, MAKE_S)
        except TimedOut:
            return None
        finally:
            sandbox.abort(prepared)
    finally:
        with suppress(ConsoleError):
            guard.call("forget", agent_id=spec.agent_id)
