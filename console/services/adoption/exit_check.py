"""Tell when an agent whose first process is gone has ended: not before the guard says that none of its processes is left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from console.domain.agent import AgentId
from console.domain.errors import ConsoleError
from console.killswitch.client.guard_client import GuardClient
from console.services.adoption.service import may_live
from console.services.fleet.core import Core, now
from console.services.notices.shown import Notice
from console.services.records.record_writer import Scribe

FIRST_REST_S = 0.01
STILL_S = 1.0
"""Seconds that the kernel may take to remove an ended process. After that, people get a notice."""
WORDS = "its first process has ended; others of its processes still run, or may run"


async def until_empty(
    core: Core, guard: GuardClient, scribe: Scribe, notice: Notice, agent_id: AgentId, is_held: Callable[[], bool]
) -> None:
    """Return once no process of the agent is left, or a kill has settled it."""
    # Without a PID namespace the agent's other processes may outlive its first one.
    rest, told = FIRST_REST_S, False
    while is_held() and agent_id in core.state.live:
        try:
            if not await asyncio.to_thread(may_live, guard, agent_id):
                return
        except ConsoleError:  # unknown is not ended
            pass
        if rest > STILL_S and not told:
            told = True
            scribe.event(agent_id, now()[0], "still running", WORDS)
            notice(f"{agent_id}: {WORDS}; watchfloor kill {agent_id} ends them")
        await asyncio.sleep(rest)
        rest = min(rest * 1.5, STILL_S * 2)
