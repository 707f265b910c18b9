"""The approvals page: what waits for a human at the left, one request whole at the right, decided on exactly what is shown."""

from __future__ import annotations

import time
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from console.api import endpoints as ep
from console.api.messages import Delta
from console.api.policy.approvals import AT_ONCE, ApprovalDetailView, ApprovalRow, ApprovalsView, GrantRow, GrantsView
from console.domain.errors import ConsoleError
from console.gui.kit.layout import column
from console.gui.pages import declared
from console.gui.pages.approvals.book import Book, Item
from console.gui.pages.approvals.case import Case, case_of, row_of
from console.gui.pages.approvals.deciding import ALL, DECIDE, KILLED, Deciding
from console.gui.pages.approvals.detail import DetailPane
from console.gui.pages.approvals.inbox import WIDTH, Inbox
from console.gui.pages.approvals.rule import RuleDialog
from console.gui.pages.approvals.words import end_words, expired_words, gone_words, load_words
from console.gui.pages.interface import Badge, Desk, Page
from console.gui.timers import once
from console.gui.widgets.split import beside

SOON_MS = 200
QUIET_S = 0.5
"""After a request slid in: a key that was about to be pressed meant another list."""
AGAIN_S, RETRY_S = 15.0, 3.0
AT_A_TIME = 6
"""Details of a group that are read at once."""


