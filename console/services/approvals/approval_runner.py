"""Carries out what the engine says of approvals: on disk and in the audit first, then told (promise 5)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from console.credentials.keyring_store import Store
from console.domain.agent import Agent
from console.domain.calls.approval import Approval, ApprovalState, Grant, digest_of
from console.domain.calls.permission import Decision, PermissionRequest, Verdict, rank_of
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.errors import ConsoleError
from console.killswitch.store.causes import boot_id
from console.ledger.calls import JudgedCall
from console.ledger.store import Ledger
from console.services.fleet.core import Core, now
from console.services.notices.shown import Notice
from console.services.policy.evaluate import Judge, Judged
from console.services.records.record_writer import Scribe

log = logging.getLogger(__name__)
AGAIN_S = 5.0
"""Between two tries of a disk that refuses to take something back."""
NOT_WHOLE = "what was kept of it is not the whole request"
UNDECIDED_MAX = 500
TRIM_EVERY = 50
"""New requests after which the number of stored, undecided requests is checked again."""

CALLS_S = 0.5


class Approving:
    """Effects of the engine's words on approvals. Each method is a task of the runner's."""

    __slots__ = ("_calls", "wanted", "_in_order", "_kept", "_core", "_scribe", "_keyring", "_notice", "_judge")

    def __init__(self, core: Core, scribe: Scribe, keyring: Store, notice: Notice, judge: Judge) -> None:
        self._core, self._scribe, self._keyring, self._notice, self._judge = core, scribe, keyring, notice, judge
        self._calls: list[JudgedCall] = []
        self.wanted: dict[str, Judged | None] = {}
        """Requests, by id, whose caller wants the whole result of the check: a call is executed exactly as it was checked then."""
        self._in_order = asyncio.Lock()
        """What became of a request is written after the request: asyncio's locks are given in the order they were asked for."""
        self._kept = 0

    async def judged(self, command: c.JudgeCall) -> None:
        """The verdict of the rules in force, back into the engine."""
        core = self._core
        agent = core.state.agents[command.agent_id]
        found = Judged(Decision(Verdict.DENY, "policy", "it could not be checked"))
        try:
            found = await asyncio.to_thread(self._judge.judge, agent, command.request)
        except (ConsoleError, OSError, ValueError, RecursionError) as error:
            found = Judged(Decision(Verdict.DENY, "policy", f"it could not be checked: {error}"))
        finally:
            # Whatever went wrong: whoever asked hears a denial, and does not wait for nothing.
            self._keep_call(agent, command.request, found)
            if command.request_id in self.wanted:
                self.wanted[command.request_id] = found
            event = e.CallJudged(*now(), command.agent_id, command.request_id, command.request, found.decision, found.parts)
            core.post(replace(event, matches=found.matches))

    def _keep_call(self, agent: Agent, request: PermissionRequest, found: Judged) -> None:
        """For later tries of other rules; many become one write."""
        redact = self._keyring.redactor.redact
        decision = found.decision
        call = JudgedCall(
            now()[0], agent.agent_id, agent.context_id, request.tool, redact(request.argument), request.cwd, decision.verdict, decision.rule
        )
        self._calls.append(call)
        if len(self._calls) == 1:
            asyncio.get_running_loop().call_later(CALLS_S, self._write_calls)

    def _write_calls(self) -> None:
        calls, self._calls = self._calls, []
        self._scribe.job(lambda: self._scribe.ledger.add_calls(calls))

    async def keep(self, command: c.KeepApproval) -> None:
        """A new request, or what became of one without a human, into the ledger and the audit; then to every view."""
        approval = command.approval
        try:
            async with self._in_order:
                await asyncio.to_thread(self._write, command)
        except ConsoleError as error:
            if command.was is None:
                self._core.post(e.ApprovalBroke(*now(), approval.approval_id, str(error)))
            self._notice(f"approval {approval.approval_id} could not be written down: {error}")
            return
        kind = "approval.asked" if command.was is None else f"approval.{approval.state}"
        what = approval.why if command.was is None else f"{approval.rule}: {approval.words}"
        by = f"agent:{approval.agent_id}" if command.was is None else "supervisor"
        self._scribe.record(record_of(approval, by, kind, what, "ask" if command.was is None else "deny"))
        if command.was is None:
            self._core.post(e.ApprovalKept(*now(), approval.approval_id))
        else:
            self.show(approval)

    def _write(self, command: c.KeepApproval) -> None:
        ledger = self._scribe.ledger
        if command.was is not None:
            ledger.change_approval(command.approval, command.was)
            return
        ledger.add_approval(_clean(command.approval, self._keyring.redactor.redact), boot_id())
        self._kept += 1
        if self._kept % TRIM_EVERY == 0:
            ledger.trim_approvals(UNDECIDED_MAX)

    async def use(self, command: c.UseApproval) -> None:
        """Audit, then the ledger's word that it was good and is over now; only then may the call go on."""
        approval = command.approval
        ok, why = False, "it is not open any more"
        try:
            used = replace(approval, state=ApprovalState.USED)
            entry = record_of(approval, f"agent:{approval.agent_id}", "approval.used", f"approved by {approval.decided_by}", "allow")
            await asyncio.to_thread(self._scribe.record_first, entry)
            ok = await asyncio.to_thread(self._scribe.ledger.change_approval, used, ApprovalState.APPROVED)
        except ConsoleError as error:
            why = f"not recorded: {error}"
        self._core.post(e.ApprovalUsed(*now(), approval.agent_id, approval.approval_id, command.request_id, ok, "" if ok else why))

    async def end_grants(self, command: c.EndGrants) -> None:
        """What sessions were given is over, on disk too: a restart must not bring it back."""
        ledger = self._scribe.ledger
        for session in command.sessions or (None,):
            await self._insist(lambda session=session: ledger.end_grants(session))  # type: ignore[misc]

    async def take_back(self, command: c.TakeBackApproval) -> None:
        """A decision that came too late lets nothing through, now or after a restart."""
        await self._insist(lambda: self._scribe.ledger.take_back(command.approval_id, command.why))
        data = {"approval_id": command.approval_id}
        self._scribe.record(c.Record("supervisor", "approval.taken_back", command.why, verdict="deny", data=data, must=True))

    async def _insist(self, job: Callable[[], object]) -> None:
        """Until the disk takes it: what tightens is never given up. What was given meanwhile may go with it; then it is asked again."""
        told = False
        while True:
            try:
                await asyncio.to_thread(job)
            except ConsoleError as error:
                if not told:
                    self._notice(f"what was approved could not be taken back on disk yet: {error}", "red")
                told = True
                await asyncio.sleep(AGAIN_S)
            else:
                return

    def show(self, approval: Approval) -> None:
        """To every view: they ask for what they show."""
        data = {"id": approval.approval_id, "state": approval.state.value, "agent_id": approval.agent_id}
        self._core.hub.publish("approval", data)


