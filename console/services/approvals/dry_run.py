"""The operator's side of dry-run: in, out, the plan, and the decision on all of it. No agent's socket leads here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from console.api import endpoints as ep
from console.api.policy import dry_run as dm
from console.api.policy.approvals import ApprovalPart
from console.domain.agent import Agent, AgentId
from console.domain.engine import dry_run as d
from console.domain.engine.command import Record
from console.domain.errors import Conflict, NotFound
from console.domain.ids import ControlLevel
from console.enforcement.dry_run import head_of, words_of
from console.killswitch.store.causes import boot_id
from console.services.approvals.dry_run_runner import releases_of
from console.services.fleet.core import Core, now
from console.services.records.record_writer import Scribe
from console.services.routes.responses import Handlers, answer, body_of

HOLDS = "Only calls that are put before the rules are held: what a program does without asking is bounded by its sandbox alone."


class DryRunDesk:
    """In and out, plans and decisions."""

    __slots__ = ("_core", "_scribe")

    def __init__(self, core: Core, scribe: Scribe) -> None:
        self._core, self._scribe = core, scribe

    async def change(self, body: dm.DryRunBody, by: str) -> dm.DryRunView:
        """Into dry-run: at once, recorded after. Out of it: recorded first. On disk when this returns. Raises Conflict, NotFound."""
        core = self._core
        agent_id = core.agent_or_404(body.agent)
        agent = core.state.agents[agent_id]
        if body.on:
            if not agent.state.is_live:
                raise Conflict(f"{agent_id} has ended.", "watchfloor fleet shows who lives.")
            core.post(d.DryRunEntered(*now(), agent_id, by, body.reason))
            told = [i for i in core.state.subtree(agent_id) if i in core.state.live]
        else:
            told = await self._out(agent, body.reason, by)
        await core.saved()
        words = words_of(core.state, core.state.agents[agent_id])
        return dm.DryRunView(
            agent=agent_id, on=bool(words), words=words, agents=[str(one) for one in told], notes=self._notes(agent) if body.on else []
        )

    async def _out(self, agent: Agent, reason: str, by: str) -> list[AgentId]:
        core = self._core
        head = head_of(core.state, agent)
        if head is None:
            raise Conflict(f"{agent.agent_id} is not in dry-run.", "watchfloor fleet shows who is.")
        if head != agent.agent_id:
            raise Conflict(
                f"{agent.agent_id} is in dry-run with {head}, above it.", f"Take {head} out: a child is never looser than its parent."
            )
        what = f"{agent.agent_id} and who is in dry-run with it are taken out: {reason}"
        await asyncio.to_thread(self._scribe.record_first, Record(by, "dry_run.left", what, verdict="allow", agent_id=agent.agent_id))
        core.post(d.DryRunLeft(*now(), agent.agent_id, by, reason))
        return [i for i in core.state.subtree(agent.agent_id) if i in core.state.live and head_of(core.state, core.state.agents[i]) is None]

    def _notes(self, agent: Agent) -> list[str]:
        only_seen = "It is only seen: nothing but its own hook puts its calls before the rules."
        return [HOLDS, only_seen] if agent.control_level is ControlLevel.OBSERVED else [HOLDS]

    async def plans(self, agent_id: str) -> dm.PlansView:
        """The plans of its head, newest first; of one that is live now, its own of before."""
        core = self._core
        known = core.agent_or_404(agent_id)
        agent = core.state.agents[known]
        head = head_of(core.state, agent)
        found = await asyncio.to_thread(self._scribe.ledger.plans_of, head or known)
        return dm.PlansView(agent=known, head=head or "", words=words_of(core.state, agent), plans=[self._view(plan) for plan in found])

    async def decide(self, body: dm.PlanBody, by: str) -> dm.PlanDecidedView:
        """Approves or throws away a whole plan, exactly as it was shown. Audit, ledger, engine. Raises Conflict, NotFound, NotRecorded."""
        ledger = self._scribe.ledger
        plan = await asyncio.to_thread(ledger.plan, body.plan)
        if plan is None:
            raise NotFound(f"There is no plan {body.plan}.", "watchfloor agent plan AGENT shows those there are.")
        if d.plan_digest(plan) != body.sha256:
            raise Conflict("The plan is not the one that was shown.", "Look again: its agent has asked for more, or for something else.")
        approve = body.verdict == "approve"
        if why := self._why_not(plan) if approve else "" if plan.state.is_open else f"it is {plan.state} already":
            raise Conflict(
                f"Plan {plan.plan_id} cannot be {'approved' if approve else 'thrown away'}: {why}.", "watchfloor agent plan AGENT shows it."
            )
        kind = "plan.approved" if approve else "plan.discarded"
        data = {"plan_id": plan.plan_id, "sha256": body.sha256, "calls": len(releases_of(plan))}
        entry = Record(by, kind, f"plan {plan.plan_id} of {plan.head}: {body.reason}", "allow" if approve else "deny", plan.head, data)
        await asyncio.to_thread(self._scribe.record_first, entry)
        return await (self._approve(plan, body, by) if approve else self._discard(plan, body, by))

    async def _approve(self, plan: d.Plan, body: dm.PlanBody, by: str) -> dm.PlanDecidedView:
        core = self._core
        at, boot = now()
        approved = replace(plan, sha256=body.sha256, decided_by=by, decided_at=at, words=body.reason, state=d.PlanState.APPROVED)
        approved = replace(approved, expires_boot=boot + core.state.approvals.ttl_s)
        if why := await asyncio.to_thread(self._scribe.ledger.approve_plan, approved, boot_id()):
            raise Conflict(f"Plan {plan.plan_id} is not approved: {why}.", "Look again.")
        core.post(d.PlanApproved(*now(), plan.plan_id, AgentId(plan.head), releases_of(approved), by))
        open_now = sum(one.plan_id == plan.plan_id for one in core.state.dry_run.releases.values())
        self._core.hub.publish("plan", {"id": plan.plan_id, "head": plan.head, "state": d.PlanState.APPROVED.value})
        if not open_now:
            return dm.PlanDecidedView(plan=plan.plan_id, state="void", words="it ended while this was written down: nothing is let through")
        return dm.PlanDecidedView(plan=plan.plan_id, state="approved", calls=open_now)

    async def _discard(self, plan: d.Plan, body: dm.PlanBody, by: str) -> dm.PlanDecidedView:
        core = self._core
        core.post(d.PlanEnded(*now(), plan.plan_id, AgentId(plan.head)))  # at once: it only tightens
        words = f"thrown away by {by}: {body.reason}"
        await asyncio.to_thread(self._scribe.ledger.end_plans, None, plan.plan_id, d.PlanState.VOID, words)
        core.hub.publish("plan", {"id": plan.plan_id, "head": plan.head, "state": d.PlanState.VOID.value})
        return dm.PlanDecidedView(plan=plan.plan_id, state="void", words=words)

    def _why_not(self, plan: d.Plan) -> str:
        """Why it cannot be approved now, or nothing."""
        state = self._core.state
        if plan.state is not d.PlanState.OPEN:
            return f"it is {plan.state} already"
        if state.killed:
            return "this host is killed"
        releases = releases_of(plan)
        if not releases:
            return "nothing in it would be executed"
        head = state.agents.get(AgentId(plan.head))
        if head is None or head_of(state, head) != head.agent_id:
            return f"{plan.head} is not in dry-run by itself any more"
        return "" if any(AgentId(one.agent_id) in state.live for one in releases) else "every agent whose calls it holds has ended"

    def _view(self, plan: d.Plan) -> dm.PlanView:
        agents, (_, boot) = self._core.state.agents, now()
        head = agents.get(AgentId(plan.head))
        return dm.PlanView(
            id=plan.plan_id,
            head=plan.head,
            head_name=head.name if head is not None else "",
            state=plan.state.value,
            sha256=d.plan_digest(plan),
            opened_at=plan.opened_at,
            calls=[self._call(call) for call in plan.calls],
            left_out=plan.left_out,
            decided_by=plan.decided_by,
            decided_at=plan.decided_at,
            left_s=max(0.0, plan.expires_boot - boot) if plan.state is d.PlanState.APPROVED else 0.0,
            words=plan.words,
            why_not=self._why_not(plan),
        )

    def _call(self, call: d.PlannedCall) -> dm.PlanCallView:
        agent, request = self._core.state.agents.get(AgentId(call.agent_id)), call.request
        return dm.PlanCallView(
            seq=call.seq,
            agent_id=call.agent_id,
            agent_name=agent.name if agent is not None else "",
            session=call.context_id,
            tool=request.tool,
            argument=request.argument,
            cwd=request.cwd,
            detail=request.detail,
            says=request.says,
            digest=call.digest,
            verdict=call.verdict,
            rule=call.rule,
            reason=call.reason,
            outcome=call.outcome,
            outcome_words=call.outcome_words,
            parts=[ApprovalPart(text=p.text, verdict=p.verdict, rule=p.rule, step=p.step, reason=p.reason) for p in call.parts],
            preview=[dm.PreviewLine(kind=kind, words=words, level=level) for kind, words, level in call.preview],
            at=call.at,
            state=call.state.value,
            times=call.times,
        )


def dry_run_routes(desk: DryRunDesk, by: Callable[[Request], str]) -> Handlers:
    """POST /api/dry-run, GET /api/plans/{agent}, POST /api/plans: for operators alone."""

    async def change(request: Request) -> Response:
        return answer(await desk.change(await body_of(request, dm.DryRunBody), by(request)))

    async def plans(request: Request) -> Response:
        return answer(await desk.plans(request.path_params["agent"]))

    async def decide(request: Request) -> Response:
        return answer(await desk.decide(await body_of(request, dm.PlanBody), by(request)))

    return {
        ep.DRY_RUN: change,
        ep.DECIDE_PLAN: decide,
        ep.PLANS: plans,
    }
