"""Adoption by an operator: candidates with reasons, the record, then the guard's move; and the watch for the end of who was adopted."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from console.api.agents import adopt as v
from console.domain.agent import Agent, AgentId, ProcessIdentity
from console.domain.engine import event as e
from console.domain.engine.command import Record
from console.domain.errors import Conflict, ConsoleError, TimedOut, Unreachable
from console.domain.ids import ControlLevel
from console.killswitch.client.guard_client import GuardClient
from console.sandbox.processes import start_ticks
from console.services.alerts.owner_notes import open_for_owner
from console.services.daemons.service import DaemonService
from console.services.fleet.core import Core, now, wait_beat
from console.services.notices.shown import Notice
from console.services.records.record_writer import Scribe

DESCRIBED = 20
LOOK_S = 1.0
EMPTY_LOOKS = 2
Kind = Literal["itself", "descendant", "orphan"]


class AdoptDesk:
    """What the operator asks; the guard judges and moves."""

    __slots__ = ("_notice", "_core", "_scribe", "_guard", "_daemons", "_state_dir", "_look_at_guard")

    def __init__(
        self,
        core: Core,
        scribe: Scribe,
        guard: GuardClient,
        daemons: DaemonService,
        state_dir: Path,
        notice: Notice,
        look_at_guard: Callable[[], Awaitable[None]],
    ) -> None:
        self._core, self._scribe, self._guard, self._daemons, self._state_dir = core, scribe, guard, daemons, state_dir
        self._notice, self._look_at_guard = notice, look_at_guard

    def _agent(self, agent_id: str) -> Agent:
        return self._core.state.agents[self._core.agent_or_404(agent_id)]

    def _why_not(self, agent: Agent) -> str:
        """Return why this row cannot be adopted, whatever its process is; empty: it can."""
        if not agent.state.is_live:
            return "it has ended"
        if agent.control_level is not ControlLevel.OBSERVED:
            return f"it is {agent.control_level} already"
        if agent.container_id:
            return "it lives in a container: what runs that container holds it"
        if agent.process is None:
            return "its source does not know for certain which process it is"
        if self._core.state.killed:
            return "everything was stopped: rearm first"
        return ""

    async def candidates(self, agent_id: str, caller_pid: int) -> v.CandidatesView:
        """Which process it is, who would come along, and why any of them may not. NotFound."""
        agent = self._agent(agent_id)
        view = v.CandidatesView(agent=agent.agent_id, name=agent.name, why_not=self._why_not(agent))
        if view.why_not or agent.process is None:
            return view
        first = await self._examine(agent.process.pid, agent.process.start_ticks, caller_pid, agent.agent_id)
        view.candidates = [_candidate(first, "itself")]
        view.why_not = view.candidates[0].why_not
        await self._daemons.refresh()
        view.daemons = self._daemons.around({agent.agent_id})
        around: list[tuple[Kind, list[int], str]] = [("orphan", *one) for one in zip(first["orphans"], first["orphans_by"], strict=False)]
        view.descendants, view.orphans = int(first.get("descendants_n", 0)), int(first.get("orphans_n", 0))
        along = first["descendants"][: max(DESCRIBED // 2, DESCRIBED - len(around))]  # what is left outside is shown in any case
        for kind, (pid, ticks), by in [*(("descendant", one, "") for one in along), *around][:DESCRIBED]:
            view.candidates.append(_candidate(await self._examine(pid, ticks, caller_pid), kind, by))
        return view

    async def _examine(self, pid: int, ticks: int, caller_pid: int, around: str = "") -> dict[str, Any]:
        """``around``: the agent's id, to look at what is around the process; on a busy host that takes seconds."""
        spare = [p for p in (os.getpid(), caller_pid) if p > 1]
        asked: dict[str, Any] = {"pid": pid, "start_ticks": ticks, "spare": spare, "around": around}
        return await asyncio.to_thread(self._guard.call, "adoptable", **asked)

    async def adopt(self, body: v.AdoptBody, by: str, caller_pid: int) -> v.AdoptedView:
        """1. it is what was shown, 2. the record, 3. the guard's move, 4. its owner's folder, 5. it is believed.

        NotFound, Conflict, Denied, NotRecorded ...
        """
        agent = self._agent(body.agent)
        if why := self._why_not(agent):
            raise Conflict(f"Agent {agent.agent_id} is not adopted: {why}.", "watchfloor fleet shows its state.")
        process = ProcessIdentity(body.pid, body.start_ticks)
        if agent.process != process:
            raise Conflict(f"Agent {agent.agent_id} is not the process that was shown.", "Look at the candidates again.")
        what = f"adopt {agent.agent_id}: process {body.pid}, {body.exe[:200]}, uid {body.uid}" + (f", {body.reason}" if body.reason else "")
        data = {
            "pid": body.pid,
            "start_ticks": body.start_ticks,
            "exe": body.exe[:300],
            "uid": body.uid,
            "also": [o.pid for o in body.also],
        }
        record = Record(by, "adopt", what, verdict="allow", agent_id=agent.agent_id, data=data)
        await asyncio.to_thread(self._scribe.record_first, record)
        try:
            done = await asyncio.to_thread(self._move, body, agent.agent_id, by, caller_pid)
        except ConsoleError as error:
            # Without an answer it may have been adopted all the same: "failed" would be a guess.
            verdict = "unknown" if isinstance(error, TimedOut | Unreachable) else "failed"
            self._scribe.record(
                Record(by, "adopt.refused", f"{agent.agent_id}: {error}"[:1000], verdict=verdict, agent_id=agent.agent_id, must=True)
            )
            raise
        found = {k: done[k] for k in ("moved", "left", "left_n", "best_effort", "frozen")}
        found |= await asyncio.to_thread(self._open_for_owner, agent.agent_id, process, body.uid, by)
        core = self._core
        core.post(e.Adopted(*now(), agent.agent_id, process, int(done["moved"]), str(done["best_effort"]), by))
        with suppress(ConsoleError):  # the follower looks again by itself
            await self._look_at_guard()  # a look in the middle of it saw the agent frozen
        await core.saved()
        await self._daemons.tell()  # a kill may follow at once: the guard knows session and daemon by then
        return v.AdoptedView(agent=agent.agent_id, orphans=len(done["orphans"]), **found)

    def _open_for_owner(self, agent_id: AgentId, process: ProcessIdentity, uid: int, by: str) -> dict[str, str]:
        """It is adopted with or without: what cannot be had is said."""
        try:
            return {"owner_folder": str(open_for_owner(self._state_dir, agent_id, process, uid, by))}
        except (OSError, ConsoleError) as error:
            why = f"why a budget stops it cannot be left where its owner can read it: {error}"[:500]
            self._notice(f"{agent_id}: {why}")
            return {"owner_why_not": why}

    def _move(self, body: v.AdoptBody, agent_id: AgentId, by: str, caller_pid: int) -> dict[str, Any]:
        return self._guard.call(
            "adopt",
            agent_id=agent_id,
            pid=body.pid,
            start_ticks=body.start_ticks,
            exe=body.exe,
            uid=body.uid,
            also=[number for one in body.also for number in (one.pid, one.start_ticks)],
            spare=[p for p in (os.getpid(), caller_pid) if p > 1],
            by=by,
        )


