"""How many processes each agent has, for the tree and for "what a press will do now": the guard is asked once for a hundred of them."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

from console.domain.agent import AgentId
from console.domain.errors import ConsoleError, NotFound, UsageProblem
from console.killswitch.client.guard_client import GuardClient
from console.services.fleet.core import Core
from console.services.notices.shown import Notice
from console.services.observe.unknown_agents import UNREACHED, missed

PERIOD_S = 5.0
FRESH_S = 0.3
"""Seconds for which a count is used again for the next question."""
ALONE = 200
"""Agents of one round that are asked for by name, because no answer for many held them: they are new, or unknown to the guard."""


class Counting:
    """On the loop's thread. Beside the heartbeat, never before it: a guard that is slow to count must not look like one that is gone."""

    __slots__ = ("_counted", "_anew", "_core", "_guard", "_notice", "_heartbeat_s")

    def __init__(self, core: Core, guard: GuardClient, notice: Notice, heartbeat_s: float) -> None:
        self._core, self._guard, self._notice, self._heartbeat_s = core, guard, notice, heartbeat_s
        self._counted: float | None = None
        """When the newest whole round began (monotonic)."""
        self._anew: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Forever. Between two rounds it is longer where heartbeats are rarer."""
        period = min(PERIOD_S, self._heartbeat_s / 4)
        while True:
            with suppress(ConsoleError):  # whoever beats the heart says so, and starts the guard again
                await self.count()
            await asyncio.sleep(period)

    async def anew(self, within_s: float) -> float | None:
        """Counts again and waits that long for it; how many seconds old the newest whole count is, None: there is none."""
        if self._counted is None or time.monotonic() - self._counted > FRESH_S:
            if self._anew is None or self._anew.done():  # of many who ask at once, and of a guard that is slow, one round
                self._anew = asyncio.create_task(self._count_quietly())
            await asyncio.wait({self._anew}, timeout=within_s)
        return None if self._counted is None else time.monotonic() - self._counted

    async def _count_quietly(self) -> None:
        with suppress(ConsoleError):
            await self.count()

    async def count(self) -> None:
        """One round. Raises ConsoleError when the guard does not answer."""
        began, state = time.monotonic(), self._core.state
        before = frozenset(state.held)  # those that begin meanwhile are for the next round
        known = await self._count_many() if before else set()
        left = sorted(before & state.held - known, key=lambda i: (state.best_effort.get(i) == UNREACHED, i))
        for agent_id in left[:ALONE]:
            await self._count_one(agent_id)
        self._counted = began

    async def _count_many(self) -> set[str]:
        """Ask the guard for many counts at once. Returns the agents that it knows."""
        known: set[str] = set()
        after: str | None = ""
        while after is not None:
            try:
                answer = await self._ask("counts", after=after)
            except UsageProblem:  # a guard of an earlier version, which outlived its supervisor: it is asked for each of them
                return set()
            doubts = answer.get("best_effort") or {}
            for agent_id, count in (answer.get("counts") or {}).items():
                known.add(agent_id)
                self._note(AgentId(agent_id), int(count), str(doubts.get(agent_id, "")))
            following = answer.get("next")
            after = following if isinstance(following, str) and following > after else None
        return known

    async def _count_one(self, agent_id: AgentId) -> None:
        try:
            answer = await self._ask("procs", agent_id=agent_id)
        except NotFound:
            await missed(self._core, self._guard, self._notice, agent_id)
            return
        except ConsoleError:
            return  # whether it runs is not known; what is shown stays
        self._note(agent_id, int(answer.get("count", 0)), str(answer.get("best_effort", "")))

    def _note(self, agent_id: AgentId, count: int, doubt: str) -> None:
        state = self._core.state
        if agent_id in state.held and (state.pids.get(agent_id), state.best_effort.get(agent_id, "")) != (count, doubt):
            state.pids[agent_id], state.best_effort[agent_id] = count, doubt
            self._core.dirty.add(agent_id)

    async def _ask(self, op: str, **fields: Any) -> dict[str, Any]:
        return await asyncio.to_thread(self._guard.call, op, **fields)
