"""Steps of forbidden sequences: on record, in the ledger, and the network tightened, before the call that takes one is answered."""

from __future__ import annotations

import asyncio

from console.domain.calls.lineage import Mark
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.errors import ConsoleError
from console.domain.network import STRICTEST, Sensitivity
from console.enforcement.lineages import nodes_of
from console.ledger.sessions import Tightening
from console.ledger.store import Ledger
from console.services.fleet.core import Core, now
from console.services.records.record_writer import Scribe

SWITCH_S = 30.0
"""How long established flows may take to end."""


class Tainting:
    """Carries out ``KeepMarks``."""

    __slots__ = ("_core", "_scribe")

    def __init__(self, core: Core, scribe: Scribe) -> None:
        self._core, self._scribe = core, scribe

    async def keep(self, command: c.KeepMarks) -> None:
        """1. audit, 2. ledger, 3. the ratchet, 4. the network is really cut; only then may the call go on."""
        try:
            await self._write(command)
            why_not = ""
        except ConsoleError as error:
            why_not = f"no record of the step, no call: {error}"
        if command.contexts:
            why_not = await self._tighten(command) or why_not
        core = self._core
        core.post(e.MarksKept(*now(), command.agent_id, command.request_id, command.request, command.decision, command.marks, why_not))

    async def _write(self, command: c.KeepMarks) -> None:
        scribe = self._scribe
        for mark in command.marks:
            data = {"pattern": mark.pattern, "step": mark.step, "value": mark.value[:100], "session": mark.context_id, "root": mark.root_id}
            what = f"{mark.pattern}: {mark.step}: {mark.text}"[:400]
            record = c.Record(f"agent:{mark.agent_id}", "sequence.step", what, verdict="allow", agent_id=mark.agent_id, data=data)
            await asyncio.to_thread(scribe.record_first, record)
        await asyncio.to_thread(scribe.ledger.add_marks, command.marks)
        if command.contexts:
            await asyncio.to_thread(scribe.ledger.tighten_sessions, command.contexts, self._tightening(command))

    async def _tighten(self, command: c.KeepMarks) -> str:
        """Whether disks refused or not: it only tightens. Gives why it does not hold; empty: it does."""
        core = self._core
        asker = core.state.agents.get(command.agent_id)
        under_way = core.switching.get(command.agent_id)  # of which it is not known yet whether it holds
        held = asker is not None and (asker.network_enforced or (under_way is not None and not under_way.done()))
        why = self._tightening(command).why
        core.post(e.Tightened(*now(), None, command.contexts, Sensitivity.PUBLIC, STRICTEST, why))
        meant = [i for i in core.state.live if core.state.agents[i].context_id in command.contexts]
        waiting = {task for i in meant if (task := core.switching.get(i)) is not None and not task.done()}
        if waiting:
            await asyncio.wait(waiting, timeout=SWITCH_S)
        asker = core.state.agents.get(command.agent_id)
        if held and asker is not None and not asker.network_enforced:
            return "its network could not be cut, which this step asks for"
        return ""

    def _tightening(self, command: c.KeepMarks) -> Tightening:
        first = command.marks[0] if command.marks else None
        step = f", step {first.step!r} taken" if first is not None else " begun"
        why = f"forbidden sequence {first.pattern if first is not None else '(unnamed)'}{step} by {command.agent_id}"
        return Tightening(STRICTEST, why, "sequence", f"agent:{command.agent_id}", now()[0])


def kept_lineages(ledger: Ledger) -> tuple[tuple[Mark, ...], tuple[tuple[str, ...], ...]]:
    """What was done, and what joins those who did it. Raises ConsoleError."""
    links = dict.fromkeys(nodes_of(*link) for link in ledger.lineage_links())
    return tuple(ledger.marks()), tuple(links)
