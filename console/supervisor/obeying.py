"""A remote order, obeyed: pressed, unless a kill that the guard holds in its latch now already is the answer to it."""

from __future__ import annotations

import asyncio

from console.domain.errors import Conflict, TimedOut, Unreachable
from console.killswitch.doubts import has_receipt
from console.services.stop.service import StopDesk
from console.supervisor.parts import Parts
from console.supervisor.rearm import latched_kills


async def obey(parts: Parts, stop: StopDesk, order: str, reason: str, remembered: bool) -> None:
    """Presses, unless it is the order this very host has just written or already obeyed, and that kill still holds.

    A guard that does not answer is pressed past: twice is better than never.
    """
    async with stop.turn:
        held = await _held(parts)
        own = parts.remote is not None and order.rsplit(":", 1)[-1] in parts.remote.own_documents
        if held and (own or remembered or any(stop.orders.get(kill_id) == order for kill_id in held)):
            return
        latest = next((r for r in stop.receipts() if r.scope == "all"), None)
        if latest is not None and latest.kill_id in held and latest.complete and not parts.core.state.live:
            stop.orders[latest.kill_id] = order
            await stop.answer(order, latest)
            return
        await stop.press(None, reason or "remote order", "remote", order)


async def _held(parts: Parts) -> set[str]:
    """The kills that the guard holds now, by its own word: what this process believes may be older than a rearm. A mark such as
    ``latch-unreadable`` answers no order: nobody has proven anything under it."""
    try:
        status = await asyncio.to_thread(parts.guard.call, "status")
    except (Unreachable, TimedOut):  # unknown is not held: pressed, if need be without the guard
        return set()
    if not status.get("latched"):
        return set()
    try:
        kills = await asyncio.to_thread(latched_kills, parts, status)
    except Conflict:  # the list on disk cannot be read: pressed again, and proven
        return set()
    return {kill_id for kill_id in kills if has_receipt(kill_id)}
