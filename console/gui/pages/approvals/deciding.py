"""What a key or button decides on the page: whether it may, on exactly what is shown, and the answer that is held then."""

from __future__ import annotations

import time
from functools import partial

from PySide6.QtCore import QObject, Signal

from console.api.policy.approvals import AT_ONCE, ApprovalRow, GrantRow, GrantsView
from console.gui.pages.approvals.answer_bar import AnswerBar
from console.gui.pages.approvals.answers import CONFIRM, SCOPES, Answer, Answers
from console.gui.pages.approvals.book import Book, Item
from console.gui.pages.approvals.case import Case, case_of_several
from console.gui.pages.approvals.detail import DetailPane
from console.gui.pages.approvals.dialogs import DenyDialog, TakeBackDialog
from console.gui.pages.approvals.exact_rule import ExactRuleDialog
from console.gui.pages.approvals.inbox import Inbox
from console.gui.pages.approvals.words import gone_words
from console.gui.pages.interface import Desk

DENY, REASON, UNDO, EXACT = "approvals.deny", "approvals.reason", "approvals.undo", "approvals.exact"
DECIDE = (*SCOPES, DENY, REASON)
"""What answers a request; a button or a key that cannot is dead, with the reason as its tooltip."""
ALL = (*DECIDE, CONFIRM, UNDO, EXACT)
KILLED = "Killed: read only until you rearm."


