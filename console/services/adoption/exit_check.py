"""When an agent whose first process is gone has ended: not before the guard says that nobody of it is left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from console.domain.agent import AgentId
from console.domain.errors import ConsoleError
from console.killswitch.client import GuardClient
from console.services.adoption.service import may_live
from console.services.fleet.core import Core, now
from console.services.notices.shown import Notice
from console.services.records.record_writer import Scribe

FIRST_REST_S = 0.01
STILL_S = 1.0
"""So long the kernel may take to be done with what ended; beyond it people are told."""
WORDS = "its first process has ended, and others of it still run, or nobody can tell"


async def until_empty(
    core: Core, guard: GuardClient, scribe: Scribe, notice: Notice, agent_id: AgentId, is_held: Callable[[], bool]
) -> None:
    """Returns once nobody of it is left, or a kill has judged it. Without a PID namespace others may outlive its first process."""
    rest, told = FIRST_REST_S, False
    while is_held() and agent_id in core.state.live:
        try:
            if not await asyncio.to_thread(may_live, guard, agent_id):
                return
        except ConsoleError:  # nobody knows: that is not the end of it
            pass
        if rest > STILL_S and not told:
            told = True
            scribe.event(agent_id, now()[0], "still running", WORDS)
            notice(f"{agent_id}: {WORDS}; watchfloor kill {agent_id} ends them")
        await asyncio.sleep(rest)
        rest = min(rest * 1.5, STILL_S * 2)
