"""What a running agent reaches: its portal and its container's networks, taken and given back, one change at a time, and verified."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from console.domain.agent import Agent, AgentId, AgentState
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.errors import ConsoleError
from console.domain.network import Narrowing, NetworkMode
from console.egress.service import Egress
from console.killswitch.client.guard_client import GuardClient
from console.sandbox.containers.network_cut import cut_container, interfaces, join_container
from console.sandbox.interface import Prepared, Sandbox
from console.services.fleet.core import Core, now
from console.services.notices.shown import Notice
from console.services.records.record_writer import Scribe

PORTAL = "http://127.0.0.1:3128"
SHARED = "it shares the host's network: restarting it in a sandbox would be needed"


async def _nothing() -> None:
    """There is nothing to do meanwhile."""


@dataclass(slots=True)
class Running:
    """What we hold of a launched agent."""

    sandbox: Sandbox
    prepared: Prepared
    pidfd: int | None = None


class Cutter:
    """Whatever asks, a change looks at what holds at its own turn: so the last word is the engine's, not the slowest thread's."""

    __slots__ = ("narrowings", "_turns", "_core", "_scribe", "_guard", "_egress", "_engine", "_notice", "_running")

    def __init__(
        self, core: Core, scribe: Scribe, guard: GuardClient, egress: Egress, engine: str, notice: Notice, running: dict[AgentId, Running]
    ) -> None:
        self._core, self._scribe, self._guard, self._egress = core, scribe, guard, egress
        self._engine, self._notice, self._running = engine, notice, running
        self.narrowings: dict[AgentId, Narrowing] = {}
        """What agents' types take away from the allowlist."""
        self._turns: defaultdict[AgentId, asyncio.Lock] = defaultdict(asyncio.Lock)

    def _agent(self, agent_id: AgentId) -> Agent:
        return self._core.state.agents[agent_id]

    # --- the portal

    async def open_portal(self, agent_id: AgentId, prepared: Prepared) -> str:
        """Opens it for an agent that may have one now; why it has none, or empty. Raises ConsoleError, OSError."""
        async with self._turns[agent_id]:
            return await self._open(agent_id, prepared)

    async def _open(self, agent_id: AgentId, prepared: Prepared) -> str:
        egress = self._egress
        if not self._agent(agent_id).effective_mode.has_portal or agent_id in egress.attached():
            return ""
        available = egress.available()
        if not available.ok:
            return f"no destination can be reached: Envoy is not available, because {available.reason}"
        narrowing, level = self.narrowings.get(agent_id), self._agent(agent_id).sensitivity
        await asyncio.to_thread(
            egress.attach, agent_id, prepared.pid, prepared.start_ticks, prepared.userns, prepared.portal_door, narrowing, level
        )
        await asyncio.to_thread(egress.classify, agent_id, self._agent(agent_id).sensitivity)  # it may have risen meanwhile
        if not self._agent(agent_id).effective_mode.has_portal:  # tightened while it was opened
            await asyncio.to_thread(egress.detach, agent_id)
        return ""

    async def reopen(self, agent_id: AgentId) -> None:
        """A relay died, or Envoy is there only now: the portal is opened again, if the agent still may use it."""
        state = self._core.state
        agent, running = state.agents.get(agent_id), self._running.get(agent_id)
        if agent is None or running is None or not agent.state.is_live or state.killed or state.soft_stop or not running.prepared.netns:
            return
        try:
            note = await self.open_portal(agent_id, running.prepared)
        except (ConsoleError, OSError) as error:
            note = f"its portal could not be opened again: {error}"
        if note:
            self._notice(f"{agent_id}: {note}")

    # --- the ratchet

    async def switch(self, command: c.SwitchNetwork) -> None:
        """Restricts a running agent, and looks from outside whether it holds; what cannot be enforced is said, never pretended."""
        agent, running = self._agent(command.agent_id), self._running.get(command.agent_id)
        if running is None and agent.state is AgentState.STARTING:
            return  # the launch sees the stricter mode before it opens the gate, and gives up
        ledger, at = self._scribe.ledger, now()[0]
        keep = partial(ledger.restrict_mode, agent.context_id, command.mode, command.why[:500], at, cause="switch", by="supervisor")
        self._scribe.job(keep)
        async with self._turns[command.agent_id]:
            began = time.monotonic()
            enforced, note = False, SHARED
            if running is not None:
                try:
                    enforced, note = await self._restrict(agent, running, command.mode)
                except (ConsoleError, OSError) as error:
                    enforced, note = False, f"whether its network is restricted is not known: {error}"
            ms = (time.monotonic() - began) * 1000
        self._core.post(e.NetworkSwitched(*now(), command.agent_id, command.mode, enforced, note, ms))

    async def _restrict(self, agent: Agent, running: Running, mode: NetworkMode) -> tuple[bool, str]:
        """(whether it was verified, why not). A container that had a bridge is loopback-only from here on, as every sandbox is."""
        if not running.prepared.netns:
            if not running.prepared.container_id:
                return False, SHARED
            if mode.has_portal:
                return await self._to_portal(agent.agent_id, running)
            return await self._disconnect(agent.agent_id, running)
        if mode.is_closed:
            await self._close_portal(agent.agent_id)
        else:
            await asyncio.to_thread(self._egress.classify, agent.agent_id, self._agent(agent.agent_id).sensitivity)
        left = await self._ways_out(agent.agent_id, running.prepared.pid, portal=mode.has_portal)
        return not left, left

    async def _to_portal(self, agent_id: AgentId, running: Running) -> tuple[bool, str]:
        """Freeze, disconnect, attach, thaw. Envoy learns of it meanwhile: that takes as long as the engine takes to disconnect."""
        ahead = asyncio.create_task(self._ready(agent_id))
        note = ""

        async def attach() -> None:
            nonlocal note
            running.prepared = replace(running.prepared, netns=True)
            await ahead
            try:
                note = await self._open(agent_id, running.prepared)
                if not note and agent_id in self._egress.attached():  # else it may have none now: isolated, or tightened further
                    note = f"its way out is {PORTAL} now, as HTTP proxy"
            except (ConsoleError, OSError) as error:
                note = f"it is cut, and got no portal: {error}"

        try:
            enforced, why = await self._disconnect(agent_id, running, attach)
        finally:
            await ahead
            if not running.prepared.netns:  # what was made ready for a portal is taken back
                await asyncio.to_thread(self._egress.detach, agent_id)
        if not enforced:
            return enforced, why
        left = await self._ways_out(agent_id, running.prepared.pid, portal=True)
        return not left, left or note

    async def _ready(self, agent_id: AgentId) -> None:
        with suppress(ConsoleError, OSError):  # whoever opens the portal is told
            await asyncio.to_thread(self._egress.ready, agent_id, self.narrowings.get(agent_id), self._agent(agent_id).sensitivity)

    async def _ways_out(self, agent_id: AgentId, pid: int, *, portal: bool) -> str:
        """What is left beside what its mode allows, seen from outside; empty: nothing. With ``lo`` alone there is no route to any host."""
        left = await asyncio.to_thread(interfaces, pid)
        relayed = agent_id in self._egress.relay_pids()
        if left != ["lo"] or (relayed and not portal):
            return f"a way out is left: {', '.join(left)[:100] if left != ['lo'] else 'its relay'}"
        return ""

    async def _close_portal(self, agent_id: AgentId) -> None:
        if agent_id in self._egress.attached():
            await asyncio.to_thread(self._egress.detach, agent_id)

    async def _disconnect(
        self, agent_id: AgentId, running: Running, meanwhile: Callable[[], Awaitable[None]] = _nothing
    ) -> tuple[bool, str]:
        """Freeze (cause: switch), disconnect, seen from outside, ``meanwhile``, thaw of that cause."""
        guard, prepared = self._guard, running.prepared
        await asyncio.to_thread(guard.freeze, [str(agent_id)], "switch", "supervisor")
        try:
            await asyncio.to_thread(cut_container, self._engine, prepared.container_id, prepared.pid)
        except ConsoleError as error:
            return False, str(error)  # it stays frozen: what could not be cut must not go on
        await meanwhile()
        await asyncio.to_thread(guard.thaw, [str(agent_id)], "switch", "supervisor")
        return True, ""

    # --- isolation by an operator, and the way back

    async def cut(self, agent_id: AgentId) -> None:
        """Takes everything away and looks, from outside, whether it is gone."""
        running = self._running.get(agent_id)
        if running is None:
            return
        async with self._turns[agent_id]:
            try:
                enforced, note = await self._cut(agent_id, running)
            except (ConsoleError, OSError) as error:
                enforced, note = False, f"whether its network is cut is not known: {error}"
        if self._agent(agent_id).isolated:
            self._core.post(e.EgressChanged(*now(), agent_id, enforced, note))

    async def _cut(self, agent_id: AgentId, running: Running) -> tuple[bool, str]:
        prepared = running.prepared
        if not prepared.netns:
            return await self._disconnect(agent_id, running) if prepared.container_id else (False, SHARED)
        await self._close_portal(agent_id)
        left = await self._ways_out(agent_id, prepared.pid, portal=False)
        return not left, left

    async def give(self, agent_id: AgentId) -> None:
        """Gives back what its mode allows at this moment."""
        running = self._running.get(agent_id)
        if running is None:
            return
        async with self._turns[agent_id]:
            agent = self._agent(agent_id)
            if agent.isolated or not agent.state.is_live:
                return
            try:
                enforced, note = await self._give(agent, running)
            except (ConsoleError, OSError) as error:
                enforced, note = True, f"its network could not be given back: {error}"
        self._core.post(e.EgressChanged(*now(), agent_id, enforced, note))

    async def _give(self, agent: Agent, running: Running) -> tuple[bool, str]:
        prepared, mode = running.prepared, agent.effective_mode
        if agent.cut_off:
            return prepared.netns, "it was started while isolated and has no network to give back: start it again"
        if prepared.netns:
            return True, await self._open(agent.agent_id, prepared)
        if not prepared.container_id:
            return False, " ".join(prepared.notes) or SHARED
        if not mode.is_restricted:
            await asyncio.to_thread(join_container, self._engine, prepared.container_id, prepared.pid)
        if self._agent(agent.agent_id).effective_mode is not mode:  # tightened meanwhile
            return await self._disconnect(agent.agent_id, running)
        return True, ""

    def forget(self, agent_id: AgentId) -> None:
        """It ended."""
        self._turns.pop(agent_id, None)
        self.narrowings.pop(agent_id, None)
