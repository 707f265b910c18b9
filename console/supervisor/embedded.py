"""The embedded pair ends a while after its last client, if no agent lives, nothing is killed and no hook asks it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from console.services.hooks.installation import is_asked

if TYPE_CHECKING:
    from console.supervisor.compose import Supervisor


async def linger(supervisor: Supervisor) -> None:
    """Ends the supervisor when it is idle for ``options.linger_s`` seconds."""
    idle_since = time.monotonic()
    while True:
        await asyncio.sleep(1.0)
        core = supervisor.core
        own = [i for i in core.state.live if core.state.agents[i].control_level != "observed"]
        if own or core.hub.listeners or core.state.killed or core.state.soft_stop or core.launches:
            idle_since = time.monotonic()
        elif time.monotonic() - max(idle_since, supervisor.presence.at) > supervisor.options.linger_s:
            # Without a supervisor such a hook blocks every tool call of its program.
            if await asyncio.to_thread(is_asked, supervisor.places):
                idle_since = time.monotonic()
                continue
            supervisor.ended_idle = True
            supervisor.end.set()
            return
