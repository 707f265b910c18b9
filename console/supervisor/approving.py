"""Carries out what the engine says of approvals: on disk and in the audit first, then told (promise 5)."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from console.domain import command as c
from console.domain import event as e
from console.domain.approval import Approval, ApprovalState, Grant
from console.domain.errors import ConsoleError
from console.domain.permission import Decision, Verdict
from console.killswitch.causes import boot_id
from console.ledger.store import Ledger
from console.supervisor.core import now
from console.supervisor.judging import Judge, Judged, NoRules

if TYPE_CHECKING:
    from console.supervisor.parts import Parts

log = logging.getLogger(__name__)


class Approving:
    """Effects of the engine's words on approvals. Each method is a task of the runner's."""

    def __init__(self, parts: Parts, judge: Judge | None = None) -> None:
        """``judge`` None: nobody knows the rules, so nothing is allowed."""
        self._parts, self.judge = parts, judge or NoRules()

    async def judged(self, command: c.JudgeCall) -> None:
        """The verdict of the rules in force, back into the engine."""
        core = self._parts.core
        agent = core.state.agents[command.agent_id]
        try:
            found = await asyncio.to_thread(self.judge.judge, agent, command.request)
        except (ConsoleError, OSError, ValueError, RecursionError) as error:
            found = Judged(Decision(Verdict.DENY, "policy", f"it could not be judged: {error}"))
        core.post(e.CallJudged(*now(), command.agent_id, command.request_id, command.request, found.decision, found.parts))

    async def keep(self, command: c.KeepApproval) -> None:
        """A new request, or what became of one without a human, into the ledger and the audit; then to every view."""
        parts, approval = self._parts, command.approval
        ledger = parts.scribe.ledger
        try:
            if command.was is None:
                await asyncio.to_thread(ledger.add_approval, approval, boot_id())
            else:
                await asyncio.to_thread(ledger.change_approval, approval, command.was)
        except ConsoleError as error:
            if command.was is None:
                parts.core.post(e.ApprovalBroke(*now(), approval.approval_id, str(error)))
            parts.notice(f"approval {approval.approval_id} could not be written down: {error}")
            return
        kind = "approval.asked" if command.was is None else f"approval.{approval.state}"
        what = approval.reason if command.was is None else approval.words
        by = f"agent:{approval.agent_id}" if command.was is None else "supervisor"
        parts.scribe.record(record_of(approval, by, kind, f"{approval.rule}: {what}", "ask" if command.was is None else "deny"))
        if command.was is None:
            parts.core.post(e.ApprovalKept(*now(), approval.approval_id))
        else:
            self.show(approval)

    async def use(self, command: c.UseApproval) -> None:
        """Audit, then the ledger's word that it was good and is over now; only then may the call go on."""
        parts, approval = self._parts, command.approval
        ok, why = False, "it is not open any more"
        try:
            used = replace(approval, state=ApprovalState.USED)
            entry = record_of(approval, f"agent:{approval.agent_id}", "approval.used", f"approved by {approval.decided_by}", "allow")
            await asyncio.to_thread(parts.scribe.record_first, entry)
            ok = await asyncio.to_thread(parts.scribe.ledger.change_approval, used, ApprovalState.APPROVED)
        except ConsoleError as error:
            why = f"not recorded: {error}"
        parts.core.post(e.ApprovalUsed(*now(), approval.agent_id, approval.approval_id, command.request_id, ok, "" if ok else why))

    async def end_grants(self) -> None:
        """What sessions were given is over."""
        try:
            await asyncio.to_thread(self._parts.scribe.ledger.end_grants)
        except ConsoleError as error:
            self._parts.notice(f"what was approved for sessions could not be taken back on disk: {error}", "red")

    def show(self, approval: Approval) -> None:
        """To every view: they ask for what they show."""
        data = {"id": approval.approval_id, "state": approval.state.value, "agent_id": approval.agent_id}
        self._parts.core.hub.publish("approval", data)


def open_approvals(ledger: Ledger) -> tuple[tuple[Approval, ...], tuple[Grant, ...]]:
    """What waits still, and what sessions were given; what was asked before the host was started anew is void."""
    try:
        ledger.void_approvals("the host was started anew", boot_id())
        return tuple(ledger.open_approvals()), tuple(ledger.grants())
    except ConsoleError as error:
        # A disk that cannot be written stops no start: what waited is asked again, and given is nothing.
        log.warning("approvals could not be read: %s", error)
        return (), ()


def record_of(approval: Approval, by: str, kind: str, what: str, verdict: str) -> c.Record:
    """The audit's entry: what was bound, never the content itself beyond a short head."""
    data = {"approval_id": approval.approval_id, "digest": approval.digest, "tool": approval.request.tool[:100]}
    data |= {"argument": approval.request.argument[:400], "session": approval.context_id, "scope": approval.scope.value}
    return c.Record(by, kind, what, verdict=verdict, agent_id=approval.agent_id, data=data)
