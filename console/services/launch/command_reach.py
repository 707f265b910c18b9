"""What any command that an operator is about to start could do at worst: the same lines as for a program, and nothing is started."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from pathlib import Path

from console.api import messages as m
from console.api.agents import programs as pm
from console.domain.agent import LaunchRequest, SandboxKind
from console.domain.errors import ConsoleError, Unavailable
from console.domain.process.environment import PATH
from console.sandbox.interface import Sandbox
from console.services.budgets import measurable
from console.services.hooks.program_hooks import own_servers
from console.services.launch.program_reach import Outlooks
from console.services.policy.dangerous_operations import DangerDesk
from console.services.routes.launch_body import request_from
from console.sources.kind import Lacks

COMMAND = "command"
WORDS = 300


async def preview_command(
    outlooks: Outlooks, sandboxes: Mapping[SandboxKind, Sandbox], body: m.LaunchBody, dangers: DangerDesk | None = None
) -> pm.ProgramPreview:
    """Judged as its launch would be; a refusal is told, never raised."""
    try:
        request = request_from(body)
        request.check()
        available = await asyncio.to_thread(sandboxes[request.sandbox].available)
        if not available.ok:
            raise Unavailable(f"Sandbox {request.sandbox} is not available, because {available.reason}.", available.remedy)
        measurable.check(request, await asyncio.to_thread(measurable.why_unmeasured, request))
        shaped = outlooks.core.admitted(request)
        seen = await asyncio.to_thread(outlooks.of, shaped, _line(request))
        _, servers = await asyncio.to_thread(as_command, request)
        named = await asyncio.to_thread(dangers.of_launch, shaped) if dangers is not None else ()
    except ConsoleError as error:
        return pm.ProgramPreview(agent=COMMAND, why_not=error.what, remedy=error.remedy, exit_code=int(error.exit_code))
    return pm.ProgramPreview(
        agent=COMMAND,
        network_mode=seen.mode.value,
        network_enforced=seen.enforced,
        sensitivity=seen.level.value,
        cost_cap_usd=request.limits.cost_usd,
        reach=[*seen.reach, *([pm.ReachView(what="servers", words=servers, amber=True)] if servers else [])],
        dangers=[one.line() for one in named],
    )


def as_command(request: LaunchRequest) -> tuple[str, str]:
    """What a known program lacks that is started as a command: (a way to talk to it, a list of its MCP servers); else empty. Blocks."""
    kind = measurable.kind_of(request.argv, looks_here=request.sandbox in (SandboxKind.NONE, SandboxKind.BUBBLEWRAP))
    if kind is None:
        return "", ""
    told = (
        ""
        if isinstance(kind.start, Lacks)
        else f"it has no terminal and no input; run --agent {kind.start.name} -- PROMPT tells it what to do"
    )
    return told, own_servers(kind)


def _line(request: LaunchRequest) -> pm.ReachView:
    """Which command. On this machine its program is looked for where ours are; a container has its own."""
    words = " ".join(request.argv)[:WORDS]
    name = request.argv[0]
    inside = request.sandbox in (SandboxKind.DOCKER, SandboxKind.GVISOR)
    if inside or "/" in name or shutil.which(name, path=PATH) is not None:
        missing = "/" in name and not inside and name.startswith("/") and not Path(name).exists()
        return pm.ReachView(what="program", words=f"{words}; there is no such file" if missing else words, amber=missing)
    return pm.ReachView(what="program", words=f"{words}; {name[:60]!r} is not in the usual folders of programs", amber=True)
