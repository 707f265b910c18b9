"""The only place where ports meet adapters: one supervisor, built from its options, started and ended in order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from console.api.policy import policy_data
from console.domain.agent import AgentId, LaunchRequest, SandboxKind
from console.domain.engine.command import Command, Record
from console.domain.engine.event import Event
from console.domain.errors import Conflict, ConsoleError, NotFound
from console.domain.ids import ControlLevel
from console.domain.ladder import Reach, Rung, Scope
from console.domain.network import mapping_of
from console.enforcement.engine import Engine
from console.enforcement.state import Approvals, EngineState, SpawnLimits
from console.services.adoption.service import AdoptDesk, keep_adopted
from console.services.approvals.approval_runner import Approving
from console.services.approvals.dry_run import DryRunDesk
from console.services.approvals.service import ApprovalDesk
from console.services.budgets.burn_rate import BurnBook
from console.services.budgets.charts import Charts
from console.services.budgets.service import BudgetDesk
from console.services.configuration.routes import settings_routes
from console.services.configuration.service import SettingsDesk
from console.services.conversation.messaging import Conversations
from console.services.evidence.case import Evidence
from console.services.execute.judgement import CallJudging
from console.services.execute.service import ExecuteDesk
from console.services.fleet.core import Core
from console.services.fleet.meters import Meters
from console.services.hooks.service import hook_app, hook_routes
from console.services.launch.command_reach import preview_command
from console.services.launch.program_ending import Endings
from console.services.launch.program_reach import Outlooks
from console.services.launch.program_routes import program_routes
from console.services.launch.programs import Programs
from console.services.launch.service import Launcher, weigh
from console.services.launch.type_sources import TypeSources
from console.services.network.ratchet import TightenDesk
from console.services.network.review import ReviewDesk
from console.services.network.service import NetworkDesk
from console.services.policy.dangerous_operations import DangerDesk
from console.services.policy.exact_rules import ExactDesk, ExactRules
from console.services.policy.git_memory import GitMemory
from console.services.policy.page import PolicyLook
from console.services.policy.page_routes import policy_page_routes
from console.services.policy.profiles import Profiles
from console.services.policy.review import PolicyReview
from console.services.policy.routes import policy_routes
from console.services.policy.service import PolicyDesk
from console.services.policy.session_start import SessionStart
from console.services.rearm.passphrases import Passphrases
from console.services.rearm.relaunch import Relaunch
from console.services.rearm.service import Rearming
from console.services.records.audit_log import AuditDesk
from console.services.records.rollback import RollbackDesk
from console.services.records.storage_open import losses_found, started
from console.services.remote.effects import RemoteEffects
from console.services.routes.request_identity import asked_by
from console.services.routes.responses import Handlers
from console.services.secrets.rotation_resume import finish_rotations
from console.services.secrets.routes import SecretRoutes
from console.services.sessions.metrics import session_metrics_routes
from console.services.stop.journal_import import fold_journal
from console.services.stop.ladder import LadderDesk
from console.services.stop.later_steps import EvidenceStep, RemoteStep, RotateStep
from console.services.stop.line import StopLine
from console.services.stop.observed_targets import keep_naming, keep_telling
from console.services.stop.orphan_containers import OrphanContainers
from console.services.stop.service import StopDesk
from console.services.webhook.routes import webhook_routes
from console.settings.layers import Effective
from console.settings.options import Options
from console.settings.places import Places, make_run_dir
from console.supervisor.agent_door import AgentDoors
from console.supervisor.first_run import first_run_routes
from console.supervisor.follow import Follower, OneForAll
from console.supervisor.http.access import Presence
from console.supervisor.http.asgi import App, Door
from console.supervisor.http.members import members_doors
from console.supervisor.http.peers import Peer, is_operator, may_hook
from console.supervisor.http.polkit import Polkit
from console.supervisor.http.redaction import hidden
from console.supervisor.http.token_watch import watched
from console.supervisor.machinery import Machinery
from console.supervisor.metrics import Metrics, metrics_routes
from console.supervisor.operator_routes import OperatorRoutes
from console.supervisor.restore import restore
from console.supervisor.runner import Runner
from console.supervisor.status_service import PartLooks, StatusService

log = logging.getLogger(__name__)
THREADS = 32


class Supervisor:
    """One instance's supervisor. ``run`` returns when it was asked to end."""

    def __init__(self, places: Places, settings: Effective) -> None:
        self.places, self.options = places, (options := settings.options)
        self.ended_idle, self.presence = False, Presence()
        self.end = asyncio.Event()
        """Set: ``run`` ends."""
        make_run_dir(places)
        meters = Meters(beside=lambda: self.machinery.spend.today_usd)
        self.core = Core(Engine(_state_of(options)), _Ports(self), meters=meters)
        self.machinery = it = Machinery(places, options, self.core, self._relay_died)
        notice, above = it.notice, self.core.state.agents.get
        self.settings = SettingsDesk(places, settings, it.scribe, notice)
        self.audit = AuditDesk(it.scribe, places)
        self.types = types = TypeSources(it.ledger, places, options)
        self.dangers = dangers = DangerDesk(places, it.scribe, notice)
        git = GitMemory(SessionStart(it.ledger, above))
        self.profiles = Profiles(self.core.state.profiles, it.ledger, it.scribe, types)
        self.exact = ExactRules(it.ledger)
        known = (types.declared_of, types.type_of, git.of, self.profiles, self.exact)
        self.policy = PolicyDesk(places, partial(notice, level="red"), dangers.list.current, above, *known)
        approving = Approving(self.core, it.scribe, it.keyring, notice, self.policy)
        judging = CallJudging(self.core, approving, self.policy.judgement)
        execute = ExecuteDesk(self.core, it.scribe, it.guard, it.rollback, it.keyring, places, options, notice, judging)
        cgroups = bool((it.guard_status.get("caps") or {}).get("cgroup"))
        self.doors = AgentDoors(places, self.core, it.scribe, it.trespasses, it.tokens, execute, cgroups=cgroups)
        self.stop_line = StopLine(places)
        self.stop = self._make_stop()
        self.follower = self._make_follower()
        look, counting = self.follower.look_at_guard, self.follower.counting
        self.ladder = LadderDesk(
            self.core, it.scribe, it.guard, places, it.egress, self.stop, daemons=it.daemons, counting=counting, look_at_guard=look
        )
        self.launcher = self._make_launcher()
        self.network = NetworkDesk(self.core, it.scribe, it.egress, options, notice, it.ledger.allowlist())
        self.burn = BurnBook()
        self.runner = Runner(
            self.core,
            it.scribe,
            places,
            notice,
            keyring=it.keyring,
            rollback=it.rollback,
            burn=self.burn,
            launcher=self.launcher,
            stop=self.stop,
            network=self.network,
            approving=approving,
        )

    def _make_follower(self) -> Follower:
        it = self.machinery
        return Follower(
            self.core,
            it.scribe,
            it.guard,
            self.places,
            self.options,
            it.notice,
            self.stop,
            remote=it.remote,
            sources=it.sources,
            spend=it.spend,
            own_agents=it.own_agents,
            engine=it.sandboxes[SandboxKind.DOCKER].available,
            rotator=it.rotator,
            witness=it.witness,
            light=it.alerts.light,
        )

    def _make_stop(self) -> StopDesk:
        it, redact = self.machinery, self.machinery.keyring.redactor.redact_data
        return StopDesk(
            self.core,
            it.scribe,
            it.guard,
            self.places,
            it.notice,
            self.stop_line,
            EvidenceStep(self.core, self.stop_line, Evidence(self.core, it.witness, self.places, it.ledger, self.options.evidence, redact)),
            daemons=it.daemons,
            hunt=it.hunt,
            remote=RemoteStep(self.core, it.remote, self.options.stand_ins),
            later=(RotateStep(it.rotator),),
            redact=redact,
        )

    def _make_launcher(self) -> Launcher:
        it, places, options, notice = self.machinery, self.places, self.options, self.machinery.notice
        told = [it.activity.on_event]
        return Launcher(
            self.core,
            it.scribe,
            it.guard,
            places,
            options,
            it.sandboxes,
            it.egress,
            notice,
            contexts=it.contexts,
            hunt=it.hunt,
            tokens=it.tokens,
            sockets=self.doors,
            hooks=self.doors.hooks,
            dangers=self.dangers,
            sources=self.types,
            talk=Conversations(self.core, it.scribe, places, options, notice, freeze=self._freeze_agent, listeners=told),
            look_at_guard=OneForAll(self.follower.look_at_guard).ask,
        )

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
            self.machinery.guard.call("quit")

    async def run(self, on_ready: Callable[[], None] = lambda: None) -> None:
        """Starts everything, serves until asked to end, ends in order. Agents and guard outlive a restart."""
        self.core.loop = asyncio.get_running_loop()
        # The default is six on a small machine; what waits on a slow disk or engine must not keep everything else waiting.
        self.core.loop.set_default_executor(self.stop_line.pool(THREADS, "blocking"))
        await asyncio.to_thread(self.stop_line.start)
        rules = asyncio.create_task(asyncio.to_thread(policy_data.read_all))
        lost = await asyncio.to_thread(losses_found, self.places, self.machinery.set_aside, self.machinery.ledger_lost)
        await restore(self)
        app, it = self._operators_app(), self.machinery
        doors = [Door(self.places.operator_sock, app, self._accepts, mode=0o600)]
        doors += members_doors(self.places, app, self.options.agents.uid, it.trespasses, it.notice)
        doors.append(Door(self.places.hooks_sock, hook_app(self.doors.hooks), self._accepts_hooks, mode=0o600))
        await asyncio.to_thread(self._start_remote)  # before anybody can ask: a host that has not read its kill file starts nothing
        for door in doors:
            await door.open()
        self.machinery.tell_losses(lost)
        await asyncio.to_thread(self.settings.begin)
        if lost:
            await asyncio.to_thread(self.audit.see_losses)
        await rules
        on_ready()
        self.machinery.activity.start()
        self.follower.start()
        self.stop_line.standing.stand()
        self.runner.task(self.stop_line.keep_ahead())
        self.runner.task(self.runner.look_after())
        self.runner.task(self.machinery.contexts.keep(self._freeze_session))
        self.runner.task(self.settings.keep_looking())
        self.runner.task(keep_adopted(self.core, self.machinery.guard))
        orphans = OrphanContainers(self.core, self.machinery.guard, self.machinery.scribe, self.places, self.options, self.stop)
        self.runner.task(orphans.keep_tidy())
        self.runner.task(self.machinery.daemons.keep_telling())
        self.runner.task(keep_telling(self.core.state, self.machinery.guard, self.options, is_default=self.places.is_default))
        self.runner.task(keep_naming(self.core.state, self.machinery.guard, self.options, is_default=self.places.is_default))
        self.runner.task(self.launcher.bounding.measure())
        self.runner.task(self.machinery.webhook.run())
        self.runner.task(fold_journal(self.places, self.machinery.scribe, self.stop.amend))
        self.runner.task(finish_rotations(self.machinery.rotator, self.machinery.scribe, self.machinery.notice, self.stop))
        envoy = asyncio.create_task(self._start_egress())
        self.machinery.scribe.record(started(self.places, self.machinery.guard_pid))
        try:
            await self.end.wait()
        finally:
            self.follower.stop()
            for task in list(self.runner.tasks):
                task.cancel()
            envoy.cancel()
            for door in doors:
                await door.close()
            await self.doors.close_all()
            await asyncio.to_thread(self.launcher.talk.close)
            await asyncio.to_thread(self.machinery.close, self.stop_line.close)

    def _operators_app(self) -> App:
        it, core, tokens = self.machinery, self.core, self.machinery.tokens
        known = (core, self.places, self.settings, it.notices, self.follower, self.stop, self.audit)
        status = StatusService(*known, remote=it.remote, engines=self._engines(), webhook=it.webhook.view)
        rearming = Rearming(core, it.scribe, it.guard, self.places, self.stop, remote=it.remote, tokens=tokens, rotator=it.rotator)
        routes = OperatorRoutes(
            core=core,
            scribe=it.scribe,
            places=self.places,
            tokens=tokens,
            trespasses=it.trespasses,
            polkit=Polkit(it.scribe.record, lambda: {a.process.pid for a in core.state.agents.values() if a.state.is_live and a.process}),
            egress=it.egress,
            status=status,
            audit=self.audit,
            rollback=RollbackDesk(it.scribe, it.rollback, core.name_of, core.hub.publish),
            launcher=self.launcher,
            stop=self.stop,
            ladder=self.ladder,
            rearming=rearming,
            passphrases=Passphrases(core, it.scribe, it.guard, self.places, it.notice, self.stop),
            relaunch=Relaunch(core, it.scribe, self.stop),
            network=self.network,
            review=ReviewDesk(it.scribe, self.network),
            tighten=TightenDesk(core, it.scribe),
            approvals=ApprovalDesk(core, it.scribe, self.options.approvals.denial_needs_reason),
            dry_runs=DryRunDesk(core, it.scribe),
            adoption=AdoptDesk(core, it.scribe, it.guard, it.daemons, self.places.state_dir, it.notice, self.follower.look_at_guard),
            budgets=BudgetDesk(core, it.scribe, self.burn),
            charts=Charts(core, it.scribe, self.burn, self.places, self.options),
            contexts=it.contexts,
            activity=it.activity,
            hunt=it.hunt,
            end=self.end,
            more=self._more_routes(),
        )
        watching = watched(routes.app(), lambda token: tokens.accepts(token, "operator"))
        return self.presence.noting(hidden(watching, it.keyring.redactor))

    def _engines(self) -> PartLooks:
        boxes = {kind.value if kind.value != "none" else "managed": box.available for kind, box in self.machinery.sandboxes.items()}
        return PartLooks(boxes | {"envoy": self.machinery.egress.available})

    def _more_routes(self) -> Handlers:
        it = self.machinery
        secrets = SecretRoutes(self.core.agent_or_404, it.scribe, it.keyring, it.rotator, self.doors.revoke, self.stop.correct)
        more = secrets.routes() | self._program_routes() | hook_routes(self.doors.hooks)
        review = PolicyReview(self.core, self.places, it.scribe, self.policy, self.exact)
        more |= policy_routes(review, self.profiles, ExactDesk(self.core, it.scribe, self.policy, self.exact), asked_by)
        more |= policy_page_routes(PolicyLook(self.core, it.scribe, self.policy))
        more |= settings_routes(self.settings, asked_by)
        more |= metrics_routes(Metrics(self.core, self.stop, it.scribe, self.follower.armed))
        more |= session_metrics_routes(it.contexts, it.witness.looked_at) | webhook_routes(it.webhook, it.alerts.test)
        return more | first_run_routes(self.places, self.options, self.policy, self.doors, self.follower)

    def _program_routes(self) -> Handlers:
        it, launcher = self.machinery, self.launcher
        outlooks = Outlooks(self.core, self.machinery.ledger, self.places, self.options, self.types)
        programs = Programs(outlooks, it.sandboxes, it.egress.available, launcher.dangers, launcher.talk, launcher.words)
        endings = Endings(self.core, it.guard, it.scribe, it.notice, launcher.talk)
        return program_routes(programs, endings, lambda body: preview_command(outlooks, it.sandboxes, body, launcher.dangers))

    async def _freeze_session(self, context_id: str, why: str) -> None:
        """An operator thaws it, once there is room."""
        with suppress(NotFound, Conflict):  # nobody works in it
            await self.ladder.act(Rung.FREEZE, Scope(Reach.SESSION, context_id), why, "supervisor")

    async def _freeze_agent(self, agent_id: AgentId, why: str) -> None:
        with suppress(NotFound, Conflict):  # it has ended
            done = await self.ladder.act(Rung.FREEZE, Scope(Reach.AGENT, agent_id), why, "supervisor")
            if done.failed:
                raise ConsoleError("; ".join(done.failed.values())[:300], f"watchfloor kill {agent_id} stops it for certain.")

    def _accepts_hooks(self, peer: Peer) -> bool:
        return may_hook(peer, self.places.instance_id, self._is_adopted)

    def _is_adopted(self, agent_id: str) -> bool:
        agent = self.core.state.agents.get(AgentId(agent_id))
        return agent is not None and agent.control_level is ControlLevel.ADOPTED

    def _accepts(self, peer: Peer) -> bool:
        accepted = is_operator(peer, self.places.instance_id)
        if not accepted:
            self.machinery.trespasses.at_operators_door(peer)
        return accepted

    async def _start_egress(self) -> None:
        """Envoy beside everything else: until it is healthy PROXIED means no network (fail closed)."""
        egress = self.machinery.egress
        await self.network.keep_from_the_kill_file()
        available = egress.available()
        if not available.ok:
            return
        try:
            await asyncio.to_thread(egress.start)
            applied = await self.network.put_live()
            if not applied.ok:
                self.machinery.notice(f"Envoy did not take the allowlist: {applied.words}", "red")
            for agent_id in list(self.launcher.running):
                await self.launcher.cutter.reopen(agent_id)
        except (ConsoleError, OSError) as error:
            self.machinery.notice(f"Envoy did not start: {error}. Agents in PROXIED have no network.", "red")

    def _start_remote(self) -> None:
        remote = self.machinery.remote
        if remote is None or self.options.remote.lease == "alarm":
            self._end_lease(remote is None)
        if remote is None:
            return
        left = float(self.machinery.guard_status.get("lease_left_s") or 0.0)
        it = self.machinery
        effects = RemoteEffects(self.core, it.scribe, it.guard, self.places, it.notice, remote, self.stop, self.options.remote.lease)
        remote.start(effects, left)

    def _end_lease(self, unconfigured: bool) -> None:
        """A host without a remote channel has no lease: one that was left from an earlier setting would freeze it for good."""
        guard = self.machinery.guard
        try:
            if self.machinery.guard_status.get("lease_left_s") is not None:
                self.machinery.scribe.record(Record("supervisor", "remote.lease_off", "the options ask for no lease", verdict="ok"))
                guard.call("lease", seconds=None)
            if unconfigured and self.machinery.guard_status.get("soft_stop"):
                words = "no bucket is set any more: its soft stop ends"
                self.machinery.scribe.record(Record("supervisor", "remote.off", words, verdict="ok"))
                guard.call("soft_stop", on=False, why="remote kill is not configured any more")
        except ConsoleError as error:
            self.machinery.notice(f"the lease of an earlier setting could not be ended: {error}")


