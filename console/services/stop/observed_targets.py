"""Choose the observed agents of the default instance that a kill signals, as a best effort.

A kill that names one signals it. A panic signals all of them when ``panic.include_observed`` is set. The supervisor decides, tells the
guard in advance, and shows it before a kill. The guard also gets the agents that a panic leaves alone, with the reason, for its receipt.

No kill signals an observed agent

* of an instance with a state directory of its own (the demo, tests), where discovery is confined to a folder;
* in a container;
* whose source could not prove which process it is.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from console.domain.agent import Agent, AgentId
from console.domain.engine.command import Record
from console.domain.errors import ConsoleError
from console.domain.ids import ControlLevel
from console.enforcement.state import EngineState
from console.killswitch.client.guard_client import GuardClient
from console.killswitch.kill.observed import NAMED
from console.sandbox.processes import start_ticks
from console.services.daemons.facts import Asked
from console.services.fleet.core import wait_beat
from console.services.records.record_writer import Scribe
from console.settings.options import Options

log = logging.getLogger(__name__)
LOOK_S = 2.0
LINE = 5
"""Agents of one line to the guard, which holds 4 KiB."""
AGAIN_S = 20.0
"""Seconds after which the guard is told again: a receipt tells when its list is old."""


def reachable(options: Options, *, is_default: bool, agents: Iterable[Agent]) -> list[Agent]:
    """Return the observed agents that a kill may signal: in the default instance alone, and only where discovery is not confined."""
    if not is_default or options.discover_root:
        return []
    return [
        a for a in agents if a.control_level is ControlLevel.OBSERVED and a.state.is_live and a.process is not None and not a.container_id
    ]


def asked_of(state: EngineState) -> list[Asked]:
    """Live agents with a process of this host, each with its session: whose daemons are looked for."""
    found = []
    for agent_id in sorted(state.live):
        agent, seen = state.agents[agent_id], state.seen.get(agent_id)
        if agent.process is not None and not agent.container_id and (seen is None or not seen.part):
            sources = seen.sources if seen is not None else ()
            found.append(Asked(agent_id, sources or (agent.source,), seen.session if seen is not None else "", agent.process, agent.cwd))
    return found


def note_session(scribe: Scribe, kind: str, kill_id: str, words: str) -> None:
    """A killed session that a daemon was asked to drop, or that runs again: on record as ``kind``; its receipt stays as it is."""
    scribe.record(Record("supervisor", kind, f"{kill_id}: {words}"[:500], data={"kill_id": kill_id}))


def proof_of(agent: Agent, proc: Path = Path("/proc")) -> dict[str, Any] | None:
    """The agent's process with its program and account, all of one moment; None when they cannot be had: it is not signalled then."""
    process = agent.process
    if process is None:
        return None
    try:
        exe = str((proc / str(process.pid) / "exe").readlink())
        status = (proc / str(process.pid) / "status").read_text(errors="replace")
        uids = {int(word) for line in status.splitlines() if line.startswith("Uid:") for word in line.split()[1:]}
        # Pids are reused within seconds on a busy host, so only the pid with its start time names a process.
        if start_ticks(process.pid) != process.start_ticks or len(uids) != 1 or len(exe) > 200:
            return None
    except (OSError, ValueError):
        return None
    return {"id": agent.agent_id, "pid": process.pid, "start_ticks": process.start_ticks, "exe": exe, "uid": uids.pop()}


def why_left(agent: Agent, options: Options, *, is_default: bool) -> str:
    """Why a press does not signal an agent that was only seen."""
    if agent.container_id:
        return "it lives in a container that was not started here"
    if agent.process is None:
        return "its source cannot prove which process it is"
    if not is_default:
        return "this instance has a state directory of its own, and signals only what it holds"
    if options.discover_root:
        return "discovery is confined to a folder"
    if not options.panic.include_observed:
        return "panic.include_observed is off"
    return "its program and account could not be proven"


