"""What the remote kill file asks of this host, carried out: from the poller's thread straight to the guard, then to the engine."""

from __future__ import annotations

import asyncio
from typing import assert_never

from console.domain import event as e
from console.domain.command import Record
from console.domain.errors import Killed
from console.remotekill.machine import Alarm, Effect, Latch, LeaseRenewed, LiftSoftStop, Released, SoftStop
from console.services.fleet.core import now
from console.services.stop.service import StopDesk
from console.supervisor.obeying import obey
from console.supervisor.parts import Parts


class RemoteEffects:
    """Called in the poller's thread; a ConsoleError makes the poller tell it again, so nothing is lost while the guard is away."""

    def __init__(self, parts: Parts, stop: StopDesk) -> None:
        self._parts, self._stop = parts, stop

    def __call__(self, effect: Effect) -> None:
        match effect:
            case Latch(order, reason, remembered):
                self._obey(str(order), reason, remembered)
            case SoftStop(why):
                self._parts.guard.call("soft_stop", on=True, why=why)
                self._parts.core.post_from_thread(e.SoftStopChanged(*now(), why))
                self._parts.notice(f"soft stop: {why}")
            case LiftSoftStop():
                self._parts.guard.call("soft_stop", on=False, why="one good signed read")
                self._parts.core.post_from_thread(e.SoftStopChanged(*now(), ""))
                self._parts.notice("the soft stop is over: one good signed read of the kill file", "info")
            case LeaseRenewed(seconds):
                if self._parts.options.remote.lease == "stop":
                    self._parts.guard.call("lease", seconds=seconds)
            case Alarm(text):
                self._parts.scribe.record(Record("poller", "remote.alarm", text, must=True))
                self._parts.notice(f"remote kill file: {text}")
            case Released(orders):
                words = f"remote orders released: {', '.join(str(o)[:40] for o in orders)}"
                self._parts.scribe.record(Record("poller", "remote.released", words, verdict="ok"))
                self._parts.notice(f"{words}; this host stays killed until rearm", "info")
            case _:
                assert_never(effect)

    def _obey(self, order: str, reason: str, remembered: bool) -> None:
        loop = self._parts.core.loop
        if loop is None or loop.is_closed():
            raise Killed("the supervisor is ending", "")
        future = asyncio.run_coroutine_threadsafe(obey(self._parts, self._stop, order, reason, remembered), loop)
        try:
            future.result(10)
        except TimeoutError as error:
            raise Killed("the press is not acknowledged yet", "") from error
