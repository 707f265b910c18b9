"""The operator's passphrase, as asked over operator.sock: the guard keeps and checks it; here it is judged who may, and recorded."""

from __future__ import annotations

import asyncio

from console.api import rearm as rm
from console.domain.engine.command import Record
from console.domain.errors import ConsoleError, Denied, UsageProblem
from console.domain.ids import ControlLevel
from console.domain.words import counted
from console.killswitch.client.guard_client import GuardClient
from console.services.fleet.core import Core
from console.services.notices.shown import Notice
from console.services.records.record_writer import Scribe
from console.services.routes.request_identity import Caller
from console.services.stop.service import StopDesk
from console.settings.places import Places


class Passphrases:
    """Whether one is set, and its change."""

    __slots__ = ("_core", "_scribe", "_guard", "_places", "_notice", "_stop")

    def __init__(self, core: Core, scribe: Scribe, guard: GuardClient, places: Places, notice: Notice, stop: StopDesk) -> None:
        self._core, self._scribe, self._guard, self._places, self._notice, self._stop = core, scribe, guard, places, notice, stop

    async def view(self, *notes: str) -> rm.PassphraseView:
        """Whether one is set, by the guard's word."""
        how = dict((await asyncio.to_thread(self._guard.call, "status")).get("rearm") or {})
        state = how.get("passphrase") if how.get("passphrase") in ("set", "not_set", "broken") else "unknown"
        why, wrong, wait = str(how.get("why", "")), int(how.get("wrong", 0)), float(how.get("wait_s", 0.0))
        return rm.PassphraseView(passphrase=state, why=why, wrong=wrong, wait_s=wait, notes=list(notes))  # type: ignore[arg-type]

    async def change(self, body: rm.PassphraseBody, caller: Caller, by: str) -> rm.PassphraseView:
        """Sets, changes or resets it: on record first, and every refusal too. Nothing secret is in any of these words."""
        claimed = body.operator.encode("ascii", "replace").decode()[:60]
        name = f"{claimed or 'unnamed'} (uid {caller.uid}, pid {caller.pid})"
        data = {"operator": body.operator, **caller.as_data()}
        try:
            if body.action == "reset":
                self._check_owner(caller)
            elif not body.new:
                raise UsageProblem("There is no new passphrase.", "Type one of at least 8 characters.")
            words = f"the passphrase for rearm is {'reset' if body.action == 'reset' else 'set'}"
            await asyncio.to_thread(self._scribe.record_first, Record(by, f"passphrase.{body.action}", words, verdict="allow", data=data))
            if body.action == "set":
                await asyncio.to_thread(self._guard.call, "passphrase", new=body.new, old=body.old, by=name)
                return await self.view(*self._sighted())
            answer = await asyncio.to_thread(self._guard.call, "passphrase", reset=True, kill_id=body.kill_id, by=name)
        except ConsoleError as error:
            words = f"{body.action} of the passphrase was refused: {error.what}"[:500]
            self._scribe.record(Record(by, "passphrase.refused", words, verdict="refused", data=data, must=True))
            raise
        if answer.get("while_killed"):
            await self._stop.note_on_latch(f"the passphrase for rearm was reset by uid {caller.uid} while this was latched")
        words = f"the passphrase for rearm was reset by uid {caller.uid}"
        self._notice(words)
        return await self.view(words)

    def _check_owner(self, caller: Caller) -> None:
        if caller.uid != self._places.state_dir.stat().st_uid:
            raise Denied(
                "Only the owner of the state directory resets the passphrase.", f"Run it as the owner of {self._places.state_dir}."
            )
        if not caller.has_terminal:
            raise Denied("A passphrase is reset only at a terminal.", "Run watchfloor secrets passphrase reset in one.")

    def _sighted(self) -> list[str]:
        """Agents that were started before its folder was there have not had it hidden from them."""
        state = self._core.state
        live = [i for i in state.live if state.agents[i].control_level is ControlLevel.MANAGED]
        if not live or self._places.is_default:
            return []
        runs = "runs" if len(live) == 1 else "run"
        return [f"{counted(len(live), 'managed agent')} {runs} since before and may be able to read its file: start each again"]
