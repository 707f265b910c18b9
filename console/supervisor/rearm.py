"""The way back from a local kill: recorded first, refused while a remote order is latched, with new secrets."""

from __future__ import annotations

import asyncio

from console.domain import event as e
from console.domain.command import Record
from console.domain.errors import Conflict
from console.supervisor.core import now
from console.supervisor.parts import Parts


async def unlatch(parts: Parts, reason: str, by: str) -> None:
    """1. no remote order latched (the object is read again first), 2. record, 3. unlatch with the generation and every kill covered."""
    if parts.remote is not None:
        if parts.remote.poller is not None:
            parts.remote.poller.poll_now()
        await asyncio.sleep(0.5)
        if latched := parts.remote.latched():
            raise Conflict(
                f"A remote order is latched: {latched[0][:40]}.",
                "End it first with: watchfloor release --reason ... (signed), then rearm.",
            )
    status = await asyncio.to_thread(parts.guard.call, "status")
    kills = [str(k) for k in status.get("kills", [])]
    await asyncio.to_thread(parts.scribe.record_first, Record(by, "kill.rearm", f"rearm: {reason}", verdict="allow", data={"kills": kills}))
    await asyncio.to_thread(parts.guard.call, "unlatch", generation=status["generation"], kills=kills, by=by, reason=reason)
    if parts.remote is not None:
        parts.remote.generation = 0
        parts.remote.hosts = []
    parts.core.post(e.Rearmed(*now(), by, reason))
    parts.core.hub.publish("kill", {"state": "armed", "reason": reason, "by": by})
