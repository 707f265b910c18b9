"""What an operator can ask that is more than one call: status, fleet, audit; ladder and rollback have modules of their own."""

from __future__ import annotations

import asyncio
import os

from console import __version__
from console.api import messages as m
from console.domain.agent import Agent, AgentId
from console.services.fleet.core import now
from console.services.fleet.views import agent_view, receipt_row
from console.services.launch.exec_check import not_begun
from console.services.launch.service import Launcher
from console.services.network.review import ReviewDesk
from console.services.network.service import NetworkDesk
from console.services.rearm.passphrases import Passphrases
from console.services.rearm.relaunch import Relaunch
from console.services.rearm.service import Rearming
from console.services.records.audit_log import AuditDesk
from console.services.records.rollback import RollbackDesk
from console.services.stop.ladder import LadderDesk
from console.services.stop.service import StopDesk
from console.supervisor.follow import Follower
from console.supervisor.part_looks import PartLooks
from console.supervisor.parts import Parts

MAX_OUTPUT = 64 * 1024


class Desk:
    """The operator's side of one supervisor."""

    def __init__(
        self, parts: Parts, launcher: Launcher, stop: StopDesk, network: NetworkDesk, follower: Follower, ladder: LadderDesk
    ) -> None:
        self.parts, self.launcher, self.stop, self.network, self.follower = parts, launcher, stop, network, follower
        self.ladder = ladder
        self.review = ReviewDesk(parts.scribe, network)
        self.rollback = RollbackDesk(parts.scribe, parts.rollback, parts.core.name_of, parts.core.hub.publish)
        self.passphrases = Passphrases(parts.core, parts.scribe, parts.guard, parts.places, parts.notice, stop)
        self.relaunch = Relaunch(parts.core, parts.scribe, stop)
        self.rearming = Rearming(
            parts.core, parts.scribe, parts.guard, parts.places, stop, remote=parts.remote, tokens=parts.tokens, rotator=parts.rotator
        )
        self.end = asyncio.Event()
        self.audit = AuditDesk(parts.scribe, parts.places)
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

    async def status(self) -> m.StatusView:
        """The instance in one view."""
        parts = self.parts
        root = os.geteuid() == 0
        note = "" if root else "user mode: agents run under your own user id, so what holds them is best effort against one another"
        records = await asyncio.to_thread(self.audit.total)
        guard = self.follower.guard_status
        verdict, losses = self.audit.verdict, self.audit.losses
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
            audit_whole=False if losses.open else None if verdict is None or (verdict.whole and verdict.unknown) else verdict.whole,
            audit_why=losses.why or (verdict.why if verdict is not None else ""),
            audit_lost=bool(losses.open),
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