def open_approvals(ledger: Ledger) -> tuple[tuple[Approval, ...], tuple[Grant, ...]]:
    """Return the requests that still wait, and the approvals of sessions. Requests from before a restart of the host are void."""
    try:
        ledger.void_approvals("the host was restarted", boot_id())
        found = ledger.open_approvals()
        whole = tuple(x for x in found if digest_of(x.request, x.agent_id, x.context_id) == x.digest)
        for other in [x for x in found if x not in whole]:
            # A secret was removed, or the row was changed: the request cannot be shown as it was. Its caller asks again.
            ledger.change_approval(replace(other, state=ApprovalState.VOID, words=NOT_WHOLE), other.state)
        return whole, tuple(ledger.grants())
    except ConsoleError as error:
        # A disk that cannot be written stops no start: what waited is asked again, and given is nothing.
        log.warning("approvals could not be read: %s", error)
        return (), ()


def _clean(approval: Approval, redact: Callable[[str], str]) -> Approval:
    """As it may lie on a disk: no known secret in it. Its digest is still that of the exact request."""
    request = approval.request
    clean = replace(request, argument=redact(request.argument), detail=redact(request.detail), says=redact(request.says))
    clean = replace(clean, tool=redact(request.tool), cwd=redact(request.cwd))
    parts = tuple(replace(p, text=redact(p.text), rule=redact(p.rule), reason=redact(p.reason)) for p in approval.parts)
    return replace(approval, request=clean, parts=parts, rule=redact(approval.rule), reason=redact(approval.reason))


def record_of(approval: Approval, by: str, kind: str, what: str, verdict: str) -> c.Record:
    """The audit's entry: what was bound, never the content itself beyond a short head."""
    data = {"approval_id": approval.approval_id, "digest": approval.digest, "tool": approval.request.tool[:100]}
    data |= {"danger": approval.danger, "rank": str(rank_of(approval.danger))} if approval.danger else {}
    data |= {"argument": approval.request.argument[:400], "session": approval.context_id, "scope": approval.scope.value}
    return c.Record(by, kind, what, verdict=verdict, agent_id=approval.agent_id, data=data)