class _Ports:
    """What the loop asks of services that are made after it."""

    __slots__ = ("_it",)

    def __init__(self, it: Supervisor) -> None:
        self._it = it

    def run(self, command: Command) -> None:
        self._it.runner.run(command)

    def check(self, request: LaunchRequest) -> None:
        self._it.settings.refuse_start()
        parent = self._it.core.state.agents.get(request.parent_id) if request.parent_id else None
        self._it.machinery.contexts.check(request.context_id or (parent.context_id if parent else ""))

    def shape(self, request: LaunchRequest) -> LaunchRequest:
        return self._it.types.shape(request)

    async def weigh(self, request: LaunchRequest, by: str) -> None:
        await weigh(self._it.dangers, request, by)

    def heard(self, step: Event | Command) -> None:
        self._it.machinery.activity.heard(step)
        try:
            self._it.machinery.alerts.heard(step)
        except Exception:  # the engine's commands must be carried out, whatever becomes of an alert
            log.exception("an alert was lost")


def _state_of(options: Options) -> EngineState:
    return EngineState(
        spawn=SpawnLimits(max_depth=options.spawn.max_depth, max_children=options.spawn.max_children),
        modes=mapping_of(options.network.modes),
        scopes=tuple(options.agents.scopes),
        notice=options.network.notice,
        approvals=Approvals(ttl_s=options.approvals.ttl_s, waiting_max=options.approvals.waiting_max),
    )
