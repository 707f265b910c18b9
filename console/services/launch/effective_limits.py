"""What each agent is bounded by, what its sandbox was found to be made of, and the processor time it used."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from console.domain.agent import AgentId
from console.domain.engine import event as e
from console.domain.errors import ConsoleError
from console.domain.sandbox import Given, GivenState
from console.sandbox.interface import LaunchSpec
from console.services.fleet.core import Core, now, wait_beat
from console.services.launch.usage_sampler import Processor
from console.services.records.record_writer import Scribe

if TYPE_CHECKING:
    from console.services.network.isolation import Running

MEASURE_S = 1.0
MOST_KNOWN = 2000
"""Agents kept in memory; the ledger has them all."""


class Bounding:
    """On the event loop's thread."""

    __slots__ = ("_given", "_processor", "_core", "_scribe", "_running")

    def __init__(self, core: Core, scribe: Scribe, running: Mapping[AgentId, Running]) -> None:
        self._core, self._scribe, self._running = core, scribe, running
        self._given: dict[AgentId, tuple[Given, ...]] = {}
        self._processor = Processor()

    @staticmethod
    def of_ticket(spec: LaunchSpec) -> dict[str, int]:
        """What the guard bounds the agent's cgroup by."""
        cpus = min(spec.cpus, float(os.cpu_count() or 1))
        return {"pids_max": spec.pids_max, "memory_max": spec.memory_max_bytes, "cpus_milli": int(cpus * 1000)}

    def keep(self, agent_id: AgentId, given: tuple[Given, ...]) -> None:
        """Remembers how hard its sandbox was found to be: it is shown after a restart too."""
        text = json.dumps([[g.name, g.state.value, g.words] for g in given])
        self._given[agent_id] = given
        for old in list(self._given)[:-MOST_KNOWN]:
            del self._given[old]
        self._scribe.job(partial(self._scribe.ledger.kv_set, _key(agent_id), text))

    async def given(self, agent_id: AgentId) -> tuple[Given, ...]:
        """As it was read back when the agent started; empty: not known, as of agents that were not started here."""
        if agent_id in self._given:
            return self._given[agent_id]
        text = await asyncio.to_thread(self._scribe.ledger.kv_get, _key(agent_id))
        try:
            return tuple(Given(str(name), GivenState(state), str(words)) for name, state, words in json.loads(text or "[]"))
        except (ValueError, TypeError):
            return ()

    async def why(self, running: Running) -> str:
        """Which limit of ours ended an agent; empty: none, or not known."""
        try:
            return await asyncio.to_thread(running.sandbox.ended_by, running.prepared)
        except (ConsoleError, OSError):
            return ""

    async def measure(self) -> None:
        """Processor time of running agents: the engine halts one that used up its own or its tree's."""
        core = self._core
        while True:
            await wait_beat(MEASURE_S)
            due = self._processor.due(core.state, {agent_id: running.prepared.pid for agent_id, running in self._running.items()})
            if not due:
                continue
            await asyncio.to_thread(self._processor.read, due)
            for agent_id, seconds in self._processor.news(core.state, due).items():
                if agent_id in self._running:
                    core.post(e.ProcessorUsed(*now(), agent_id, seconds))


def _key(agent_id: str) -> str:
    return f"hardening.{agent_id}"