def left_alone(state: EngineState, options: Options, *, is_default: bool) -> dict[str, Any]:
    """Return the live observed agents that a panic leaves alone: how many, and the first of them with the reason.

    Left out are agents that the settings choose and agents that run inside one that Watchfloor holds.
    """
    seen, tops, parts = state.seen, list[Agent](), 0
    for agent_id in state.live - state.held - state.press_observed:
        agent, had = state.agents[agent_id], seen.get(agent_id)
        if agent.control_level is not ControlLevel.OBSERVED or (had is not None and had.inside is not None):
            continue
        if had is not None and had.part:
            parts += 1
        else:
            tops.append(agent)
    tops.sort(key=lambda a: (a.process is None, a.agent_id))
    named = [
        {
            "id": a.agent_id,
            "name": "".join(x if x.isascii() and x.isprintable() else "?" for x in a.name[:60]),
            "why": why_left(a, options, is_default=is_default),
            "pid": a.process.pid if a.process else 0,
            "start_ticks": a.process.start_ticks if a.process else 0,
        }
        for a in tops[:NAMED]
    ]
    return {"agents": named, "n": len(tops), "parts": parts}


async def keep_naming(state: EngineState, guard: GuardClient, options: Options, *, is_default: bool) -> None:
    """Tell the guard which agents no panic stops: after each change, and at intervals, because the guard shows how old the list is.
    Forever.

    A new guard reads what the one before was told, until it gets a newer list.
    """
    told: dict[str, Any] | None = None
    told_at = 0.0
    while True:
        await wait_beat(LOOK_S)
        if not state.sighted:
            continue  # no source has looked yet: no agent seen does not mean that none runs
        found = left_alone(state, options, is_default=is_default)
        if told == found and time.monotonic() - told_at < AGAIN_S:
            continue
        try:
            await asyncio.to_thread(name, guard, found)
            told, told_at = found, time.monotonic()
        except ConsoleError as error:
            log.warning("the guard does not know the observed agents: %s", error)
            told = None


def name(guard: GuardClient, found: dict[str, Any]) -> None:
    """In lines that the guard takes; the first makes it forget what it was told before."""
    agents = found["agents"]
    for start in range(0, max(1, len(agents)), LINE):
        is_last = start + LINE >= len(agents)
        guard.call("unheld", **(found | {"agents": agents[start : start + LINE], "more": start > 0, "last": is_last}))


async def keep_telling(state: EngineState, guard: GuardClient, options: Options, *, is_default: bool) -> None:
    """Tell the guard which observed agents a panic signals: after each change, and a new guard at once. Runs forever."""
    told: tuple[int, list[dict[str, Any]]] | None = None  # the first word is always said: the list on disk may be of other settings
    while True:
        await wait_beat(LOOK_S)
        chosen = reachable(options, is_default=is_default, agents=[state.agents[i] for i in sorted(state.live)])
        if not chosen and told is not None and not told[1]:
            state.kill_observed, state.press_observed = set(), set()
            continue
        found = [one for one in await asyncio.to_thread(lambda c=chosen: [proof_of(a) for a in c]) if one is not None]  # type: ignore[misc]
        state.kill_observed = {AgentId(str(one["id"])) for one in found}
        state.press_observed = state.kill_observed if options.panic.include_observed else set()
        try:
            pid = int((await asyncio.to_thread(guard.call, "status")).get("pid", 0))
            # Another pid is a successor, and nothing proves that it has read the list yet.
            if told != (pid, found):
                await asyncio.to_thread(tell, guard, found, in_panic=options.panic.include_observed)
                told = (pid, found)
        except ConsoleError as error:
            log.warning("the guard does not know which observed agents a kill includes: %s", error)
            told = None


def tell(guard: GuardClient, found: list[dict[str, Any]], *, in_panic: bool = True) -> None:
    """Send the list in lines that the guard takes; the first line replaces what it knew.

    ``in_panic``: whether a panic signals them too. A guard of an older version does not know the others and does not get them.
    """
    for start in range(0, max(1, len(found)), LINE):
        rows = found[start : start + LINE]
        agents, named = (rows, []) if in_panic else ([], rows)
        guard.call("seen", agents=agents, named=named, more=start > 0, last=start + LINE >= len(found))
