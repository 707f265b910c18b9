"""What the remote kill file asks of this host, carried out: from the poller's thread straight to the guard, then to the engine."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import assert_never

from console.domain.engine import event as e
from console.domain.engine.command import Record
from console.domain.errors import Conflict, Killed, TimedOut, Unreachable
from console.domain.kill import has_receipt
from console.killswitch.client.guard_client import GuardClient
from console.remotekill.machine import Alarm, Effect, Latch, LeaseRenewed, LiftSoftStop, Released, SoftStop
from console.services.fleet.core import Core, now
from console.services.notices.shown import Notice
from console.services.rearm.service import latched_kills
from console.services.records.record_writer import Scribe
from console.services.stop.later_steps import RemoteChannel
from console.services.stop.service import StopDesk
from console.settings.places import Places


class RemoteEffects:
    """Called in the poller's thread; a ConsoleError makes the poller tell it again, so nothing is lost while the guard is away."""

    __slots__ = ("_core", "_scribe", "_guard", "_places", "_notice", "_remote", "_stop", "_lease")

    def __init__(
        self,
        core: Core,
        scribe: Scribe,
        guard: GuardClient,
        places: Places,
        notice: Notice,
        remote: RemoteChannel,
        stop: StopDesk,
        lease: str,
    ) -> None:
        """``lease``: "stop" when the guard is to freeze everything once this channel is silent for too long."""
        self._core, self._scribe, self._guard, self._places, self._notice = core, scribe, guard, places, notice
        self._remote, self._stop, self._lease = remote, stop, lease

    def __call__(self, effect: Effect) -> None:
        match effect:
            case Latch():
                self._obey(effect)
            case SoftStop(why):
                self._guard.call("soft_stop", on=True, why=why)
                self._core.post_from_thread(e.SoftStopChanged(*now(), why))
                self._notice(f"soft stop: {why}")
            case LiftSoftStop():
                self._guard.call("soft_stop", on=False, why="one good signed read")
                self._core.post_from_thread(e.SoftStopChanged(*now(), ""))
                self._notice("the soft stop is over: one good signed read of the kill file", "info")
            case LeaseRenewed(seconds):
                if self._lease == "stop":
                    self._guard.call("lease", seconds=seconds)
            case Alarm(text):
                self._scribe.record(Record("poller", "remote.alarm", text, must=True))
                self._notice(f"remote kill file: {text}")
            case Released(orders):
                words = f"remote orders released: {', '.join(str(o)[:40] for o in orders)}"
                self._scribe.record(Record("poller", "remote.released", words, verdict="ok"))
                self._notice(f"{words}; this host stays killed until you rearm", "info")
            case _:
                assert_never(effect)

    def _obey(self, effect: Latch) -> None:
        loop = self._core.loop
        if loop is None or loop.is_closed():
            raise Killed("the supervisor is ending", "")
        future = asyncio.run_coroutine_threadsafe(
            obey(self._core, self._guard, self._places.guard_dir, self._remote, self._stop, effect), loop
        )
        try:
            future.result(10)
        except TimeoutError as error:
            raise Killed("the kill is not acknowledged yet", "") from error


# --- A remote order, obeyed: pressed, unless a kill that the guard holds in its latch now already is the answer to it.


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
    """Return the kills that the guard holds now, from the guard itself: this process may not know of a rearm yet.

    A mark such as ``latch-unreadable`` answers no order, because no kill is confirmed under it.
    """
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