class Deciding(QObject):
    """``changed`` when other answers can be given or are held; ``grants_came`` with the standing approvals that are left."""

    changed = Signal()
    grants_came = Signal(object)

    def __init__(self, desk: Desk, book: Book, inbox: Inbox, pane: DetailPane, parent: QObject) -> None:
        super().__init__(parent)
        self._desk, self._book, self._inbox, self._pane = desk, book, inbox, pane
        self.answers = Answers(desk.requests, book, self)
        self.bar = AnswerBar()
        self.ids: set[str] = set()
        """The requests that are looked at."""
        self.quiet_until = 0.0
        """Monotonic; until then no key decides."""
        self.answers.changed.connect(self.show)
        self.answers.problem.connect(self._problem)
        self.bar.sent.connect(self.answers.send)
        self.bar.confirmed.connect(self._confirmed)
        self.bar.taken_back.connect(self.answers.take_back)
        self.bar.rule.clicked.connect(lambda: self.do(EXACT))

    def look_at(self, ids: set[str]) -> None:
        """These requests stand in front, or they have changed."""
        self.ids = ids
        self.answers.look_at(ids)
        self.show()

    def show(self) -> None:
        """The held answer in its line."""
        ids = self._meant()
        shown = self.answers.shown(ids)
        more = len(self.answers.held) - (shown in self.answers.held)
        self.bar.say(shown, more, time.monotonic(), is_meant=shown is not None and shown.ids == ids)
        if shown is None:
            self.bar.offer(rule=not self._why_no_rule(), several=len(self._inbox.several()))
        self._inbox.view.refresh()
        self.changed.emit()

    def why_not(self, action_id: str) -> str:
        """Empty when one of ALL can be done now."""
        if action_id == UNDO:
            return "" if self.bar.answer is not None else "No answer is held."
        if action_id == EXACT:
            return self._why_no_rule()
        if action_id == CONFIRM and self.answers.asked is None and not self.answers.is_given(CONFIRM, self.ids):
            return "Nothing waits for a second key."
        current = self._inbox.current()
        if self._desk.switch.is_killed:
            return KILLED
        if current is None:
            return "Nothing is selected."
        if several := self._inbox.several():
            return self._why_not_several(action_id, several)
        if isinstance(current, GrantRow):
            return "" if action_id == DENY else "It was given for the session already."
        if not isinstance(current, Item):
            return f"Already {gone_words(current)}."
        return self._why_not_now(action_id, current)

    def _meant(self) -> set[str]:
        """The requests that a key answers: all of the selected lines, or those that are looked at."""
        return {row.id for row in self._inbox.several()} or self.ids

    def _why_not_several(self, action_id: str, rows: list[ApprovalRow]) -> str:
        if action_id not in (DENY, REASON):
            return "Several requests are selected. They can be denied together; each is approved by itself."
        if len(rows) > AT_ONCE:
            return f"More than {AT_ONCE} requests are selected. Choose fewer."
        if self._meant() & self.answers.sending:
            return "A decision is on its way."
        return "A request has just come in: look again." if time.monotonic() < self.quiet_until else ""

    def _approved(self) -> ApprovalRow | None:
        """The approved request that is looked at."""
        current = self._inbox.current()
        row = current.first.row if isinstance(current, Item) and not current.live and not current.is_group else current
        return row if isinstance(row, ApprovalRow) and row.state in ("approved", "used") else None

    def _why_no_rule(self) -> str:
        row = self._approved()
        if self._desk.switch.is_killed:
            return KILLED
        if row is None:
            return "A rule for exactly one call is made after its approval."
        return f"No rule can answer this: it {row.danger}." if row.danger else ""

    def _why_not_now(self, action_id: str, current: Item) -> str:
        case, at = self._pane.case, time.monotonic()
        if not current.live:
            return f"Already {current.first.gone}."
        if self.ids & self.answers.sending:
            return "A decision is on its way."
        if at < self.quiet_until:
            return "A request has just come in: look again."
        if not case.is_read or {one.id for one in case.rows} != {one.row.id for one in current.live}:
            return "It is still being read."
        if all(one.left(at) <= 0 for one in current.live):
            return "Expired: denied automatically."
        if action_id in (DENY, REASON):
            return ""
        return case.why_not_approve() if self._pane.isVisible() else "Open the request first: Enter."

    def do(self, action_id: str) -> None:
        """Carries out one of ALL that can be done."""
        current, case, window = self._inbox.current(), self._pane.case, self._pane.window()
        needed = self._book.denial_needs_reason
        several = self._inbox.several()
        asks_why = action_id == REASON or action_id == DENY and (needed or bool(several))
        case = case_of_several(several) if several else case
        row = self._approved()
        if action_id == EXACT and row is not None:
            ExactRuleDialog(self._desk, row, window).open()
        elif action_id == UNDO:
            self.answers.take_back(self.bar.answer)
        elif action_id == CONFIRM:
            self.answers.confirm(self.ids)
        elif isinstance(current, GrantRow):
            TakeBackDialog(self._desk, _standing(self._inbox), self._given, window).open()
        elif asks_why and not self.answers.is_given(action_id, self._meant()):
            DenyDialog(case, partial(self._give, action_id), window, needed=needed).open()
        else:
            self._give(action_id, case)

    def close(self) -> str:
        """The window closes: nothing of what is held is sent. Returns what that was, in words, or nothing."""
        if words := self.answers.drop_all():
            self._desk.notices.say("amber", words)
        return words

    def _give(self, action_id: str, case: Case, reason: str = "") -> None:
        """Holds an answer to exactly what is shown; the same key again sends it."""
        verdict = "approve" if action_id in SCOPES else "deny"
        self.answers.give(Answer(action_id, case, verdict, SCOPES.get(action_id, "once"), reason))

    def _confirmed(self) -> None:
        if why_not := self.why_not(CONFIRM):
            self._problem(why_not)
        else:
            self.do(CONFIRM)

    def _given(self, view: GrantsView) -> None:
        self.grants_came.emit(view)

    def _problem(self, words: str) -> None:
        self._pane.show_problem(words)
        if words and not self._pane.isVisible():
            self._desk.notices.say("amber", words)


def _standing(inbox: Inbox) -> list[GrantRow]:
    """Every standing approval of the sessions of the selected lines: they end together, also those that a filter hides."""
    sessions = {row.session for row in inbox.given.picked_rows() or [inbox.given.current()]}
    return [one for one in inbox.grants if one.session in sessions]
