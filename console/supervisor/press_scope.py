"""Whom a press of everything signals besides those who are held: observed agents of the default instance, when the settings say so.

Decided here, told to the guard in advance, and shown before the press. Never with a state directory of its own (the demo, tests), never
where discovery was confined to a folder, never one in a container or whose source could not prove which process it is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from console.domain.agent import Agent, AgentId, ControlLevel
from console.domain.errors import ConsoleError
from console.sandbox.processes import start_ticks
from console.settings.options import Options
from console.supervisor.parts import Parts

log = logging.getLogger(__name__)
LOOK_S = 2.0
LINE = 5
"""Agents of one line to the guard, which holds 4 KiB."""


def meant(options: Options, *, is_default: bool, agents: Iterable[Agent]) -> list[Agent]:
    """The observed agents that a press of everything is to signal; nobody unless it was asked for and this is the default instance."""
    if not (is_default and options.panic.include_observed) or options.discover_root:
        return []
    return [
        a for a in agents if a.control_level is ControlLevel.OBSERVED and a.state.is_live and a.process is not None and not a.container_id
    ]


def proof_of(agent: Agent, proc: Path = Path("/proc")) -> dict[str, Any] | None:
    """The agent's process with its program and account, all of one moment; None when they cannot be had: it is not signalled then."""
    process = agent.process
    if process is None:
        return None
    try:
        exe = str((proc / str(process.pid) / "exe").readlink())
        status = (proc / str(process.pid) / "status").read_text(errors="replace")
        uids = {int(word) for line in status.splitlines() if line.startswith("Uid:") for word in line.split()[1:]}
        if start_ticks(process.pid) != process.start_ticks or len(uids) != 1 or len(exe) > 200:
            return None
    except (OSError, ValueError):
        return None
    return {"id": agent.agent_id, "pid": process.pid, "start_ticks": process.start_ticks, "exe": exe, "uid": uids.pop()}


async def keep_telling(parts: Parts, is_default: bool) -> None:
    """Tells the guard whenever that changed, and a new guard anew. Forever."""
    state, told = parts.core.state, None
    while True:
        await asyncio.sleep(LOOK_S)
        chosen = meant(parts.options, is_default=is_default, agents=[state.agents[i] for i in sorted(state.live)])
        state.press_observed = {a.agent_id for a in chosen}
        if not chosen and not told:
            continue
        found = [one for one in await asyncio.to_thread(lambda c=chosen: [proof_of(a) for a in c]) if one is not None]  # type: ignore[misc]
        state.press_observed = {AgentId(str(one["id"])) for one in found}
        try:
            guard = int((await asyncio.to_thread(parts.guard.call, "status")).get("pid", 0))
            if told != (guard, found):
                await asyncio.to_thread(tell, parts, found)
                told = (guard, found)
        except ConsoleError as error:
            log.warning("the guard was not told whom a press signals besides: %s", error)
            told = (0, [])


def tell(parts: Parts, found: list[dict[str, Any]]) -> None:
    """In lines that the guard takes; the first one makes it forget whom it was told before."""
    for start in range(0, max(1, len(found)), LINE):
        parts.guard.call("seen", agents=found[start : start + LINE], more=start > 0)
