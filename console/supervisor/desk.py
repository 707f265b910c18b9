"""What an operator can ask that is more than one call: status, fleet, rearm, audit; ladder and rollback have modules of their own."""

from __future__ import annotations

import asyncio
import os
import time

from console import __version__
from console.api import messages as m
from console.audit.judging import beside
from console.audit.older import ACKNOWLEDGED, losses_of
from console.domain.agent import Agent, AgentId
from console.domain.command import Record
from console.domain.errors import Conflict
from console.services.fleet.core import now
from console.services.fleet.views import agent_view, receipt_row
from console.services.network.review import ReviewDesk
from console.services.network.service import NetworkDesk
from console.supervisor.begun import not_begun
from console.supervisor.follow import Follower
from console.supervisor.ladder import LadderDesk
from console.supervisor.launch import Launcher
from console.supervisor.part_looks import PartLooks
from console.supervisor.parts import Parts
from console.supervisor.rearm import RearmAsk, unlatch
from console.supervisor.rollback_desk import RollbackDesk
from console.supervisor.stop import StopDesk

MAX_OUTPUT = 64 * 1024

RECORDS_S = 2.0
"""How long whoever reads the audit waits for what is being written: a disk that hangs holds up no reader."""


class Desk:
    """The operator's side of one supervisor."""

    def __init__(self, parts: Parts, launcher: Launcher, stop: StopDesk, network: NetworkDesk, follower: Follower) -> None:
        self.parts, self.launcher, self.stop, self.network, self.follower = parts, launcher, stop, network, follower
        self.ladder = LadderDesk(parts, stop, follower)
        self.review = ReviewDesk(parts.scribe, network)
        self.rollback = RollbackDesk(parts, self.name_of)
        self.end = asyncio.Event()
        self._verdict: m.AuditVerdict | None = None
        self._losses = losses_of(parts.places.audit_db)
        boxes = {kind.value if kind.value != "none" else "managed": box.available for kind, box in parts.sandboxes.items()}
        self._engines = PartLooks(boxes | {"envoy": parts.egress.available})

    # --- reads

    def fleet(self) -> m.FleetView:
        """Every agent, with totals."""
        core = self.parts.core
        self.follower.deltas.forget()
        at, _ = now()
        agents = [agent_view(a, core.state, core.meters, at) for a in core.state.agents.values()]
        return m.FleetView(
            killed=core.state.killed,
            kill_reason=core.state.kill_reason,
            agents=agents,
            spend_today_usd=round(core.meters.spent_today(at), 6),
            spend_unknown=sum(1 for a in agents if a.cost_usd is None and a.ended_at is None),
            burn_usd_per_h=round(core.meters.rate(at, core.state.spending), 4),
            seq=core.hub.seq,
        )

    def name_of(self, agent_id: str) -> str:
        """The agent's name, or nothing."""
        agent = self.parts.core.state.agents.get(AgentId(agent_id))
        return agent.name if agent else ""

    async def status(self) -> m.StatusView:
        """The instance in one view."""
        parts = self.parts
        root = os.geteuid() == 0
        note = "" if root else "user mode: agents run under your own user id, so what holds them is best effort against one another"
        records = await asyncio.to_thread(parts.scribe.audit.total)
        guard = self.follower.guard_status
        verdict = self._verdict
        return m.StatusView(
            instance=parts.places.instance_id,
            host=parts.options.host(),
            version=__version__,
            state_dir=str(parts.places.state_dir),
            mode="root" if root else "user",
            mode_note=note,
            killed=parts.core.state.killed,
            soft_stop=parts.core.state.soft_stop,
            profiles=dict(parts.core.state.profiles.chosen),
            pid=os.getpid(),
            guard_pid=guard.get("pid"),
            guard_ok=bool(guard.get("ok")),
            guard_detail=str(guard.get("error", "")),
            stand_ins=parts.options.stand_ins,
            sources=self.follower.source_views(),
            engines=await self._engines.words(),
            audit_records=records,
            audit_whole=False if self._losses.open else None if verdict is None or (verdict.whole and verdict.unknown) else verdict.whole,
            audit_why=self._losses.why or (verdict.why if verdict is not None else ""),
            audit_lost=bool(self._losses.open),
            audit_checked_at=verdict.checked_at if verdict else None,
            audit_verified=verdict.records if verdict else None,
            operator=f"uid {os.geteuid()}",
            notices=parts.notices.lines(10) + [str(n) for n in guard.get("notices", [])],
            armed=self.follower.armed(),
        )

    def can(self, agent: Agent) -> dict[str, str]:
        """Which actions are possible on an agent, and why the others are not."""
        return self.ladder.can(agent.agent_id)

    def output(self, agent_id: AgentId, offset: int) -> tuple[bytes, int]:
        """(bytes from ``offset``, total size) of what the agent wrote."""
        path = self.parts.places.output_dir / f"{agent_id}.log"
        try:
            with path.open("rb") as out:
                total = os.fstat(out.fileno()).st_size
                out.seek(min(offset, total))
                return out.read(MAX_OUTPUT), total
        except FileNotFoundError:
            return b"", 0

    async def not_begun(self, agent_id: AgentId) -> tuple[str, str]:
        """(why the program of an agent that was just let go could not be executed, what is not known of that)."""
        running, agents = self.launcher.running.get(agent_id), self.parts.core.state.agents
        prepared = running.prepared if running is not None else None
        return await not_begun(prepared, lambda: agents[agent_id], lambda: self.output(agent_id, 0)[0].decode(errors="backslashreplace"))

    async def kill_switch(self) -> m.KillSwitchView:
        """State, paths and what a press will do now."""
        parts, core = self.parts, self.parts.core
        armed = self.follower.armed()
        receipts = self.stop.receipts()
        last = next((r for r in receipts if r.scope == "all"), None)
        press: dict[str, dict[str, int]] = {}
        for agent_id in core.state.live:
            agent = core.state.agents[agent_id]
            level = "best_effort" if core.state.best_effort.get(agent_id) else agent.control_level.value
            row = press.setdefault(level, {"agents": 0, "processes": 0})
            row["agents"] += 1
            row["processes"] += core.state.pids.get(agent_id, 1)
        killed = core.state.killed
        state: str = armed.state
        if killed:
            state = "killed" if last is None or last.complete else "killing"
        return m.KillSwitchView(
            state=state,  # type: ignore[arg-type]
            killed=killed,
            kill_id=last.kill_id if killed and last else "",
            reason=core.state.kill_reason,
            by=last.by if killed and last else "",
            since=last.pressed_at if killed and last else None,
            soft_stop=core.state.soft_stop,
            remote_latched=parts.remote.latched() if parts.remote else [],
            worst_s=armed.worst_s,
            paths=armed.paths,
            press=press,
            receipts=[receipt_row(r) for r in receipts[:50]],
            hosts=parts.remote.hosts if parts.remote else [],
            mode_note="" if os.geteuid() == 0 else "user mode: best effort, agents share your user id",
            passphrase=str((self.follower.guard_status.get("rearm") or {}).get("passphrase", "unknown")),
        )

    # --- rearm

    async def rearm(self, ask: RearmAsk) -> str:
        """Releases a local kill: refused while a remote order is latched, or while anything is not proven dead. Gives an amber note."""
        core = self.parts.core
        if not core.state.killed:
            raise Conflict("Nothing is killed: there is nothing to rearm.", "watchfloor status shows the state.")
        if any(r.scope == "all" and not r.complete for r in self.stop.receipts()):
            raise Conflict("The kill is still being carried out.", "Wait for its receipt, then rearm.")
        if self.stop.writing.locked():
            raise Conflict("The kill is being written to the bucket right now.", "Wait a moment, then rearm.")
        async with self.stop.turn, self.stop.writing:
            return await unlatch(self.parts, self.stop, ask)

    # --- audit

    def audit_page(self, before: int | None, limit: int, query: str) -> m.AuditPage:
        """A page of records, newest first, with those of whatever acted before it was asked for. Blocks."""
        self.parts.scribe.settle(RECORDS_S)  # what only stops is recorded after it acted
        audit = self.parts.scribe.audit
        rows = [m.AuditRow(**{n: getattr(r, n) for n in m.AuditRow.model_fields}) for r in audit.page(before, limit, query)]
        total = audit.total()
        return m.AuditPage(rows=rows, total=total, newest=total)

    def see_losses(self) -> None:
        """The status tells from now on what the log says of losses. Blocks."""
        self.parts.scribe.settle(RECORDS_S)
        self._losses = losses_of(self.parts.places.audit_db)

    def acknowledge_loss(self, reason: str, by: str) -> m.AuditVerdict:
        """An operator takes note of every loss so far; recorded first. Raises Conflict when there is none. Blocks."""
        losses = losses_of(self.parts.places.audit_db)
        if not losses.open:
            raise Conflict("There is no loss to acknowledge.", "watchfloor audit verify tells what the record is compared with.")
        self.parts.scribe.record_first(Record(by, ACKNOWLEDGED, reason, data={"newest_loss": losses.newest}))
        self._losses = losses_of(self.parts.places.audit_db)
        return self.audit_verify()

    def audit_verify(self) -> m.AuditVerdict:
        """Checks the whole chain, and what else here remembers it. Blocks."""
        self.parts.scribe.settle(5.0)
        found, unknown = self.parts.scribe.audit.verify(), list[str]()
        if found.whole:
            judged = beside(self.parts.places, found)
            found, unknown = judged.verdict, list(judged.unknown)
        self._verdict = m.AuditVerdict(
            whole=found.whole,
            records=found.records,
            first_bad=found.first_bad,
            why=found.why,
            head=found.head,
            checked_at=time.time(),
            unknown=unknown,
        )
        return self._verdict


async def tell_losses(lost: list[Record], parts: Parts, desk: Desk) -> None:
    """What a start found lost is recorded, shown, and in the status from now on."""
    for record in lost:
        parts.scribe.record(record)
        parts.notice(record.what, "red")
    if lost:
        await asyncio.to_thread(desk.see_losses)
