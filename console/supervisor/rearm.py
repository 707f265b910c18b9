"""The way back from a local kill: recorded first, refused while a remote order is latched, with new secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from console.domain import event as e
from console.domain.command import Record
from console.domain.errors import Conflict
from console.killswitch.durable import Damaged, read_sealed
from console.supervisor.core import now
from console.supervisor.parts import Parts


async def unlatch(parts: Parts, reason: str, by: str, cancel_remote: Callable[[], Awaitable[None]]) -> None:
    """1. no remote order latched (the object is read again first), 2. record, 3. unlatch with the generation and every kill covered."""
    if parts.remote is not None:
        # The object is read again for this very question: an own kill may not have come round through the poller yet.
        standing = await asyncio.to_thread(parts.remote.standing)
        if latched := [order for order in (*parts.remote.latched(), standing) if order]:
            raise Conflict(
                f"A remote order is latched: {latched[0][:40]}.",
                "End it first with: watchfloor release --reason ... (signed), then rearm.",
            )
    status = await asyncio.to_thread(parts.guard.call, "status")
    kills = await asyncio.to_thread(latched_kills, parts, status)
    await cancel_remote()
    await asyncio.to_thread(parts.scribe.record_first, Record(by, "kill.rearm", f"rearm: {reason}", verdict="allow", data={"kills": kills}))
    await asyncio.to_thread(parts.guard.call, "unlatch", generation=status["generation"], kills=kills, by=by, reason=reason)
    if parts.remote is not None:
        parts.remote.generation = 0
        parts.remote.hosts = []
    parts.core.post(e.Rearmed(*now(), by, reason))
    parts.core.hub.publish("kill", {"state": "armed", "reason": reason, "by": by})


def latched_kills(parts: Parts, status: dict[str, Any]) -> list[str]:
    """Every kill the latch holds. The guard shortens its status to one line of 4 KiB; then the latch on disk has them all."""
    kills = [str(k) for k in status.get("kills", [])]
    if int(status.get("kills_n", len(kills))) <= len(kills):
        return kills
    try:
        return [str(k) for k in (read_sealed(parts.places.guard_dir / "latch.json") or {})["kills"]]
    except (Damaged, OSError, KeyError, TypeError) as error:
        raise Conflict("The latch on disk cannot be read.", "Mend the state directory; it stays killed until then.") from error
