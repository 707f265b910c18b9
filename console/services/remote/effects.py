"""What the remote kill file asks of this host, carried out: from the poller's thread straight to the guard, then to the engine."""

from __future__ import annotations

import asyncio
from typing import assert_never

from console.domain import event as e
from console.domain.command import Record
from console.domain.errors import Killed
from console.killswitch.client import GuardClient
from console.remotekill.machine import Alarm, Effect, Latch, LeaseRenewed, LiftSoftStop, Released, SoftStop
from console.services.fleet.core import Core, now
from console.services.notices.shown import Notice
from console.services.records.record_writer import Scribe
from console.services.remote.order import obey
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
                self._notice(f"{words}; this host stays killed until rearm", "info")
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
            raise Killed("the press is not acknowledged yet", "") from error
