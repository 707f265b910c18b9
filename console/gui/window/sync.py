"""Keeps the models true: reads snapshots, applies deltas, follows the guard, and tells the window at most ten times a second."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError
from PySide6.QtCore import QObject, QTimer, Signal

from console.api.messages import AgentView, Delta, FleetView, KillSwitchView, StatusView
from console.domain.errors import ConsoleError, Unreachable
from console.domain.kill import Receipt, receipt_from_json
from console.gui.link.events import Events
from console.gui.link.guard import GuardLink
from console.gui.models.fleet import Fleet
from console.gui.models.switch import Switch
from console.gui.notices import Notices
from console.gui.requests import Requests

TICK_MS = 100
ARRANGE_EVERY_TICKS = 10
"""Structural changes are coalesced to one a second; the first of a quiet time comes at once."""
STATUS_MS = 2_000
RECEIPT_MS = 500


class Sync(QObject):
    """One per window. ``changed`` asks for a repaint; ``delta`` and ``resynced`` go to the pages."""

    changed = Signal()
    delta = Signal(object)
    resynced = Signal()
    kill_began = Signal(str)
    """A kill id that was not known before: its receipt opens by itself."""

    def __init__(
        self,
        requests: Requests,
        events: Events,
        guard: GuardLink,
        fleet: Fleet,
        switch: Switch,
        notices: Notices,
        clock: Callable[[], float],
    ) -> None:
        super().__init__()
        self._requests, self._events, self._guard = requests, events, guard
        self._fleet, self._switch, self._notices, self._clock = fleet, switch, notices, clock
        self._held_back: list[Delta] | None = None
        """Deltas that came while a snapshot was on its way."""
        self._dirty = False
        self._known_kill: str | None = None
        self._timers = [
            self._timer(STATUS_MS, self._read_status),
            self._timer(TICK_MS, self._tick),
            self._timer(RECEIPT_MS, self._read_receipt),
        ]
        events.delta.connect(self._take)
        events.resync.connect(self.read_all)
        events.connected.connect(self._stream_changed)
        guard.alive.connect(self._guard_alive)
        guard.status_came.connect(self._guard_said)

    def _timer(self, ms: int, then: Callable[[], None]) -> QTimer:
        timer = QTimer(self)
        timer.setInterval(ms)
        timer.timeout.connect(then)
        return timer

    def start(self) -> None:
        """Begins to read and to listen."""
        self._guard.start()
        self._events.start()
        self.read_all()
        for timer in self._timers:
            timer.start()

    def stop(self) -> None:
        """Ends everything that would wake up again."""
        for timer in self._timers:
            timer.stop()
        self._events.stop()
        self._guard.stop()

    def read_all(self) -> None:
        """Fleet, status and kill switch, and whatever the pages keep."""
        self._read_fleet()
        self._read_status()
        self.read_switch()
        self.resynced.emit()

    def read_switch(self) -> None:
        """The kill switch's view."""
        self._requests.switch.look().then(self._switch_came)

    def _read_fleet(self) -> None:
        if self._held_back is None:
            self._held_back = []
            self._requests.fleet.fleet().then(self._fleet_came).failed(self._fleet_failed)

    def _fleet_failed(self, error: ConsoleError) -> None:
        self._held_back = None
        if not isinstance(error, Unreachable):  # that nobody answers is what the armed light says
            self._notices.fail(error)
        self._dirty = True

    def _fleet_came(self, view: FleetView) -> None:
        fleet = self._fleet
        fleet.replace(view.agents)
        fleet.killed, fleet.kill_reason = view.killed, view.kill_reason
        fleet.spend_today_usd, fleet.burn_usd_per_h = view.spend_today_usd, view.burn_usd_per_h
        held, self._held_back = self._held_back or [], None
        for delta in held:
            if delta.seq > view.seq:
                self._take(delta)
        self._heard()

    def _read_status(self) -> None:
        self._requests.status().then(self._status_came)

    def _status_came(self, view: StatusView) -> None:
        self._switch.status = view
        self._heard()

    def _switch_came(self, view: KillSwitchView) -> None:
        self._switch.view, self._switch.viewed_at = view, self._clock()
        self._fleet.killed = view.killed
        if not view.killed:
            self._switch.receipt = None
        elif view.kill_id:
            self._kill_seen(view.kill_id)
        self._heard()

    def _heard(self) -> None:
        self._switch.heard_at = self._clock()
        self._dirty = True

    def _stream_changed(self, up: bool) -> None:
        if up:
            self.read_all()
        self._dirty = True

    def _take(self, delta: Delta) -> None:
        try:
            if delta.kind == "agents":
                if self._held_back is not None:
                    self._held_back.append(delta)
                    return
                self._take_agents(delta.data)
            elif delta.kind == "kill":
                self._take_kill(delta.data)
            elif delta.kind == "status":
                self._switch.status = StatusView.model_validate(delta.data)
            elif delta.kind == "notice":
                level = delta.data.get("level")
                self._notices.say("red" if level == "red" else "amber" if level == "amber" else "info", str(delta.data.get("text", "")))
        except (ValidationError, KeyError, TypeError, ValueError):
            self._notices.say("amber", "A message of the supervisor could not be read.", "The fleet was read anew.")
            self.read_all()
            return
        self._heard()
        self.delta.emit(delta)

    def _take_agents(self, data: dict[str, Any]) -> None:
        for raw in data.get("upsert", ()):
            self._fleet.upsert(AgentView.model_validate(raw))
        for agent_id in data.get("remove", ()):
            self._fleet.remove(str(agent_id))
        self._fleet.spend_today_usd = float(data.get("spend_today_usd", self._fleet.spend_today_usd))
        self._fleet.burn_usd_per_h = float(data.get("burn_usd_per_h", self._fleet.burn_usd_per_h))

    def _take_kill(self, data: dict[str, Any]) -> None:
        raw = data.get("receipt")
        if isinstance(raw, dict) and raw:
            self._receipt_came(receipt_from_json(raw))
        self.read_switch()

    def _guard_alive(self, alive: bool) -> None:
        self._switch.guard.alive = alive
        self._dirty = True

    def _guard_said(self, answer: dict[str, Any]) -> None:
        was = self._switch.is_killed
        self._switch.guard.take(answer)
        guard = self._switch.guard
        if guard.latched and guard.kill_id:
            self._kill_seen(guard.kill_id)
        if was != self._switch.is_killed:
            self.read_switch()
        self._guard.poll_every(100 if guard.is_killing else 1000)
        for notice in guard.notices:
            self._notices.say("amber", notice)
        self._dirty = True

    def _kill_seen(self, kill_id: str) -> None:
        if kill_id == self._known_kill:
            return
        first_look = self._known_kill is None and not self._switch.is_killing
        self._known_kill = kill_id
        self._switch.receipt = None
        self._read_receipt()
        if not first_look:
            self.kill_began.emit(kill_id)

    def _read_receipt(self) -> None:
        """Follows the receipt of the latched kill until it is complete."""
        held = self._switch.receipt
        wanted = self._known_kill if self._switch.is_killed else None
        if wanted and (held is None or held.kill_id != wanted or not held.complete):
            self._requests.switch.receipt(wanted).then(self._receipt_came)

    def _receipt_came(self, receipt: Receipt) -> None:
        if self._known_kill in (None, receipt.kill_id) or receipt.scope == "all":
            self._switch.receipt = receipt
            self._known_kill = self._known_kill or receipt.kill_id
            self._dirty = True

    def _tick(self) -> None:
        if self._dirty:
            self._dirty = False
            self._switch.agents_live = self._fleet.live()
            self.changed.emit()
