"""Every route of operator.sock. While killed, reads and the ways out stay up; all else answers 503."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from console.api import endpoints as ep
from console.api import messages as m
from console.api.message import SCHEMA_VERSION
from console.api.network import EnvoyConfigView
from console.api.rearm import RearmProof
from console.credentials.tokens import Tokens
from console.domain.agent import Agent, AgentId
from console.domain.engine.command import Record
from console.domain.errors import Denied, NotFound
from console.domain.ladder import Reach, Scope
from console.domain.words import counted
from console.egress.service import Egress
from console.services.activity.routes import activity_routes
from console.services.activity.service import ActivityDesk
from console.services.adoption.routes import adopt_routes
from console.services.adoption.service import AdoptDesk
from console.services.approvals.dry_run import DryRunDesk, dry_run_routes
from console.services.approvals.routes import approval_routes
from console.services.approvals.service import ApprovalDesk
from console.services.budgets.charts import Charts
from console.services.budgets.routes import budget_routes
from console.services.budgets.service import BudgetDesk
from console.services.fleet.core import Core, now
from console.services.fleet.views import agent_view, egress_view, hardening_view, receipt_row
from console.services.launch.exec_check import not_begun
from console.services.launch.service import Launcher, read_output
from console.services.network.ratchet import TightenDesk
from console.services.network.ratchet_routes import tighten_routes
from console.services.network.review import ReviewDesk
from console.services.network.routes import AllowlistRoutes
from console.services.network.service import NetworkDesk
from console.services.persistence.routes import hunt_routes
from console.services.persistence.scan import Hunt
from console.services.rearm.passphrases import Passphrases
from console.services.rearm.relaunch import Relaunch
from console.services.rearm.routes import rearm_routes
from console.services.rearm.service import RearmAsk, Rearming
from console.services.records.audit_log import AuditDesk
from console.services.records.record_writer import Scribe
from console.services.records.rollback import RollbackDesk
from console.services.records.routes import audit_routes, key_routes, rollback_routes
from console.services.routes.accounts import accounts
from console.services.routes.launch_body import request_from
from console.services.routes.request_identity import UID, asked_by, caller_of
from console.services.routes.responses import Handlers, answer, answer_data, body_of, number_in, refusals
from console.services.sessions.routes import context_routes
from console.services.sessions.workspaces import Contexts
from console.services.stop.ladder import LadderDesk
from console.services.stop.ladder_routes import LadderRoutes, receipt_answer, scope_from
from console.services.stop.service import StopDesk
from console.settings.places import Places
from console.supervisor.http.access import Gates, Trespasses, standing_of
from console.supervisor.http.polkit import Polkit
from console.supervisor.status_service import StatusService


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRoutes:
    """Routes as thin as they can be: body in, one call, view out."""

    core: Core
    scribe: Scribe
    places: Places
    tokens: Tokens
    trespasses: Trespasses
    polkit: Polkit
    egress: Egress
    status: StatusService
    audit: AuditDesk
    rollback: RollbackDesk
    launcher: Launcher
    stop: StopDesk
    ladder: LadderDesk
    rearming: Rearming
    passphrases: Passphrases
    relaunch: Relaunch
    network: NetworkDesk
    review: ReviewDesk
    tighten: TightenDesk
    approvals: ApprovalDesk
    dry_runs: DryRunDesk
    adoption: AdoptDesk
    budgets: BudgetDesk
    charts: Charts
    contexts: Contexts
    activity: ActivityDesk
    hunt: Hunt
    end: asyncio.Event
    """Set: the supervisor ends."""
    more: Handlers
    """Of services that the supervisor has beside these."""

    def app(self) -> Starlette:
        """The routes as an ASGI app."""
        handlers: Handlers = {
            ep.STATUS: self._status,
            ep.ACCOUNTS: accounts,
            ep.FLEET: self._fleet,
            ep.AGENT: self._agent,
            ep.OUTPUT: self._output,
            ep.KILL_SWITCH: self._kill_switch,
            ep.RECEIPTS: self._receipts,
            ep.RECEIPT: self._receipt,
            ep.ENVOY: self._envoy_config,
            ep.EGRESS: self._egress,
            ep.SOURCES: self._sources,
            ep.EVENTS: self._events,
            ep.LAUNCH: self._launch,
            ep.SWITCH: self._kill_switch_change,
            ep.RETRY_REMOTE: self._remote_retry,
            ep.SHUTDOWN: self._shutdown,
        }
        handlers |= rearm_routes(self.core, self.rearming, self.passphrases, self.relaunch)
        handlers |= hunt_routes(self.hunt, lambda: self.core.state, self.places)
        handlers |= activity_routes(self.activity, self.core.agent_or_404, self.places.output_dir)
        handlers |= LadderRoutes(self.ladder).routes() | AllowlistRoutes(self.network, self.review, asked_by).routes()
        handlers |= tighten_routes(self.tighten, asked_by) | approval_routes(self.approvals, asked_by)
        handlers |= dry_run_routes(self.dry_runs, asked_by) | adopt_routes(self.adoption, asked_by)
        handlers |= budget_routes(self.budgets, self.charts, asked_by) | rollback_routes(self.rollback, asked_by)
        handlers |= audit_routes(self.audit, asked_by) | key_routes(self.places, self.scribe.record_first, asked_by)
        handlers |= context_routes(self.contexts, asked_by) | self.more
        gates = Gates(lambda: self.core.state.killed, lambda token: self.tokens.accepts(token, "operator"), self.trespasses, self.polkit)
        return Starlette(routes=gates.before(handlers), exception_handlers=refusals())

    # --- reads

    async def _status(self, request: Request) -> Response:
        view, standing = await self.status.status(), standing_of(request)
        you = {"your_roles": list(standing.roles), "your_rights": sorted(self.polkit.offered(standing))}
        return answer(view.replaced(**you if standing.is_owner else you | {"operator": f"uid {request.scope.get(UID)}"}))

    async def _fleet(self, _request: Request) -> Response:
        return answer(self.status.fleet())

    async def _agent(self, request: Request) -> Response:
        agent_id = self.core.agent_or_404(request.path_params["id"])
        agent = self.core.state.agents[agent_id]
        ledger = self.scribe.ledger
        await asyncio.to_thread(self.scribe.settle, 2.0)
        events = await asyncio.to_thread(ledger.events, agent_id, 100)
        egress = await asyncio.to_thread(ledger.egress, 100, agent_id)
        at, _ = now()
        meter = self.core.meters.by_agent.get(agent_id)
        view = m.AgentDetailView(
            agent=agent_view(agent, self.core.state, self.core.meters, at).replaced(cwd=agent.cwd or _folder(self.places, agent)),
            argv=list(agent.argv),
            events=[m.AgentEventView(at=x.at, kind=x.kind, text=x.text) for x in events],
            egress=[egress_view(x.record, agent) for x in egress],
            cost_per_minute=meter.per_minute(at) if meter else [],
            can=self.ladder.can(agent_id)
            | dict.fromkeys(("say", "interrupt"), self.launcher.talk.why_not(agent_id))
            | {"end": self.launcher.talk.why_not(agent_id, to_end=True)},
            environment=await self.launcher.environments.view(agent_id),
            hook=self.launcher.hooks.words_of(agent_id),
            hardening=[hardening_view(g) for g in await self.launcher.bounding.given(agent_id)],
        )
        return answer(view)

    async def _sources(self, _request: Request) -> Response:
        return answer(await asyncio.to_thread(self.launcher.sources.view))

    async def _output(self, request: Request) -> Response:
        agent_id = self.core.agent_or_404(request.path_params["id"])
        offset = number_in(request, "offset", 0, 1 << 60)
        data, total = await asyncio.to_thread(read_output, self.places.output_dir, agent_id, offset)
        state = self.core.state.agents[agent_id]
        body = {
            "schema_version": SCHEMA_VERSION,
            "text": data.decode("utf-8", "backslashreplace"),
            "offset": offset + len(data),
            "total": total,
            "live": state.state.is_live,
            "state": state.state.value,
            "exit_code": state.exit_code,
        }
        return answer_data(body)

    async def _kill_switch(self, _request: Request) -> Response:
        return answer(await self.status.kill_switch())

    async def _receipts(self, _request: Request) -> Response:
        rows = [receipt_row(r).as_data() for r in self.stop.receipts()]
        return answer_data({"schema_version": SCHEMA_VERSION, "receipts": rows})

    async def _receipt(self, request: Request) -> Response:
        receipt = self.stop.receipt(request.path_params["id"])
        if receipt is None:
            raise NotFound(f"There is no receipt {request.path_params['id'][:60]!r}.", "watchfloor receipt list shows them.")
        return answer_data(receipt.as_json())

    async def _envoy_config(self, _request: Request) -> Response:
        text = await asyncio.to_thread(self.egress.config_text)
        return answer(EnvoyConfigView(version=self.network.allowlist.version, text=text))

    async def _egress(self, request: Request) -> Response:
        await asyncio.to_thread(self.scribe.settle, 2.0)
        whose = request.query_params.get("agent") or None
        records = await asyncio.to_thread(self.scribe.ledger.egress, number_in(request, "limit", 200, 1000), whose)
        agents = self.core.state.agents
        rows = [egress_view(r.record, agents.get(AgentId(r.record.agent_id))).as_data() for r in records]
        return answer_data({"schema_version": SCHEMA_VERSION, "egress": rows})

    async def _events(self, request: Request) -> Response:
        last = request.headers.get("last-event-id", "")
        after = int(last) if last.isascii() and last.isdigit() and len(last) < 16 else None

        async def lines() -> AsyncIterator[bytes]:
            yield b": watchfloor\n\n"
            async for delta in self.core.hub.listen(after):
                if delta is None:
                    yield b": alive\n\n"
                else:
                    yield delta.line()

        return StreamingResponse(lines(), media_type="text/event-stream", headers={"cache-control": "no-store"})

    # --- changes

    async def _launch(self, request: Request) -> Response:
        body = await body_of(request, ep.LAUNCH.body)
        agent_id = await self.core.ask_launch(request_from(body), asked_by(request))
        agent = self.core.state.agents[agent_id]
        why, doubt = ("", "") if body.wait_output else await self._not_begun(agent_id)
        said = (f"its folder is {_folder(self.places, agent)}", agent.network_note, *self.launcher.words(agent_id), doubt)
        view = m.LaunchedView(
            id=agent_id,
            control_level=agent.control_level,
            network_mode=agent.network_mode,
            network_enforced=agent.network_enforced,
            notes=[words for words in said if words],
            not_begun=why,
        )
        return answer(view)

    async def _not_begun(self, agent_id: AgentId) -> tuple[str, str]:
        """(why the program of an agent that was just let go could not be executed, what is not known of that)."""
        running, agents = self.launcher.running.get(agent_id), self.core.state.agents
        prepared = running.prepared if running is not None else None
        return await not_begun(
            prepared,
            lambda: agents[agent_id],
            lambda: read_output(self.places.output_dir, agent_id, 0)[0].decode(errors="backslashreplace"),
        )

    async def _kill_switch_change(self, request: Request) -> Response:
        body = await body_of(request, ep.SWITCH.body)
        if body.action == "activate":
            scope = Scope(Reach.ALL) if body.scope == "all" else scope_from(body.scope)
            return receipt_answer(await self.ladder.kill(scope, body.reason, asked_by(request)))
        ask = RearmAsk(body.reason, body.kill_id, asked_by(request), body.proof or RearmProof(), caller_of(request))
        note = await self.rearming.rearm(ask)
        view = await self.status.kill_switch()
        view.rearm_note = note
        return answer(view)

    async def _remote_retry(self, _request: Request) -> Response:
        await self.stop.retry_remote()
        return answer(await self.status.kill_switch())

    async def _shutdown(self, request: Request) -> Response:
        live = [a for a in self.core.state.live if self.core.state.agents[a].control_level != "observed"]
        if live:
            raise Denied(
                f"{counted(len(live), 'agent still runs', 'agents still run')}.",
                "End them first, or use panic. The supervisor stays while an agent lives.",
            )
        record = Record(asked_by(request), "supervisor.shutdown", "asked to end")
        await asyncio.to_thread(self.scribe.record_first, record)
        asyncio.get_running_loop().call_later(0.2, self.end.set)
        return answer_data({"schema_version": SCHEMA_VERSION, "ending": True})


def _folder(places: Places, agent: Agent) -> str:
    """Where it works: what Watchfloor starts runs in the workspace of its session. Empty: not known."""
    return str(places.workspaces_dir / agent.context_id) if agent.source == "watchfloor" else ""