def _candidate(found: dict[str, Any], kind: Kind, by: str = "") -> v.Candidate:
    return v.Candidate(
        pid=int(found["pid"]),
        start_ticks=int(found["start_ticks"]),
        kind=kind,
        by=by,
        exe=str(found["exe"]),
        uid=found["uid"],
        command=str(found["cmdline"]),
        cgroup=str(found["cgroup"]),
        why_not=str(found["why_not"]),
    )


def lives(guard: GuardClient, agent: Agent) -> bool:
    """Whether the guard holds an adopted agent that has processes: it stays adopted across restarts. Blocks.

    A guard that does not say leaves it to what the kernel says of its first process.
    """
    try:
        return may_live(guard, agent.agent_id)
    except ConsoleError:
        return _is_there(agent)


def may_live(guard: GuardClient, agent_id: AgentId) -> bool:
    """Ask the guard alone whether processes of the agent may live. Raises ConsoleError when it does not answer or does not know the
    agent."""
    return bool(guard.call("procs", agent_id=agent_id).get("alive", True))


def _is_there(agent: Agent) -> bool:
    """Return whether the agent's process is there. One that cannot be checked may be there."""
    try:
        return agent.process is not None and start_ticks(agent.process.pid) == agent.process.start_ticks
    except ProcessLookupError:
        return False
    except OSError:
        return True


async def keep_adopted(core: Core, guard: GuardClient) -> None:
    """Report the end of adopted agents. No supervisor is their parent, so the kernel does not report it. Runs forever."""
    state, empty = core.state, dict[AgentId, int]()
    while True:
        await wait_beat(LOOK_S)
        ids = sorted(i for i in state.held if state.agents[i].control_level is ControlLevel.ADOPTED)
        for agent_id in ids:
            try:
                alive = await asyncio.to_thread(may_live, guard, agent_id)
            except ConsoleError:  # its first process may have ended, and others of it not: unknown is not the end
                alive = True
            empty[agent_id] = 0 if alive else empty.get(agent_id, 0) + 1
            if empty[agent_id] >= EMPTY_LOOKS:
                core.post(e.AgentExited(*now(), agent_id, None))
        empty = {i: n for i, n in empty.items() if i in ids}
