"""Remove containers of agents that died while no supervisor ran, once everything about them is written.

A kill deletes no evidence. Nothing is removed

* while the kill switch blocks new agents,
* while a receipt is open,
* of an agent that the ledger does not call ended.

What a container had written is kept. What is known of the kill stays in ledger, receipt and case.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass

from console.domain.agent import AgentId
from console.domain.engine.command import Record
from console.domain.errors import ConsoleError
from console.enforcement.state import EngineState
from console.killswitch.client.guard_client import GuardClient
from console.sandbox.containers.left_containers import Left, LeftContainers
from console.services.fleet.core import Core, wait_beat
from console.services.records.record_writer import Scribe
from console.services.stop.service import StopDesk
from console.settings.options import Options
from console.settings.places import Places

log = logging.getLogger(__name__)
LOOK_S = 0.5
SOON_S = 10.0
"""The same while something stays that is not over yet, or could not be removed."""
AGAIN_S = 300.0
"""Between two looks when nothing happened."""


def is_over(state: EngineState, open_targets: frozenset[str], left: Left) -> bool:
    """Ours by the ledger (its id is the one we started), and nothing of its agent is open any more."""
    agent = state.agents.get(AgentId(left.agent_id))
    if agent is None or not left.container_id or agent.container_id != left.container_id:
        return False
    return not agent.state.is_live and agent.agent_id not in open_targets


@dataclass(frozen=True, slots=True)
class OrphanContainers:
    """Containers of this instance whose agents died while no supervisor ran."""

    core: Core
    guard: GuardClient
    scribe: Scribe
    places: Places
    options: Options
    stop: StopDesk

    async def keep_tidy(self) -> None:
        """Looks once at the start, after each rearm, and now and then. Forever."""
        state, due = self.core.state, 0.0
        while True:
            if state.killed:
                due = 0.0
            elif time.monotonic() >= due:
                # An open receipt may still need the container as evidence.
                await self.stop.settled()
                if not state.killed:
                    due = time.monotonic() + (SOON_S if await self.tidy() else AGAIN_S)
            await wait_beat(LOOK_S)

    async def tidy(self) -> bool:
        """One look; trouble is logged, and waits for the next. Whether one that is ours stays for now."""
        if not any(a.container_id for a in self.core.state.agents.values()):
            return False
        containers = LeftContainers(self.options.engine(), self.places.instance_id)
        try:
            found = await asyncio.to_thread(containers.find)
        except ConsoleError as error:
            log.info("no look at dead containers: %s", error)
            return True
        stays = False
        for left in found:
            # Asked again for each container: a panic may have come since the look began, and it deletes no evidence.
            if not self.core.state.killed and is_over(self.core.state, self._open_targets(), left):
                stays |= not await self._remove(containers, left)
            else:
                stays |= any(a.container_id == left.container_id for a in self.core.state.agents.values())
        return stays

    def _open_targets(self) -> frozenset[str]:
        return frozenset(t.agent_id for receipt in self.stop.receipts() if not receipt.complete for t in receipt.targets)

    async def _remove(self, containers: LeftContainers, left: Left) -> bool:
        words = f"{left.agent_id}: its dead container {left.container_id[:12]} is taken away; what it wrote is kept"
        try:
            record = Record(
                "supervisor", "container.removed", words, verdict="ok", agent_id=left.agent_id, data={"container": left.container_id}
            )
            # What acts is recorded first; if the log refuses, the container stays (decision 0009).
            await asyncio.to_thread(self.scribe.record_first, record)
            await asyncio.to_thread(containers.remove, left, self.places.output_dir / f"{left.agent_id}.log")
            # Last of the three: while the container exists the guard must be able to kill it.
            await asyncio.to_thread(self.guard.call, "forget", agent_id=left.agent_id)
        except ConsoleError as error:
            log.warning("the dead container of %s stays: %s", left.agent_id, error)
            return False
        return True
