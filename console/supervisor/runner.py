"""Carries out what the engine commands. The only place where a command becomes an effect."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, assert_never

from console.audit.rollback_rows import FACTS_FIELD
from console.credentials.keyring_store import Store
from console.domain.calls.permission import Decision, Verdict
from console.domain.engine import command as c
from console.domain.engine import dry_run as d
from console.domain.errors import ConsoleError, Denied, NotFound, UsageProblem
from console.domain.ids import ControlLevel
from console.domain.network import NetworkMode
from console.domain.process.failpoints import failpoint
from console.domain.rollback import RollbackKind, RollbackRecord
from console.egress.url_test import judge_url
from console.ledger.network_history import NetworkChange
from console.rollback.store import RollbackStore
from console.services.alerts.halt_notice import leave_notes
from console.services.approvals.approval_runner import Approving
from console.services.approvals.dry_run_runner import Planning
from console.services.budgets.burn_rate import BurnBook
from console.services.fleet.core import Core, wait_beat
from console.services.launch.service import Launcher
from console.services.network.service import NetworkDesk
from console.services.notices.shown import Notice
from console.services.policy.sequence_marks import Tainting
from console.services.records.record_writer import Scribe
from console.services.stop.service import StopDesk
from console.settings.places import Places

log = logging.getLogger(__name__)
LOOK_AFTER_S = 120.0


class Runner:
    """Dispatches commands; what blocks runs in threads, what must be ordered goes through the scribe."""

    def __init__(
        self,
        core: Core,
        scribe: Scribe,
        places: Places,
        notice: Notice,
        *,
        keyring: Store,
        rollback: RollbackStore,
        burn: BurnBook,
        launcher: Launcher,
        stop: StopDesk,
        network: NetworkDesk,
        approving: Approving,
    ) -> None:
        self._core, self._scribe, self._places, self._notice, self._rollback, self._burn = core, scribe, places, notice, rollback, burn
        self._launcher, self._stop, self._network = launcher, stop, network
        self.approving, self.tainting = approving, Tainting(core, scribe)
        self.planning = Planning(core, scribe, keyring, notice, self._of_url)
        self.tasks: set[asyncio.Task[None]] = set()
        self.unseen_after: dict[str, float] = {}
        """Rollback records whose action was allowed but not seen on disk yet, with the moment of the allow."""

    def run(self, command: c.Command) -> None:
        """One command; returns at once."""
        match command:
            case c.ShowAgent(agent):
                self._core.dirty.add(agent.agent_id)
                self._scribe.agent(agent)
            case c.NoteEvent(agent_id, kind, text):
                self._scribe.event(agent_id, time.time(), kind, text)
            case c.Record():
                self._scribe.record(command)
            case c.TellAgent(agent_id, kind, text):
                at = time.time()
                self._core.untold.add(agent_id, text)
                self._scribe.job(lambda: self._scribe.ledger.add_notice(agent_id, at, kind, text))
            case c.KeepNetworkChange(agent_id, context_id, at, what, mode, by, words, enforced, ms):
                change = NetworkChange(at, what, by, words, agent_id, mode, enforced=enforced, ms=ms)
                self._scribe.network(context_id, change)
            case c.RefuseLaunch(agent_id, error, _by):
                self._core.settle_launch(agent_id, error)
            case c.KeepBooks() | c.Charged() | c.Announce() | c.AnswerReservation() | c.WriteHaltNote():
                self._of_budgets(command)
            case c.AnswerPermission(agent_id, request_id, decision):
                self._answer(agent_id, request_id, decision)
            case c.ShowApproval(approval):
                self.approving.show(approval)
            case _:
                self._later(command)

    def _of_budgets(self, command: c.KeepBooks | c.Charged | c.Announce | c.AnswerReservation | c.WriteHaltNote) -> None:
        match command:
            case c.KeepBooks():
                self._scribe.books(command)
            case c.Charged(boot_s, nodes, spent):
                self._burn.add(nodes, spent, boot_s)
            case c.Announce(text, level):
                self._notice(text, level)
            case c.AnswerReservation(reservation_id, refused):
                self._core.settle_answer(reservation_id, refused)
            case c.WriteHaltNote():
                self.task(self._halt_note(command))
            case _:
                assert_never(command)

    def _later(self, command: c.Command) -> None:
        match command:
            case c.StartAgent():
                self.task(self._launcher.start(command))
            case c.HaltAgents(agent_ids, reason):
                self.task(self._stop.halt(agent_ids, reason))
            case c.SwitchNetwork(agent_id, _mode, _why):
                self._core.switching[agent_id] = self.task(self._launcher.cutter.switch(command))
            case c.CutEgress(agent_id):
                self._core.switching[agent_id] = self.task(self._launcher.cutter.cut(agent_id))
            case c.GiveEgress(agent_id):
                self._core.switching[agent_id] = self.task(self._launcher.cutter.give(agent_id))
            case c.LeaveAgent(agent_id):
                self.task(self._launcher.leaving.add(agent_id))
            case _:
                self._asked(command)

    def _asked(self, command: c.Command) -> None:
        """What an agent's question leads to."""
        match command:
            case c.JudgeCall():
                self.task(self.approving.judged(command))
            case c.KeepApproval():
                self.task(self.approving.keep(command))
            case c.KeepMarks():
                self.task(self.tainting.keep(command))
            case c.UseApproval():
                self.task(self.approving.use(command))
            case c.EndGrants():
                self.task(self.approving.end_grants(command))
            case c.TakeBackApproval():
                self.task(self.approving.take_back(command))
            case c.SnapshotThenAnswer():
                self.task(self._snapshot(command))
            case c.JudgeUrl():
                self._judge_url(command)
            case d.PlanCall() | d.NoteRefused() | d.UseRelease() | d.EndPlans():
                self.task(self.planning.carry_out(command))
            case _:
                assert_never(command)  # type: ignore[arg-type]

    def task(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Runs it in the background; an error is logged and shown, never lost."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a command failed", exc_info=error)
            self._notice(f"a command failed inside the supervisor: {error}", "red")

    def _answer(self, agent_id: str, request_id: str, decision: Decision) -> None:
        self._core.settle_answer(request_id, decision)
        record = c.Record(f"agent:{agent_id}", "permission", decision.rule, verdict=decision.verdict, agent_id=agent_id)
        self._scribe.record(replace(record, what=f"{decision.rule}: {decision.reason}", data={"request_id": request_id}))

    async def _halt_note(self, command: c.WriteHaltNote) -> None:
        agents = [a for i in command.agent_ids if (a := self._core.state.agents.get(i)) is not None]
        places = self._places
        failed = await asyncio.to_thread(leave_notes, places.output_dir, places.workspaces_dir, agents, command.at, command.reason)
        if failed:
            self._notice(f"the reason of the halt could not be written beside its work: {failed}")

    async def _snapshot(self, command: c.SnapshotThenAnswer) -> None:
        """Record and snapshot on disk, then the audit entry, then the allow: nothing acts unrecorded (promise 5)."""
        try:
            record, what, data = await asyncio.to_thread(self._keep, command)
            entry = c.Record(f"agent:{command.agent_id}", "permission", what, verdict="allow", agent_id=command.agent_id, data=data)
            await asyncio.to_thread(self._scribe.record_first, entry)
            failpoint("snapshot.audited")
        except (ConsoleError, OSError) as error:
            decision = Decision(Verdict.DENY, "rollback record", f"no snapshot, no action: {error}")
            self._answer(command.agent_id, command.request_id, decision)
            return
        if record is not None:
            self.unseen_after[record.record_id] = time.monotonic()
            self._core.hub.publish("rollback", {"record_id": record.record_id, "state": record.state.value})
        self._core.settle_answer(
            command.request_id, replace(command.decision, rollback_id=record.record_id if record is not None else None)
        )
        self._scribe.event(command.agent_id, time.time(), "permission", f"allowed {what}")

    def _keep(self, command: c.SnapshotThenAnswer) -> tuple[RollbackRecord | None, str, dict[str, object]]:
        """(the record, what is allowed in words, data of its audit entry). Blocks."""
        agent = self._core.state.agents.get(command.agent_id)
        data: dict[str, object] = {"request_id": command.request_id}
        try:
            record = self._rollback.snapshot(command.agent_id, command.context_id, RollbackKind(command.destructive), command.path)
        except (Denied, NotFound) as error:
            # A program that was only seen works in its owner's folders, which the store does not hold: denied, it could edit nothing.
            if agent is None or agent.control_level not in (ControlLevel.OBSERVED, ControlLevel.ADOPTED):
                raise
            return None, f"{command.destructive} {command.path[:4096]}; no copy of it is kept", data | {"not_kept": error.what}
        failpoint("snapshot.recorded")
        return (
            record,
            f"{command.destructive} {record.path}",
            data | {"rollback_id": record.record_id, FACTS_FIELD: {record.record_id: record.facts_sha256}},
        )

    async def look_after(self) -> None:
        """Reads what allowed actions left on disk, so that a restore can tell it from a later change. Forever."""
        while True:
            await wait_beat(0.5)
            for record_id, at in list(self.unseen_after.items()):
                try:
                    seen = (await asyncio.to_thread(self._rollback.note_after, record_id)).after_known
                except ConsoleError as error:
                    log.warning("what %s left could not be read: %s", record_id, error)
                    seen = False
                if seen or time.monotonic() - at > LOOK_AFTER_S:
                    del self.unseen_after[record_id]
                    self._core.hub.publish("rollback", {"record_id": record_id, "state": "seen" if seen else "unknown"})

    def _judge_url(self, command: c.JudgeUrl) -> None:
        self._answer(command.agent_id, command.request_id, self._of_url(command.url, command.mode))

    def _of_url(self, url: str, mode: NetworkMode) -> Decision:
        """What the network says of a URL now; on the loop's thread."""
        if not mode.has_portal:
            verdict, why = (Verdict.DENY, "no destination can be reached") if mode.is_closed else (Verdict.ALLOW, "not inspected")
            return Decision(verdict, f"network {mode}", why)
        try:
            judged = judge_url(self._network.allowlist, "GET", url)
        except UsageProblem as error:
            return Decision(Verdict.DENY, "allowlist", error.what)
        return Decision(Verdict.ALLOW if judged.allowed else Verdict.DENY, "allowlist", judged.reason)
