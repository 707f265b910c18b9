"""The only place where ports meet adapters: one supervisor, built from its options, started and ended in order."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from console.credentials.keyring_store import Store
from console.credentials.plan import FILE as PLAN_FILE
from console.credentials.tokens import Tokens
from console.domain.agent import AgentId, ControlLevel, LaunchRequest
from console.domain.command import Record
from console.domain.errors import Conflict, ConsoleError, NotFound
from console.domain.ladder import Reach, Rung, Scope
from console.domain.network import EgressRecord, mapping_of
from console.egress.service import Egress
from console.enforcement.engine import Engine
from console.enforcement.state import EngineState, SpawnLimits
from console.killswitch.client import GuardClient
from console.killswitch.spawn import START_S
from console.ledger.activity_file import Bounds
from console.rollback.store import RollbackStore
from console.services.activity.service import ActivityDesk
from console.services.adoption.service import keep_adopted
from console.services.approvals.approval_runner import Approving
from console.services.daemons.service import DaemonService
from console.services.evidence.case import Evidence
from console.services.evidence.snapshot_cache import Witness
from console.services.execute.judgement import CallJudging
from console.services.execute.service import ExecuteDesk
from console.services.fleet.core import Core
from console.services.fleet.views import egress_view
from console.services.hooks.service import hook_app, hook_routes
from console.services.network.service import NetworkDesk
from console.services.notices.shown import Notices
from console.services.observe.own_agents import OwnAgents
from console.services.persistence.scan import Hunt
from console.services.policy.dangerous_operations import DangerDesk
from console.services.policy.git_memory import GitMemory
from console.services.policy.page import PolicyLook
from console.services.policy.page_routes import policy_page_routes
from console.services.policy.profiles import Profiles
from console.services.policy.review import PolicyReview
from console.services.policy.routes import policy_routes
from console.services.policy.service import PolicyDesk
from console.services.policy.session_start import SessionStart
from console.services.records.record_writer import Scribe, note_head
from console.services.records.storage_open import (
    DAMAGED,
    MISSING,
    forget_loss,
    losses_found,
    note_loss,
    noted_loss,
    open_audit,
    open_ledger,
    start_killed,
    started,
)
from console.services.routes.responses import asked_by
from console.services.secrets.rotation_resume import finish_rotations
from console.services.secrets.rotator import Rotator
from console.services.secrets.routes import SecretRoutes
from console.services.sessions.metrics import MetricsPort
from console.services.sessions.workspaces import Contexts
from console.services.stop.line import StopLine
from console.settings.options import Options
from console.settings.places import Places, make_run_dir
from console.sources.freshness import Freshness
from console.supervisor.adapters import sandboxes_of, sources_of, spend_of
from console.supervisor.agent_door import AgentDoors
from console.supervisor.desk import Desk, tell_losses
from console.supervisor.effects import RemoteEffects
from console.supervisor.first_run import first_run_routes
from console.supervisor.fold import fold_journal
from console.supervisor.follow import Follower, OneForAll
from console.supervisor.http.access import Trespasses
from console.supervisor.http.asgi import App, Door
from console.supervisor.http.peers import Peer, is_operator, may_hook
from console.supervisor.http.redaction import hidden, hide_in_logs
from console.supervisor.http.token_watch import watched
from console.supervisor.launch import Launcher
from console.supervisor.leftovers import keep_tidy
from console.supervisor.operator_routes import OperatorRoutes
from console.supervisor.parts import Parts
from console.supervisor.press_scope import asked_of, keep_naming, keep_telling, note_drop
from console.supervisor.program_routes import program_routes
from console.supervisor.restore import restore
from console.supervisor.revive import ensure_guard
from console.supervisor.runner import Runner
from console.supervisor.stop import StopDesk
from console.supervisor.type_sources import TypeSources

log = logging.getLogger(__name__)
THREADS = 32


class Supervisor:
    """One instance's supervisor. ``run`` returns when it was asked to end."""

    def __init__(self, places: Places, options: Options) -> None:
        self.places, self.options = places, options
        self.ended_idle = False
        make_run_dir(places)
        spawn = SpawnLimits(max_depth=options.spawn.max_depth, max_children=options.spawn.max_children)
        self.core = Core(Engine(EngineState(spawn=spawn, modes=mapping_of(options.network.modes), notice=options.network.notice)))
        self.core.state.scopes = tuple(options.agents.scopes)
        self.core.state.approvals.ttl_s = options.approvals.ttl_s
        self.core.state.approvals.waiting_max = options.approvals.waiting_max
        if not places.ledger_db.exists() and places.audit_db.exists() and not noted_loss(places.state_dir):
            note_loss(places.state_dir, MISSING)
        self.ledger, _ = open_ledger(places.ledger_db)
        self.ledger_lost = noted_loss(places.state_dir)
        self.guard_pid = ensure_guard(places, options)
        if self.ledger_lost == DAMAGED:
            start_killed(places, self.ledger_lost)
        self.audit, self.set_aside = open_audit(places)
        with suppress(ConsoleError):  # a disk that refuses keeps no supervisor from starting
            note_head(self.ledger, self.audit)
        self.parts = self._parts()
        parts, notice = self.parts, self.parts.notice
        types, above = TypeSources(parts), self.core.state.agents.get
        dangers = DangerDesk(places, parts.scribe, notice)
        git = GitMemory(SessionStart(self.ledger, above))
        self.profiles = Profiles(self.core.state.profiles, self.ledger, parts.scribe, types)
        alarm = partial(notice, level="red")
        known = (types.declared_of, types.type_of, git.of, self.profiles)
        self.policy = PolicyDesk(places, alarm, dangers.list.current, above, *known)
        approving = Approving(self.core, parts.scribe, parts.keyring, notice, self.policy)
        judging = CallJudging(self.core, approving, self.policy.judgement)
        execute = ExecuteDesk(self.core, parts.scribe, parts.guard, parts.rollback, parts.keyring, places, options, notice, judging)
        cgroups = bool((self.guard_status.get("caps") or {}).get("cgroup"))
        self.doors = AgentDoors(places, self.core, parts.scribe, parts.trespasses, parts.tokens, execute, cgroups=cgroups)
        self.launcher = Launcher(parts, self.doors, dangers, types)
        self.launcher.talk.listeners.append(parts.activity.on_event)
        self.stop_line = StopLine(places)
        redact = parts.keyring.redactor.redact_data
        evidence = Evidence(self.core, parts.witness, places, self.ledger, options.evidence, redact)
        self.stop = StopDesk(parts, self.stop_line, evidence)
        self.network = NetworkDesk(self.core, parts.scribe, parts.egress, options, notice, self.ledger.allowlist())
        self.runner = Runner(parts, self.launcher, self.stop, self.network, approving)
        self.core.run = self.runner.run
        self.core.before_launch = self._fits
        self.core.shape = self.launcher.sources.shape
        self.follower = Follower(self.parts, self.stop)
        self.launcher.look_at_guard = OneForAll(self.follower.look_at_guard).ask
        self.desk = Desk(self.parts, self.launcher, self.stop, self.network, self.follower)
        self.launcher.talk.hearing.freeze = self._freeze_agent

    def _parts(self) -> Parts:
        places, options = self.places, self.options
        store = Store(places.instance_id, places.keys_dir, backend=options.secrets_in(places.is_default))
        hide_in_logs(store.redactor)
        notices = Notices(self.core.publish_from_thread)
        notice = notices.show
        spend, own = spend_of(places, options), OwnAgents(places)
        activity = self._activity(store.redactor.redact, spend.fresh)
        scribe = Scribe(self.ledger, self.audit, lambda text: notice(text, "red"), activity.recorded, store.redactor.redact_data)
        guard = GuardClient(places.guard_supervisor_sock)
        self.guard_status = guard.call("status", timeout_s=START_S)
        tokens = Tokens(store)
        tokens.ensure()
        egress = Egress(
            places.egress_dir,
            places.run_dir,
            self._egress_seen,
            on_relay_death=self._relay_died,
            on_words=lambda agent_id, words: notice(f"{agent_id}: {words}"),
            netns=_path(options.egress.netns),
            hosts=options.egress.hosts,
            relay_cgroup=_relays(self.guard_status),
            engine=options.engine(),
            state_dir=places.state_dir,
        )
        remote = None
        if options.remote.bucket:
            # Google's client takes most of a second to load: only a host that uses a bucket waits for it.
            from console.supervisor.remote import RemoteDesk

            remote = RemoteDesk(
                options.remote, places.keys_dir, places.state_dir / "remote-state.json", options.host(), bool(options.remote.endpoint)
            )
        self.core.meters.beside = lambda: spend.today_usd
        self.core.heard = activity.heard
        return Parts(
            places=places,
            options=options,
            core=self.core,
            scribe=scribe,
            guard=guard,
            egress=egress,
            sandboxes=sandboxes_of(options),
            rollback=RollbackStore(places.rollback_dir, places.workspaces_dir),
            keyring=store,
            tokens=tokens,
            rotator=Rotator(tokens, places.state_dir / PLAN_FILE, places.operator_sock),
            sources=sources_of(places, options, spend, own),
            spend=spend,
            own_agents=own,
            remote=remote,
            trespasses=Trespasses(scribe, notice),
            daemons=DaemonService(
                lambda: asked_of(self.core.state),
                guard.call,
                lambda kill_id, words: note_drop(scribe, kill_id, words),
                notice,
            ),
            hunt=Hunt(places, options, lambda: self.core.state, scribe.record, notice, store.redactor.redact),
            contexts=Contexts(
                places.workspaces_dir,
                options.workspaces,
                self.ledger,
                lambda: self.core.state,
                scribe.record_first,
                notice,
            ),
            activity=activity,
            witness=Witness(options.evidence.refresh_s, options.evidence.processes_max),
            notices=notices,
        )

    def _activity(self, redact: Callable[[str], str], fresh: Freshness) -> ActivityDesk:
        places, kept = self.places, self.options.activity
        bounds = Bounds(kept.per_agent, kept.total, kept.max_mib)
        root = Path(self.options.discover_root) if self.options.discover_root else None
        return ActivityDesk(places.activity_db, bounds, self.core, redact, root, places.workspaces_dir, fresh)

    def _egress_seen(self, record: EgressRecord) -> None:
        """From the access log's thread: kept, shown live."""
        self.parts.scribe.egress(record)
        self.parts.activity.egress(record)
        loop = self.core.loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._egress_show, record)

    def _relay_died(self, agent_id: str) -> None:
        """From a thread of egress: the sandbox has no network until its portal is attached again (fail closed)."""
        if self.core.loop is not None and not self.core.loop.is_closed():
            asyncio.run_coroutine_threadsafe(self.launcher.cutter.reopen(AgentId(agent_id)), self.core.loop)

    def press_by_signal(self) -> None:
        """SIGUSR1: everything, through the guard, or without it when it does not answer."""
        self.runner.task(self._press_by_signal())

    async def _press_by_signal(self) -> None:
        await self.stop.press(None, "SIGUSR1", "signal")

    def end_guard(self) -> None:
        """The embedded pair ends together; refused by the guard while anything needs it."""
        with suppress(ConsoleError):
            self.parts.guard.call("quit")

    def _egress_show(self, record: EgressRecord) -> None:
        view = egress_view(record, self.core.state.agents.get(AgentId(record.agent_id)))
        self.core.hub.publish("egress", view.model_dump())

    async def run(self, on_ready: Callable[[], None] = lambda: None) -> None:
        """Starts everything, serves until asked to end, ends in order. Agents and guard outlive a restart."""
        self.core.loop = asyncio.get_running_loop()
        # The default is six on a small machine; what waits on a slow disk or engine must not keep everything else waiting.
        self.core.loop.set_default_executor(self.stop_line.pool(THREADS, "blocking"))
        lost = await asyncio.to_thread(losses_found, self.places, self.set_aside, self.ledger_lost)
        await restore(self)
        door = Door(self.places.operator_sock, self._operators_app(), self._accepts, mode=0o600)
        await door.open()
        hooks = Door(self.places.hooks_sock, hook_app(self.doors.hooks), self._accepts_hooks, mode=0o600)
        await hooks.open()
        await tell_losses(lost, self.parts, self.desk)
        if self.ledger_lost:
            forget_loss(self.places.state_dir)
        on_ready()
        self.parts.activity.start()
        self.follower.start()
        self.stop_line.precedence.stand()
        self.runner.task(self.runner.look_after())
        self.runner.task(self._keep_contexts())
        self.runner.task(keep_adopted(self.core, self.parts.guard))
        self.runner.task(keep_tidy(self.parts, self.stop))
        self.runner.task(self.parts.daemons.keep_telling())
        self.runner.task(keep_telling(self.parts, self.places.is_default))
        self.runner.task(keep_naming(self.parts, self.places.is_default))
        self.runner.task(self.launcher.bounding.measure())
        self.runner.task(fold_journal(self.parts, self.stop.amend))
        self.runner.task(finish_rotations(self.parts.rotator, self.parts.scribe, self.parts.notice, self.stop))
        envoy = asyncio.create_task(self._start_egress())
        self._start_remote()
        self.parts.scribe.record(started(self.places, self.guard_pid))
        try:
            await self.desk.end.wait()
        finally:
            self.follower.stop()
            for task in list(self.runner.tasks):
                task.cancel()
            envoy.cancel()
            await door.close()
            await hooks.close()
            await self.doors.close_all()
            await asyncio.to_thread(self.launcher.talk.close)
            await asyncio.to_thread(self._close)

    def _operators_app(self) -> App:
        tokens, redactor = self.parts.tokens, self.parts.keyring.redactor
        parts = self.parts
        secrets = SecretRoutes(self.core.agent_or_404, parts.scribe, parts.keyring, parts.rotator, self.doors.revoke, self.stop.correct)
        more = [*secrets.routes(), *program_routes(self.parts, self.launcher)]
        more += hook_routes(self.doors.hooks)
        more += policy_routes(PolicyReview(self.core, self.places, self.parts.scribe, self.policy), self.profiles, asked_by)
        more += policy_page_routes(PolicyLook(self.core, self.parts.scribe, self.policy))
        more += first_run_routes(self.parts, self.policy, self.doors, self.follower)
        routes = OperatorRoutes(self.desk, more)
        return hidden(watched(routes.app(), lambda token: tokens.accepts(token, "operator")), redactor)

    def _fits(self, request: LaunchRequest) -> None:
        parent = self.core.state.agents.get(request.parent_id) if request.parent_id else None
        self.parts.contexts.check(request.context_id or (parent.context_id if parent else ""))

    async def _freeze_session(self, context_id: str, why: str) -> None:
        """An operator thaws it, once there is room."""
        with suppress(NotFound, Conflict):  # nobody works in it
            await self.desk.ladder.act(Rung.FREEZE, Scope(Reach.SESSION, context_id), why, "supervisor")

    async def _freeze_agent(self, agent_id: AgentId, why: str) -> None:
        with suppress(NotFound, Conflict):  # it has ended
            done = await self.desk.ladder.act(Rung.FREEZE, Scope(Reach.AGENT, agent_id), why, "supervisor")
            if done.failed:
                raise ConsoleError("; ".join(done.failed.values())[:300], f"watchfloor kill {agent_id} stops it for certain.")

    async def _keep_contexts(self) -> None:
        """Workspaces are looked after; their metrics are served where that was asked for."""
        contexts = self.parts.contexts
        metrics = MetricsPort(contexts, self.options.workspaces.metrics_port, self.parts.witness.looked_at)
        try:
            if self.options.workspaces.metrics_port:
                try:
                    await metrics.open()
                except OSError as error:
                    self.parts.notice(f"metrics are not served: port {self.options.workspaces.metrics_port}: {error.strerror}")
            await contexts.keep(self._freeze_session)
        finally:
            await metrics.close()

    def _accepts_hooks(self, peer: Peer) -> bool:
        return may_hook(peer, self.places.instance_id, self._is_adopted)

    def _is_adopted(self, agent_id: str) -> bool:
        agent = self.core.state.agents.get(AgentId(agent_id))
        return agent is not None and agent.control_level is ControlLevel.ADOPTED

    def _accepts(self, peer: Peer) -> bool:
        accepted = is_operator(peer, self.places.instance_id)
        if not accepted:
            self.parts.trespasses.at_operators_door(peer)
        return accepted

    async def _start_egress(self) -> None:
        """Envoy beside everything else: until it is healthy PROXIED means no network (fail closed)."""
        egress = self.parts.egress
        await self.network.keep_from_the_kill_file()
        available = egress.available()
        if not available.ok:
            return
        try:
            await asyncio.to_thread(egress.start)
            applied = await self.network.put_live()
            if not applied.ok:
                self.parts.notice(f"Envoy did not take the allowlist: {applied.words}", "red")
            for agent_id in list(self.launcher.running):
                await self.launcher.cutter.reopen(agent_id)
        except (ConsoleError, OSError) as error:
            self.parts.notice(f"Envoy did not start: {error}. Agents in PROXIED have no network.", "red")

    def _start_remote(self) -> None:
        remote = self.parts.remote
        if remote is None or self.options.remote.lease == "alarm":
            self._end_lease(remote is None)
        if remote is None:
            return
        left = float(self.guard_status.get("lease_left_s") or 0.0)
        remote.start(RemoteEffects(self.parts, self.stop), left)

    def _end_lease(self, unconfigured: bool) -> None:
        """A host without a remote channel has no lease: one that was left from an earlier setting would freeze it for good."""
        guard = self.parts.guard
        try:
            if self.guard_status.get("lease_left_s") is not None:
                self.parts.scribe.record(Record("supervisor", "remote.lease_off", "the options ask for no lease", verdict="ok"))
                guard.call("lease", seconds=None)
            if unconfigured and self.guard_status.get("soft_stop"):
                self.parts.scribe.record(Record("supervisor", "remote.off", "no bucket is set any more: its soft stop ends", verdict="ok"))
                guard.call("soft_stop", on=False, why="remote kill is not configured any more")
        except ConsoleError as error:
            self.parts.notice(f"the lease of an earlier setting could not be ended: {error}")

    def _close(self) -> None:
        if self.parts.remote is not None:
            self.parts.remote.stop()
        with suppress(ConsoleError, OSError):
            self.parts.egress.stop()
        self.parts.scribe.record(Record("supervisor", "supervisor.ended", f"pid {os.getpid()}"))
        self.parts.scribe.close()
        self.parts.activity.end()
        self.parts.rollback.close()
        self.parts.contexts.close()
        if self.parts.spend is not None:
            self.parts.spend.end()
        self.stop_line.close()
        self.audit.close()
        self.ledger.close()
        with suppress(ConsoleError):
            self.parts.guard.call("heartbeat", planned_restart_s=120)


def _path(text: str) -> Path | None:
    return Path(text) if text else None


def _relays(status: dict[str, Any]) -> Path | None:
    """Where relays live, so that the guard can cut them by killing their cgroup; None without cgroups."""
    root = str((status.get("caps") or {}).get("cgroup", "")).removeprefix("v2 ")
    return Path(root) / "relays" if root else None
