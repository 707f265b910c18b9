"""What an operator can ask of the whole instance: its status, its agents, its kill switch."""

from __future__ import annotations

import asyncio
import os
import pwd
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from console import __version__
from console.api import messages as m
from console.api.alerts import AlertsView, WebhookView
from console.domain.budget import last_midnight
from console.domain.ids import ControlLevel
from console.enforcement.state import EngineState
from console.services.configuration.service import SettingsDesk
from console.services.fleet.core import Core, now
from console.services.fleet.views import agent_view, receipt_row
from console.services.notices.shown import Notices
from console.services.records.audit_log import AuditDesk
from console.services.stop.service import StopDesk
from console.settings.places import Places
from console.supervisor.follow import Follower
from console.supervisor.installing import installing

if TYPE_CHECKING:  # its module loads the client of the bucket
    from console.services.remote.service import RemoteDesk

BOUND_S = 0.8
"""Longest time in seconds that a caller waits. A panic asks for the status too, and gives a supervisor 2 s."""


def login_name() -> str:
    """The login of this process's account, or its number."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"uid {os.geteuid()}"


def panic_targets(state: EngineState) -> dict[str, dict[str, int]]:
    """Control level -> {agents, processes} of all that live; ``left_alone``: so many of these agents are not part of a panic."""
    found: dict[str, dict[str, int]] = {}
    for agent_id in state.live:
        agent, seen = state.agents[agent_id], state.seen.get(agent_id)
        level = "best_effort" if state.best_effort.get(agent_id) else agent.control_level.value
        row = found.setdefault(level, {"agents": 0, "processes": 0})
        row["agents"] += 1
        row["processes"] += state.pids.get(agent_id, 1)
        is_inside = seen is not None and seen.inside is not None  # of one that Watchfloor holds
        if agent.control_level is ControlLevel.OBSERVED and agent_id not in state.press_observed and not is_inside:
            row["left_alone"] = row.get("left_alone", 0) + 1
    return found


class StatusService:
    """Reads."""

    def __init__(
        self,
        core: Core,
        places: Places,
        settings: SettingsDesk,
        notices: Notices,
        follower: Follower,
        stop: StopDesk,
        audit: AuditDesk,
        *,
        remote: RemoteDesk | None,
        engines: PartLooks,
        webhook: Callable[[], WebhookView],
    ) -> None:
        """``engines``: whether each part that runs agents, or their network, is available."""
        self._core, self._places, self._settings, self._notices = core, places, settings, notices
        self._follower, self._stop, self._audit, self._remote, self._engines = follower, stop, audit, remote, engines
        self._webhook = webhook

    def fleet(self) -> m.FleetView:
        """Every agent, with totals."""
        core = self._core
        self._follower.deltas.forget()
        at, _ = now()
        agents = [agent_view(a, core.state, core.meters, at) for a in core.state.agents.values()]
        midnight = last_midnight(at)
        return m.FleetView(
            killed=core.state.killed,
            kill_reason=core.state.kill_reason,
            agents=agents,
            spend_today_usd=round(core.meters.spent_today(at), 6),
            spend_unknown=sum(1 for a in agents if a.cost_usd is None and (a.ended_at is None or a.ended_at >= midnight)),
            burn_usd_per_h=round(core.meters.rate(at, core.state.spending), 4),
            seq=core.hub.seq,
        )

    async def status(self) -> m.StatusView:
        """The instance in one view."""
        root, options = os.geteuid() == 0, self._settings.settings.options
        note = "" if root else "user mode: agents run under your own user id, so what holds them is best effort against one another"
        records = await asyncio.to_thread(self._audit.total)
        guard = self._follower.guard_status
        verdict, losses = self._audit.verdict, self._audit.losses
        return m.StatusView(
            instance=self._places.instance_id,
            host=options.host(),
            version=__version__,
            state_dir=str(self._places.state_dir),
            mode="root" if root else "user",
            mode_note=note,
            killed=self._core.state.killed,
            soft_stop=self._core.state.soft_stop,
            profiles=dict(self._core.state.profiles.chosen),
            pid=os.getpid(),
            guard_pid=guard.get("pid"),
            guard_ok=bool(guard.get("ok")),
            guard_detail=str(guard.get("error", "")),
            stand_ins=options.stand_ins,
            sources=self._follower.source_views(),
            engines=await self._engines.words(),
            audit_records=records,
            audit_whole=False if losses.open else None if verdict is None or (verdict.whole and verdict.unknown) else verdict.whole,
            audit_why=losses.why or (verdict.why if verdict is not None else ""),
            audit_lost=bool(losses.open),
            audit_checked_at=verdict.checked_at if verdict else None,
            audit_verified=verdict.records if verdict else None,
            operator=login_name(),
            configuration=self._settings.trouble,
            notices=self._notices.lines(10) + [str(n) for n in guard.get("notices", [])],
            armed=self._follower.armed(),
            installing=installing(i for i in self._core.state.live if self._core.state.best_effort.get(i)),
            alerts=AlertsView(desktop_off=list(options.alerts.desktop_off), webhook=self._webhook()),
        )

    async def kill_switch(self) -> m.KillSwitchView:
        """State, paths and what a press will do now."""
        core, remote = self._core, self._remote
        armed = self._follower.armed()
        receipts = self._stop.receipts()
        last = next((r for r in receipts if r.scope == "all"), None)
        press = panic_targets(core.state)
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
            remote_latched=remote.latched() if remote else [],
            worst_s=armed.worst_s,
            paths=armed.paths,
            press=press,
            receipts=[receipt_row(r) for r in receipts[:50]],
            hosts=remote.hosts if remote else [],
            mode_note="" if os.geteuid() == 0 else "user mode: best effort, agents share your user id",
            passphrase=str((self._follower.guard_status.get("rearm") or {}).get("passphrase", "unknown")),
        )


class Answer(Protocol):
    """What a part says of itself."""

    @property
    def ok(self) -> bool: ...
    @property
    def reason(self) -> str: ...


class PartLooks:
    """Check whether each part is available, one check at a time. One that hangs holds one thread, and no caller. On the loop's thread."""

    def __init__(self, probes: Mapping[str, Callable[[], Answer]], bound_s: float = BOUND_S) -> None:
        self._probes, self._bound_s = dict(probes), bound_s
        self._under_way: dict[str, asyncio.Task[Answer]] = {}

    async def words(self) -> dict[str, str]:
        """Of each part nothing, or why it is not available; after ``bound_s`` whatever the parts do."""
        looks = {name: self._look(name, probe) for name, probe in self._probes.items()}
        await asyncio.wait(looks.values(), timeout=self._bound_s)
        return {name: self._told(look) for name, look in looks.items()}

    def _look(self, name: str, probe: Callable[[], Answer]) -> asyncio.Task[Answer]:
        """The one that is under way, or a new one."""
        before = self._under_way.get(name)
        if before is None or before.done():
            self._under_way[name] = asyncio.create_task(asyncio.to_thread(probe))
        return self._under_way[name]

    def _told(self, look: asyncio.Task[Answer]) -> str:
        if not look.done():
            return f"not available, because it did not answer within {self._bound_s:g} s"
        answer = look.result()
        return "" if answer.ok else f"not available, because {answer.reason}"