class ApprovalsPage(Page):
    """``arrived`` with the rows of requests that came in since the last look, also while another page is in front.

    ``unsent``: the window closes, and what was held is not sent.
    """

    arrived = Signal(object)
    unsent = Signal(str)
    spec = declared.APPROVALS

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self.book = Book()
        self.inbox = Inbox(self.book, self)
        self.pane = DetailPane(self)
        self.deciding = Deciding(desk, self.book, self.inbox, self.pane, self)
        self._details: dict[str, ApprovalDetailView] = {}
        self._reading: set[str] = set()
        self._wanted = ""
        self._over = False
        """The detail stands over the list (narrow windows)."""
        self._read_at = 0.0
        self._reads = self._valid_from = 0
        """How often the inbox was asked for, and the first of those whose answer still holds."""
        column((beside(self.inbox, self.pane, self), 1), self.deciding.bar, on=self)
        self._soon = once(self, SOON_MS, self._read)
        self._hush = once(self, int(QUIET_S * 1000) + 20, self._allow)
        self._sweep = once(self, 0, self._forget_gone)
        self.inbox.chosen.connect(self._moved)
        self.inbox.view.picked_changed.connect(self.deciding.show)
        self.inbox.tab_changed.connect(lambda _tab: self._turned())
        self.inbox.opened.connect(lambda: self.do("approvals.detail"))
        self.pane.back_asked.connect(lambda: self._show_over(False))
        self.pane.asked.connect(self._pressed)
        self.deciding.changed.connect(self._allow)
        self.deciding.grants_came.connect(self._grants_came)
        self.deciding.answers.decided.connect(self._answered)

    # --- what the window tells ---------------------------------------------------------------------------------------

    def on_show(self, argument: str = "") -> None:
        self._wanted = argument
        if argument and self.book.loaded and self.inbox.reveal(argument):
            self._wanted = ""
            self._over = True
        self._read()
        self._show()
        self.inbox.front().setFocus()

    def on_hide(self) -> None:
        self._forget_gone()

    def on_close(self) -> None:
        if words := self.deciding.close():
            self.unsent.emit(words)

    def on_models(self) -> None:
        self._allow()

    def on_tick(self, now: float) -> None:
        at = time.monotonic()
        self.inbox.head.say(self.book, at)
        old = self.desk.switch.is_old(now)
        problem = "the supervisor does not answer" if old else self.book.problem
        self.inbox.head.fail(f"Not known: {problem}" if problem else "")
        if bool(problem) != self.book.is_old:
            self.book.is_old = bool(problem)
            self.inbox.show_lines()
        self.inbox.view.refresh()
        self._count()
        self._allow()
        if at - self._read_at > AGAIN_S:
            self._read()

    def handle(self, delta: Delta) -> None:
        if delta.kind == "approval" and not self._soon.isActive():
            self._soon.start()

    def resync(self) -> None:
        self._soon.start()

    def badge(self) -> Badge | None:
        return Badge(f"{self.book.items_waiting:,}", "warn", "warning") if self.book.items_waiting else None

    def is_ready(self) -> bool:
        return self.book.loaded and (self.inbox.current() is None or self.pane.case.is_read)

    # --- actions -----------------------------------------------------------------------------------------------------

    def why_not(self, action_id: str) -> str:
        if action_id == "approvals.rule":
            return self._why_not_rule()
        if action_id in ALL:
            return self.deciding.why_not(action_id)
        if action_id in ("approvals.explain", "approvals.agent") and self.inbox.current() is None:
            return "Nothing is selected."
        return ""

    def _why_not_rule(self) -> str:
        if self.desk.switch.is_killed:
            return KILLED
        if not isinstance(self.inbox.current(), Item):
            return "A rule is made of a request that waits."
        if self.pane.case.is_group:
            return "A rule is made of one request: open the group (G)."
        return "" if self.pane.case.is_read else "It is still being read."

    def do(self, action_id: str) -> None:
        if self.why_not(action_id):
            self.pane.show_problem(self.why_not(action_id))
            return
        if action_id in ALL:
            self.deciding.do(action_id)
        elif action_id == "approvals.rule":
            RuleDialog(self.desk, self.pane.case.rows[0].id, self.pane.case.title, self.window()).open()
        elif action_id == "approvals.explain":
            self._show_over(True)
            self.pane.turn_full()
        elif action_id == "approvals.agent":
            self.desk.goto("fleet", self.pane.case.rows[0].agent_id)
        else:
            self._look(action_id)

    def _look(self, action_id: str) -> None:
        if action_id == "approvals.group":
            self.inbox.turn_group()
        elif action_id == "approvals.tab":
            order = list(self.inbox.tabs.pills)
            self.inbox.show_tab(order[(order.index(self.inbox.tab()) + 1) % len(order)])
            self.inbox.front().setFocus()
        elif action_id == "approvals.detail":
            self._show_over(not self._over)
        elif action_id == "approvals.filter":
            self.inbox.search.setFocus()

    def _pressed(self, action_id: str) -> None:
        """A button: as its key, and what cannot be done is said."""
        why_not = self.why_not(action_id)
        if why_not:
            self.pane.show_problem(why_not)
        else:
            self.do(action_id)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        self._read_at = time.monotonic()
        self._reads += 1
        requests = self.desk.requests
        requests.ask(ep.APPROVALS).while_alive(self).then(partial(self._came, self._reads)).failed(self._failed)
        requests.ask(ep.GRANTS).while_alive(self).then(self._grants_came)

    def _failed(self, error: ConsoleError) -> None:
        self.book.problem = str(error)
        self.inbox.head.fail(f"Not known: {error.what}")
        self.inbox.show_lines()
        self._read_at = time.monotonic() - AGAIN_S + RETRY_S

    def _came(self, number: int, view: ApprovalsView) -> None:
        if number < self._valid_from:
            return  # made before a later answer, or before a decision: what was decided would wait again
        self._valid_from = number
        at = time.monotonic()
        new = self.book.take(view, at)
        self.book.problem, self.book.is_old = "", False
        self.inbox.head.fail("")
        while self.book.expired:
            self.desk.notices.say("amber", expired_words(self.book.expired.pop(0)))
        if new:
            self.deciding.quiet_until = at + QUIET_S
            self.arrived.emit(new)
        if not self.isVisible():
            self._forget_gone()
        if self._wanted:
            wanted, self._wanted = self._wanted, ""
            self._over = self.inbox.reveal(wanted)
        self.inbox.head.say(self.book, at)
        self.desk.fleet.load_words = load_words(self.book.per_hour, self.book.rule_share)
        self._changed()
        self.badge_changed.emit()

    def _grants_came(self, view: GrantsView) -> None:
        self.inbox.grants = view.grants
        self.inbox.show_lines()

    def _answered(self) -> None:
        self._valid_from = self._reads + 1
        self._changed()
        self._read()

    def _changed(self) -> None:
        self.inbox.show_lines()
        self._show()

    def _turned(self) -> None:
        """Another list: what was read of a request is older than what became of it."""
        self._details = {}
        self._show()
        self.inbox.front().setFocus()

    def _moved(self) -> None:
        """Another request is looked at: what is over goes from the list."""
        self._show()
        self._sweep.start()

    def _forget_gone(self) -> None:
        current = self.inbox.current() if self.isVisible() else None
        keep = {entry.row.id for entry in current.entries} if isinstance(current, Item) else set()
        if self.book.forget_gone(keep):
            self.inbox.show_lines()

    def _rows(self) -> list[ApprovalRow]:
        """What is looked at: of a group those that still wait."""
        current = self.inbox.current()
        if isinstance(current, Item):
            return [entry.row for entry in (current.live or current.entries[:1])][:AT_ONCE]
        if isinstance(current, GrantRow):
            return [self._details[current.approval_id].row if current.approval_id in self._details else row_of(current)]
        return [current] if current is not None else []

    def _show(self) -> None:
        rows = self._rows()
        ids = {row.id for row in rows}
        self._details = {key: one for key, one in self._details.items() if key in ids}
        if rows and self.isVisible():
            key = "".join((self.inbox.tab(), rows[0].id if len(rows) == 1 else f"g:{rows[0].group}"))
            details = [self._details[row.id] for row in rows if row.id in self._details]
            read = len(details) == len(rows)
            shown = self.pane.case
            if not read or shown.rows != tuple(rows) or shown.details != tuple(details):
                self.pane.show_case(case_of(rows, details) if read else Case(tuple(rows), tuple(details)), key)
            self._read_details(rows)
        self._lay()
        self._count()
        self.deciding.look_at(ids)

    def _read_details(self, rows: list[ApprovalRow]) -> None:
        for row in rows:
            if len(self._reading) >= AT_A_TIME:
                return
            if row.id not in self._details and row.id not in self._reading:
                self._reading.add(row.id)
                asked = self.desk.requests.ask(ep.APPROVAL, row.id).while_alive(self)
                asked.then(partial(self._detail_came, row.id)).failed(partial(self._detail_failed, row.id))

    def _detail_came(self, approval_id: str, detail: ApprovalDetailView) -> None:
        self._reading.discard(approval_id)
        if approval_id in {row.id for row in self._rows()}:
            self._details[approval_id] = detail
        self._show()

    def _detail_failed(self, approval_id: str, error: ConsoleError) -> None:
        self._reading.discard(approval_id)
        if approval_id in {row.id for row in self._rows()}:
            self.pane.show_problem(f"It could not be read: {error}")

    def _count(self) -> None:
        """The clock runs down to a denial; what is over has its result in that place."""
        current, at = self.inbox.current(), time.monotonic()
        if isinstance(current, Item):
            entry = min(current.live or current.entries, key=lambda one: one.ends_at)
            gone = "" if current.live else entry.gone
            self.pane.countdown.say(entry.left(at), entry.row.ttl_s, entry.row.asked_at, gone, end_words(entry.row)[1] if gone else "")
        elif current is not None and self.pane.case.rows:
            row = self.pane.case.rows[0]
            self.pane.countdown.say(0, row.ttl_s, row.asked_at, gone_words(row), end_words(row)[1])

    def _allow(self) -> None:
        current = self.inbox.current()
        why_not = {action: self.why_not(action) for action in (*DECIDE, "approvals.rule")}
        if time.monotonic() < self.deciding.quiet_until and not self._hush.isActive():
            self._hush.start()
        is_grant = isinstance(current, GrantRow)
        notes = ("Until it is taken back", "A kill ends it") if is_grant else ("Single use", "Void if the request changes")
        if self.desk.switch.is_killed:
            notes = ("Killed", "Read only until you rearm")
        self.pane.allow(why_not, is_grant=is_grant, notes=notes, several=len(self.inbox.several()))

    def _show_over(self, over: bool) -> None:
        self._over = over
        self._lay()
        self._allow()
        if not over:
            self.inbox.front().setFocus()

    def _lay(self) -> None:
        narrow, has_one = self.is_narrow, self.inbox.current() is not None
        self.inbox.setMinimumWidth(0 if narrow else WIDTH)
        self.inbox.setMaximumWidth(16_777_215 if narrow or not has_one else WIDTH)
        self.inbox.setVisible(not narrow or not (self._over and has_one))
        self.pane.setVisible(has_one and (not narrow or self._over))
        self.pane.back.setVisible(narrow)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self._show_over(False)
        else:
            super().keyPressEvent(event)
