"""The way back from a local kill: recorded first, refused while a remote order is latched, with new secrets."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from console.domain import event as e
from console.domain.command import Record
from console.domain.errors import Conflict
from console.domain.failpoints import failpoint
from console.killswitch.durable import Damaged, read_sealed
from console.supervisor.core import now
from console.supervisor.parts import Parts
from console.supervisor.stop import StopDesk

_KILL_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6,8}\Z")


async def unlatch(parts: Parts, stop: StopDesk, reason: str, by: str, kill_id: str) -> None:
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
    _check_proof(stop, kills, kill_id)
    await stop.cancel_remote()
    await asyncio.to_thread(parts.scribe.record_first, Record(by, "kill.rearm", f"rearm: {reason}", verdict="allow", data={"kills": kills}))
    failpoint("rearm.recorded")
    await asyncio.to_thread(parts.guard.call, "unlatch", generation=status["generation"], kills=kills, by=by, reason=reason)
    failpoint("rearm.unlatched")
    if parts.remote is not None:
        parts.remote.generation = 0
        parts.remote.hosts = []
    parts.core.post(e.Rearmed(*now(), by, reason))
    parts.core.hub.publish("kill", {"state": "armed", "reason": reason, "by": by})


def _check_proof(stop: StopDesk, kills: list[str], kill_id: str) -> None:
    """The newest kill of the latch is the one a person looked at, and it is proven: it struck whatever an older one had left.

    The order is the latch's own; wall clocks decide nothing. Marks such as ``latch-unreadable`` have no receipt.
    """
    real = [k for k in kills if _KILL_ID.match(k)]
    if not real:
        return
    if kill_id and kill_id != real[-1]:
        raise Conflict(f"The kill to release is {real[-1]}, not {kill_id[:64]!r}.", "Look at its receipt, then type its id.")
    receipt = stop.receipt(real[-1])
    if receipt is None or not receipt.complete:
        raise Conflict(f"The receipt of {real[-1]} is not complete yet.", "Wait for it, look at it, then rearm.")
    if not receipt.verified_zero:
        raise Conflict(f"The kill {real[-1]} is not proven: something may still run.", "watchfloor receipt show lists what; press again.")


def latched_kills(parts: Parts, status: dict[str, Any]) -> list[str]:
    """Every kill the latch holds. The guard shortens its status to one line of 4 KiB; then the latch on disk has them all."""
    kills = [str(k) for k in status.get("kills", [])]
    if int(status.get("kills_n", len(kills))) <= len(kills):
        return kills
    try:
        return [str(k) for k in (read_sealed(parts.places.guard_dir / "latch.json") or {})["kills"]]
    except (Damaged, OSError, KeyError, TypeError) as error:
        raise Conflict("The latch on disk cannot be read.", "Mend the state directory; it stays killed until then.") from error
