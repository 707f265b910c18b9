"""Keeps the models true: reads snapshots, applies deltas, and tells the window at most ten times a second."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QAbstractItemView, QApplication

from console.api import endpoints as ep
from console.api.messages import Delta, FleetView, StatusView
from console.api.records import AccountsView, VerifyBody
from console.domain.errors import ConsoleError, Unreachable
from console.gui import garbage
from console.gui.link.events import Events
from console.gui.models.facts import News
from console.gui.models.fleet import Fleet
from console.gui.models.operators import OPERATORS
from console.gui.models.switch import Switch
from console.gui.notices import Level, Notices
from console.gui.pages.budgets.reasons import plain_reason
from console.gui.requests import Requests
from console.gui.timers import every
from console.gui.window.follow import KillFollower
from console.panic.guard_link import GuardLink

TICK_MS = 100
STATUS_MS = 2_000
MANY = 5_000
"""From so many agents on they are kept out of the garbage collector's rounds."""
VERIFY_S, SELDOM = 10.0, 50
"""New audit records are verified every ten seconds, or as often as the last verification took a fiftieth of the time between."""
SOON_CHECKED = 20_000
"""Records up to which an audit log is checked without being asked, once for each supervisor: it takes the supervisor less than a second."""
_LEVELS: dict[str, Level] = {"red": "red", "amber": "amber"}


class LogCheck:
    """Has the audit log verified: once when it never was, and again for new records, at a fiftieth of the supervisor's time at most."""

    def __init__(self, requests: Requests, clock: Callable[[], float], then: Callable[[], None]) -> None:
        self._requests, self._clock, self._then = requests, clock, then
        self._checked = 0
        """The supervisor (by pid) whose log this console has had verified, because it never was."""
        self._under_way = False
        self._not_before = 0.0

    def look(self, view: StatusView) -> None:
        """A status came."""
        if view.audit_whole is None and view.audit_records <= SOON_CHECKED and view.pid != self._checked:
            self._checked = view.pid
            self._verify()
        elif view.audit_whole and view.audit_records > (view.audit_verified or view.audit_records) and self._clock() >= self._not_before:
            self._verify()

    def _verify(self) -> None:
        if self._under_way:
            return
        self._under_way, began = True, self._clock()

        def over(_answer: object) -> None:
            self._under_way = False
            took = max(0.0, self._clock() - began)
            self._not_before = self._clock() + max(VERIFY_S, SELDOM * took)
            self._then()

        self._requests.ask(ep.VERIFY_AUDIT, body=VerifyBody()).then(over).failed(over)


class Sync(QObject):
    """One per window. ``changed`` asks for a repaint; ``delta`` and ``resynced`` go to the pages."""

    changed = Signal()
    delta = Signal(object)
    resynced = Signal()
    named = Signal()
    """Names of operators came."""

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
        self.follower = KillFollower(requests, guard, fleet, switch, notices, clock, self)
        self.follower.changed.connect(self._touch)
        self._dirty = False
        self._log_check = LogCheck(requests, clock, self._read_status)
        self._missed_to = 0
        """Number up to which deltas were missed while a snapshot was on its way: an older snapshot is not the last word."""
        self._timers = [every(self, STATUS_MS, self._read_status), every(self, TICK_MS, self._tick)]
        events.keep(fleet.facts.write)
        events.delta.connect(self._take)
        events.changes.connect(self._changes_came)
        events.resync.connect(self._missed)
        events.connected.connect(lambda up: switch.hear(up=up, now=clock()))
        events.connected.connect(lambda up: self.read_all() if up else self._touch())

    def start(self) -> None:
        """Begins to read and to listen."""
        self._guard.start()
        self._events.start()
        self.read_all()
        self.follower.start()
        for timer in self._timers:
            timer.start()

    def stop(self) -> None:
        """Ends everything that would wake up again."""
        for timer in self._timers:
            timer.stop()
        self.follower.stop()
        self._events.stop()
        self._guard.stop()

    def read_all(self) -> None:
        """Fleet, status and kill switch, and whatever the pages keep."""
        if self._fleet.facts.hold():
            self._missed_to = 0
            self._requests.ask(ep.FLEET).then(self._fleet_came).failed(self._fleet_failed)
        self._read_status()
        self.resynced.emit()

    def _missed(self) -> None:
        self._missed_to = self._events.last_seq
        self.read_all()

    def _fleet_failed(self, error: ConsoleError) -> None:
        for news in self._fleet.facts.let_go():
            self._fleet.take(news)
        if not isinstance(error, Unreachable):  # that nobody answers is what the armed light says
            self._notices.fail(error)
        self._touch()
        if self._missed_to:
            self.read_all()

    def _fleet_came(self, view: FleetView) -> None:
        fleet = self._fleet
        fleet.killed, fleet.kill_reason = view.killed, view.kill_reason
        fleet.spend_today_usd, fleet.burn_usd_per_h = view.spend_today_usd, view.burn_usd_per_h
        fleet.replace(view.agents, view.seq)
        if len(view.agents) >= MANY:
            garbage.spare()
        self._heard()
        if view.seq < self._missed_to:
            self.read_all()

    def _read_status(self) -> None:
        """Status and kill switch: whatever no delta tells is at most two seconds old."""
        self._requests.ask(ep.STATUS).then(self._status_came)
        if uids := OPERATORS.wanted():
            self._requests.ask(ep.ACCOUNTS, uids=uids).then(partial(_names_came, self.named.emit))
        self.follower.read_switch()

    def _status_came(self, view: StatusView) -> None:
        self._switch.take_status(view, self._clock())
        self._touch()
        self._log_check.look(view)

    def _heard(self) -> None:
        self._switch.heard_at = self._clock()
        self._touch()

    def _touch(self) -> None:
        self._dirty = True

    def _changes_came(self, news: News | None) -> None:
        """``None``: it is held back until the snapshot that is on its way came."""
        if news is not None and not self._fleet.take(news):
            self.read_all()  # it speaks of an agent this console was never told of
        self._heard()

    def _take(self, delta: Delta) -> None:
        try:
            self._apply(delta)
        except (KeyError, TypeError, ValueError):
            self._notices.say("amber", "A message of the supervisor could not be read.", "The fleet was read again.")
            self.read_all()
            return
        self._heard()
        self.delta.emit(delta)

    def _apply(self, delta: Delta) -> None:
        if delta.kind == "kill":
            self.follower.take(delta.data)
        elif delta.kind == "status":
            self._switch.take_status(StatusView.read(delta.data), self._clock())
        elif delta.kind == "notice":
            words, level = notice_words(str(delta.data.get("text", "")), self._fleet), str(delta.data.get("level"))
            if level == "over":
                self._notices.withdraw(words)
            else:
                self._notices.say(_LEVELS.get(level, "info"), words)

    def _tick(self) -> None:
        if self._dirty:
            self._dirty = False
            self._switch.agents_live = self._fleet.live()
            self.changed.emit()


def notice_words(text: str, fleet: Fleet) -> str:
    """A notice of the supervisor's with the agent's name for the id it begins with, and limits in their units."""
    first, _, rest = plain_reason(text).partition(" ")
    row = fleet.rows.get(first)
    return f"{row.name} {rest}" if row is not None else f"{first} {rest}".strip()


def _names_came(then: Callable[[], object], view: AccountsView) -> None:
    """Lists paint the names; what stands in panes is shown again by its page."""
    OPERATORS.learn(view)
    for widget in QApplication.allWidgets():
        if isinstance(widget, QAbstractItemView):
            widget.viewport().update()
    then()
