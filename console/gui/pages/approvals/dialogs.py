"""The two questions of the page: why it is denied, and why what a session was given is taken back."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QWidget

from console.api import endpoints as ep
from console.api.policy.approvals import EndGrantBody, GrantRow, GrantsView
from console.gui.pages.approvals.book import alike
from console.gui.pages.approvals.case import Case, named_requests
from console.gui.pages.approvals.words import call_line
from console.gui.pages.interface import Desk
from console.gui.widgets.dialog import IN_PROGRESS, Dialog
from console.gui.widgets.reading import TargetsView
from console.gui.widgets.words import plural


class _ReasonDialog(Dialog):
    """A reason of one line; where it is needed, the main button (and Enter) work once there is one."""

    def __init__(self, title: str, main: str, words: str, longest: int, parent: QWidget, *, needed: bool = True) -> None:
        super().__init__(title, main, "danger", parent, width=540)
        self.paragraph(words)
        self.reason = self.ask_reason(longest, "Reason" if needed else "Reason (optional)", needed=needed)
        self.reason.returnPressed.connect(self.main.click)
        self.main.clicked.connect(self.send)
        self.reason.setFocus()

    def send(self) -> None:
        """Carried out by the dialog's kind."""


class DenyDialog(_ReasonDialog):
    """``then`` gets the case that was shown when it was opened, and the reason."""

    def __init__(self, case: Case, then: Callable[[Case, str], None], parent: QWidget, *, needed: bool) -> None:
        self._case, self._then = case, then
        many = case.words or (plural(len(case.rows), f"{alike(case.rows)} request") if case.is_group else "this request")
        who = "Each agent" if case.words else f"{case.title}. The agent"
        words = f"{who} is told the reason, and can do something else."
        super().__init__(f"Deny {many}?", "Deny", words, 1000, parent, needed=needed)
        if case.words:
            self.main.setText(f"Deny {plural(len(case.rows), 'request')}")
            self.body.insertWidget(0, TargetsView(named_requests(case.rows), self))

    def send(self) -> None:
        self._then(self._case, self.reason.text().strip())
        self.accept()


class TakeBackDialog(_ReasonDialog):
    """Every standing approval of these sessions ends. ``then`` gets the ones that are left, after each session."""

    def __init__(self, desk: Desk, given: list[GrantRow], then: Callable[[GrantsView], None], parent: QWidget) -> None:
        self._desk, self._then = desk, then
        self._left = list(dict.fromkeys(one.session for one in given))
        one = len(self._left) == 1
        whose = f"session {self._left[0]} end" if one else f"{plural(len(self._left), 'session')} end"
        words = f"{plural(len(given), 'approval')} of {whose}. Each of these calls needs an approval again."
        title = "Take back what the session was given?" if one else "Take back what these sessions were given?"
        super().__init__(title, "Take back", words, 500, parent)
        if len(given) > 1:
            self.body.insertWidget(1, TargetsView([(f"session {row.session}", call_line(row)) for row in given], self))

    def send(self) -> None:
        self.main.allow(IN_PROGRESS)
        self.problem.hide()
        body = EndGrantBody(session=self._left[0], reason=self.reason.text().strip())
        self._desk.requests.ask(ep.END_GRANTS, body=body).while_alive(self).then(self._done).failed(self.refused)

    def _done(self, view: GrantsView) -> None:
        self._then(view)
        del self._left[0]
        if self._left:
            self.send()
        else:
            self.accept()
