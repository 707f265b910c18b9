"""Carries out what the engine says of dry-run: lines of plans, calls of an approved one, ends. On disk first, then told (promise 5)."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

from console.credentials.keyring_store import Store
from console.domain.agent import Agent, AgentId
from console.domain.calls.approval import Approval, digest_of
from console.domain.calls.lineage import Mark
from console.domain.calls.permission import Decision, PermissionRequest, Verdict
from console.domain.engine import command as c
from console.domain.engine import dry_run as d
from console.domain.errors import ConsoleError
from console.domain.network import NetworkMode
from console.domain.process.failpoints import failpoint
from console.killswitch.store.causes import boot_id
from console.ledger.store import Ledger
from console.services.approvals.impact import blast_of
from console.services.fleet.core import Core, now
from console.services.notices.shown import Notice
from console.services.records.record_writer import Scribe

log = logging.getLogger(__name__)
AGAIN_S = 5.0
"""Between two tries of a disk that refuses to end a plan."""
Planned = d.PlanCall | d.NoteRefused


class Planning:
    """Effects of the engine's words on dry-run. ``carry_out`` is a task of the runner's."""

    __slots__ = ("_in_order", "_core", "_scribe", "_keyring", "_notice", "_of_url")

    def __init__(self, core: Core, scribe: Scribe, keyring: Store, notice: Notice, of_url: Callable[[str, NetworkMode], Decision]) -> None:
        """``of_url``: what the network says of a URL now."""
        self._core, self._scribe, self._keyring, self._notice, self._of_url = core, scribe, keyring, notice, of_url
        self._in_order = asyncio.Lock()

    async def carry_out(self, command: Planned | d.UseRelease | d.EndPlans) -> None:
        """One command."""
        match command:
            case d.PlanCall():
                await self._plan(command)
            case d.NoteRefused():
                await self._note(command)
            case d.UseRelease():
                await self._use(command)
            case d.EndPlans():
                await self._end(command)
            case _:
                assert_never(command)

    async def _plan(self, command: d.PlanCall) -> None:
        """What is left of a live call's judgement, then the line, then the answer: not executed, whatever happens here."""
        agent, decision = self._core.state.agents[command.agent_id], command.decision
        if command.request.tool == "http_request":
            decision = self._of_url(command.request.argument, agent.effective_mode)
        would = "been allowed" if decision.verdict is Verdict.ALLOW else "been denied"
        words = f"not executed. Live it would have {would} ({decision.rule}: {decision.reason})"
        try:
            plan_id, seq = await self._keep(replace(command, decision=decision), command.marks)
            where = f"call {seq} of plan {plan_id}" if seq else f"plan {plan_id} is full, so it is not in it"
        except (ConsoleError, OSError) as error:
            where = f"it could not be written into the plan: {error}"
        answer = Decision(Verdict.DENY, d.RULE, f"{words}; {where}.")
        self._core.post(d.CallPlanned(*now(), command.agent_id, command.request_id, answer))

    async def _note(self, command: d.NoteRefused) -> None:
        try:
            await self._keep(command, ())
        except (ConsoleError, OSError) as error:
            self._notice(f"a denied call of {command.agent_id} could not be written into its plan: {error}")

    async def _keep(self, command: Planned, marks: tuple[Mark, ...]) -> tuple[str, int]:
        call = self._call(command, marks)
        async with self._in_order:
            kept = await asyncio.to_thread(self._scribe.ledger.add_planned, f"p-{secrets.token_hex(6)}", command.head, call)
        self._core.hub.publish("plan", {"id": kept[0], "head": command.head, "state": d.PlanState.OPEN.value})
        return kept

    def _call(self, command: Planned, marks: tuple[Mark, ...]) -> d.PlannedCall:
        """The line as it may lie on a disk: no known secret in it; its digest is that of the exact request."""
        agent = self._core.state.agents[command.agent_id]
        redact = self._keyring.redactor.redact
        request, at = command.request, now()[0]
        clean = PermissionRequest(redact(request.tool), *(redact(x) for x in (request.argument, request.cwd, request.detail, request.says)))
        parts = tuple(replace(p, text=redact(p.text), rule=redact(p.rule), reason=redact(p.reason)) for p in command.parts)
        allowed = command.decision.verdict is Verdict.ALLOW
        return d.PlannedCall(
            seq=0,
            agent_id=command.agent_id,
            context_id=agent.context_id,
            request=clean,
            digest=digest_of(request, command.agent_id, agent.context_id),
            verdict=command.verdict.value,
            rule=redact(command.rule),
            reason=redact(command.reason),
            outcome=command.decision.verdict.value,
            outcome_words=redact(f"{command.decision.rule}: {command.decision.reason}"),
            parts=parts,
            preview=tuple((kind, redact(words), level) for kind, words, level in self._preview(command, agent)),
            at=at,
            marks=tuple(replace(mark, value=redact(mark.value), text=redact(mark.text)) for mark in marks),
            state=d.CallState.PLANNED if allowed else d.CallState.REFUSED,
        )

    def _preview(self, command: Planned, agent: Agent) -> list[tuple[str, str, str]]:
        """What it would touch, and what is known of its cost."""
        reached = Approval("", agent.agent_id, agent.root_id, agent.context_id, command.request, "", "", "", 0.0, 0.0, command.parts)
        lines = [(line.kind, line.words, line.level) for line in blast_of(reached, agent)]
        held = sum(r.estimate.cost_usd for r in self._core.state.budget.reservations.values() if r.agent_id == agent.agent_id)
        words = f"${agent.usage.cost_usd:.4f} used by it so far, ${held:.4f} set aside; what this call alone would cost is not known"
        return [*lines, ("cost", words, "plain")]

    async def _use(self, command: d.UseRelease) -> None:
        """Audit, then the ledger's word that it was good and is over now; only then may the call go on."""
        why = "its plan is not approved any more"
        try:
            why = await asyncio.to_thread(self._used, command)
        except (ConsoleError, OSError) as error:
            why = f"not recorded: {error}"
        release = command.release
        at, boot = now()
        agent_id = AgentId(release.agent_id)
        self._core.post(d.ReleaseUsed(at, boot, agent_id, command.request_id, command.request, command.decision, not why, why))
        self._core.hub.publish("plan", {"id": release.plan_id, "head": release.head, "state": d.PlanState.APPROVED.value})

    def _used(self, command: d.UseRelease) -> str:
        scribe, release = self._scribe, command.release
        data = {"plan_id": release.plan_id, "seq": release.seq, "digest": release.digest, "tool": command.request.tool[:100]}
        data["argument"] = command.request.argument[:400]
        what = f"call {release.seq} of plan {release.plan_id}, approved by {release.by}"
        scribe.record_first(c.Record(f"agent:{release.agent_id}", "plan.used", what, verdict="allow", agent_id=release.agent_id, data=data))
        why = scribe.ledger.use_release(release, now()[1], boot_id())
        failpoint("plan.used")
        return why

    async def _end(self, command: d.EndPlans) -> None:
        """Until the disk takes it: a restart must not bring it back. In memory it is over already."""
        told = False
        while True:
            try:
                ledger = self._scribe.ledger
                ended = await asyncio.to_thread(ledger.end_plans, command.heads, command.plan_id, command.state, command.words)
                break
            except ConsoleError as error:
                if not told:
                    self._notice(f"plans that are over could not be ended on disk yet: {error}", "red")
                told = True
                await asyncio.sleep(AGAIN_S)
        if ended:
            data = {"heads": list(command.heads or ())[:50], "plan_id": command.plan_id, "plans": ended}
            self._scribe.record(c.Record("supervisor", f"plan.{command.state}", command.words, data=data, must=True))
            self._core.hub.publish("plan", {"id": command.plan_id, "head": "", "state": command.state.value})


def releases_of(plan: d.Plan) -> tuple[d.Release, ...]:
    """What an approved plan lets through still."""
    return tuple(
        d.Release(plan.plan_id, plan.head, x.seq, x.agent_id, x.digest, x.verdict, x.rule, plan.decided_by, plan.expires_boot)
        for x in plan.calls
        if x.state is d.CallState.PLANNED
    )


def restored_plans(ledger: Ledger, killed: bool) -> d.PlansRestored:
    """What was approved and not used, and steps that planned calls would have taken; nothing while killed."""
    try:
        if killed:
            ledger.end_plans(None, "", d.PlanState.VOID, "killed")
        plans = ledger.open_plans(boot_id())
    except ConsoleError as error:
        # A disk that cannot be written stops no start; nothing is let through then.
        log.warning("plans could not be read: %s", error)
        return d.PlansRestored(*now(), ())
    releases = tuple(one for plan in plans if plan.state is d.PlanState.APPROVED for one in releases_of(plan))
    marks = {plan.head: tuple(m for call in plan.calls for m in call.marks) for plan in plans if plan.state is d.PlanState.OPEN}
    return d.PlansRestored(*now(), releases, marks)
