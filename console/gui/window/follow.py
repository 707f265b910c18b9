"""Follows a kill: the guard's own words, the supervisor's view of the switch, and the receipt until it is complete."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, Signal

from console.api import endpoints as ep
from console.api.messages import KillSwitchView
from console.domain.kill import Receipt, receipt_from_json
from console.gui.models.fleet import Fleet
from console.gui.models.switch import Switch
from console.gui.notices import Notices
from console.gui.requests import Requests
from console.gui.timers import every
from console.panic.guard_link import GuardLink

RECEIPT_MS = 500
_CALM_POLL_MS, _BUSY_POLL_MS = 1000, 100


class KillFollower(QObject):
    """``changed`` after every piece of news; ``kill_began`` once for each kill that was not there when the console opened."""

    changed = Signal()
    kill_began = Signal(str)

    def __init__(
        self,
        requests: Requests,
        guard: GuardLink,
        fleet: Fleet,
        switch: Switch,
        notices: Notices,
        clock: Callable[[], float],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._requests, self._guard = requests, guard
        self._fleet, self._switch, self._notices, self._clock = fleet, switch, notices, clock
        self._of_guard: tuple[str, ...] = ()
        """What the guard's last answer told. Each holds for as long as the guard tells it."""
        self._kill_id: str | None = None
        self._looked = False
        """Whether a first look at the switch was had: what was latched before is no news."""
        self._timer = every(self, RECEIPT_MS, self.read_receipt)
        guard.alive.connect(self._alive)
        guard.status_came.connect(self._guard_said)

    def start(self) -> None:
        """Begins to follow."""
        self._timer.start()

    def stop(self) -> None:
        """Ends it."""
        self._timer.stop()

    def read_switch(self) -> None:
        """The kill switch's view."""
        self._requests.ask(ep.KILL_SWITCH).then(self._switch_came)

    def read_receipt(self) -> None:
        """The receipt of the latched kill, until it is complete."""
        held = self._switch.receipt
        wanted = self._kill_id if self._switch.is_killed else None
        if wanted and (held is None or held.kill_id != wanted or not held.complete):
            self._requests.receipt(wanted).then(self._receipt_came)

    def take(self, data: dict[str, Any]) -> None:
        """A ``kill`` delta. Raises KeyError, TypeError or ValueError when its receipt cannot be read."""
        raw = data.get("receipt")
        if isinstance(raw, dict) and raw:
            self._receipt_came(receipt_from_json(raw))
        self.read_switch()

    def _switch_came(self, view: KillSwitchView) -> None:
        self._switch.take_view(view, self._clock())
        self._fleet.killed = view.killed
        if not view.killed:
            self._switch.receipt = None
        elif view.kill_id:
            self._seen(view.kill_id)
        self._looked = True
        self.changed.emit()

    def _alive(self, alive: bool) -> None:
        self._switch.guard.alive = alive
        self.changed.emit()

    def _guard_said(self, answer: dict[str, Any]) -> None:
        was = self._switch.is_killed
        self._switch.guard.take(answer)
        guard = self._switch.guard
        if guard.latched and guard.kill_id:
            self._seen(guard.kill_id)
        if was != self._switch.is_killed:
            self.read_switch()
        self._guard.poll_every(_BUSY_POLL_MS if guard.is_killing else _CALM_POLL_MS)
        had, self._of_guard = self._of_guard, tuple(guard.notices)
        for notice in self._of_guard:
            if notice not in had:
                self._notices.say("amber", notice)
        for notice in had:
            if notice not in self._of_guard:
                self._notices.withdraw(notice)
        self.changed.emit()

    def _seen(self, kill_id: str) -> None:
        if kill_id == self._kill_id:
            return
        is_news = self._looked or self._switch.is_killing
        self._kill_id = kill_id
        self._switch.receipt = None
        self.read_receipt()
        if is_news:
            self.kill_began.emit(kill_id)

    def _receipt_came(self, receipt: Receipt) -> None:
        if receipt.kill_id == self._kill_id or (self._kill_id is None and receipt.scope == "all"):
            self._switch.receipt = receipt
            self.changed.emit()
