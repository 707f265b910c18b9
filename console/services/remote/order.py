"""A remote order, obeyed: pressed, unless a kill that the guard holds in its latch now already is the answer to it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from console.domain.errors import Conflict, TimedOut, Unreachable
from console.killswitch.client import GuardClient
from console.killswitch.doubts import has_receipt
from console.remotekill.machine import Latch
from console.services.fleet.core import Core
from console.services.rearm.service import latched_kills
from console.services.stop.later_steps import RemoteChannel
from console.services.stop.service import StopDesk


async def obey(core: Core, guard: GuardClient, guard_dir: Path, remote: RemoteChannel, stop: StopDesk, effect: Latch) -> None:
    """Presses, unless it is the order this very host has just written or already obeyed, and that kill still holds.

    A guard that does not answer is pressed past: twice is better than never.
    """
    order = str(effect.order)
    async with stop.turn:
        held = await _held(guard, guard_dir)
        own = order.rsplit(":", 1)[-1] in remote.own_documents
        if held and (own or effect.remembered or any(stop.orders.get(kill_id) == order for kill_id in held)):
            return
        latest = next((r for r in stop.receipts() if r.scope == "all"), None)
        if latest is not None and latest.kill_id in held and latest.complete and not core.state.live:
            stop.orders[latest.kill_id] = order
            await stop.answer(order, latest)
            return
        await stop.press(None, effect.reason or "remote order", "remote", order)


async def _held(guard: GuardClient, guard_dir: Path) -> set[str]:
    """The kills that the guard holds now, by its own word: what this process believes may be older than a rearm. A mark such as
    ``latch-unreadable`` answers no order: nobody has proven anything under it."""
    try:
        status = await asyncio.to_thread(guard.call, "status")
    except (Unreachable, TimedOut):  # unknown is not held: pressed, if need be without the guard
        return set()
    if not status.get("latched"):
        return set()
    try:
        kills = await asyncio.to_thread(latched_kills, guard_dir, status)
    except Conflict:  # the list on disk cannot be read: pressed again, and proven
        return set()
    return {kill_id for kill_id in kills if has_receipt(kill_id)}
