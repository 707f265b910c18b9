"""The session's workspace in the detail pane: how large, until when it stays, and hold, release, delete with a reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from PySide6.QtWidgets import QWidget

from console.api import endpoints as ep
from console.api.agents.sessions import ContextActBody, ContextsView, ContextView
from console.domain.errors import ConsoleError
from console.gui.kit.layout import column, row
from console.gui.models.operators import person
from console.gui.pages.interface import Desk
from console.gui.theme import fonts
from console.gui.widgets.buttons import Button
from console.gui.widgets.dialog import IN_PROGRESS, Dialog
from console.gui.widgets.facts import Fact, Facts
from console.gui.widgets.text import Text
from console.gui.widgets.words import age, day_clock, plural

READ_EVERY_S = 10.0
Verb = Literal["hold", "release", "delete"]
_ASKS: dict[Verb, tuple[str, str, str]] = {
    "hold": ("Hold", "It is kept, also after its time to live, until it is released.", "primary"),
    "release": ("Release", "Its time to live counts again from its last use.", "primary"),
    "delete": ("Delete", "Everything in it is removed. Only the rollback records can bring files back.", "danger"),
}


def size_words(number: int) -> str:
    """``41.2 MB``."""
    amount = float(max(0, number))
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:,.1f} TB"


def stays_words(view: ContextView) -> str:
    """Until when it stays."""
    if view.hold:
        return "held, until released"
    if view.agents_live:
        return f"while {plural(view.agents_live, 'agent')} live in it"
    return f"until {day_clock(view.goes_at)}" if view.goes_at is not None else "not known"


def lines_of(view: ContextView, now: float) -> list[Fact]:
    """Size, until when, hold, what is beyond its bound."""
    whole = "" if view.complete else (" at least" if view.measured_at is not None else ", not measured yet")
    measured = f", {age(view.measured_at, now)}" if view.measured_at is not None else ""
    lines = [
        Fact(f"Size{whole}", f"{size_words(view.bytes)}{measured}", left_role="text2", right_role="text"),
        Fact("Stays", stays_words(view), left_role="text2", right_role="text"),
    ]
    if view.hold:
        lines.append(Fact(person(view.hold), "", "pause"))
    if view.stateless:
        lines.append(Fact("Stateless: it goes with its last agent", "", "ring"))
    if view.over:
        lines.append(Fact(view.over, "", "triangle", "warn", left_role="warn"))
    return lines


def why_not(view: ContextView | None, verb: Verb) -> str:
    """What is plain without asking."""
    if view is None:
        return "Its workspace is not known."
    if verb == "hold":
        return "It is held already." if view.hold else ""
    if verb == "release":
        return "" if view.hold else "It is not held."
    if view.agents_live:
        return f"{plural(view.agents_live, 'agent')} live in it."
    return "It is held: release it first." if view.hold else ""


class WorkspaceCard(QWidget):
    """Reads the workspaces when it is first shown and every 10 s after; another session's answer is not shown."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._desk = desk
        self._session = ""
        self._views: dict[str, ContextView] = {}
        self._asked_at: float | None = None
        self._error = ""
        self.facts = Facts(22)
        self.none = Text("", 12, fonts.REGULAR, "text2", wrap=True)
        self.buttons: dict[Verb, Button] = {}
        for verb, (title, _, kind) in _ASKS.items():
            button = Button(f"{title}…", kind="danger" if kind == "danger" else "plain", small=True, parent=self)
            button.clicked.connect(lambda _on=False, verb=verb: self.ask(verb))
            self.buttons[verb] = button
        column(self.facts, self.none, row(*self.buttons.values(), spacing=6), spacing=4, on=self)

    def show_session(self, session: str) -> None:
        """The session of the selected agent; asks again when the last answer is old."""
        now = self._desk.clock()
        if self._asked_at is None or now - self._asked_at > READ_EVERY_S or now < self._asked_at:
            self._asked_at = now
            self._desk.requests.ask(ep.CONTEXTS).while_alive(self).then(self._came).failed(self._failed)
        self._session = session
        self._show()

    def _came(self, view: ContextsView) -> None:
        self._views = {one.context_id: one for one in view.contexts}
        self._error = ""
        self._show()

    def _failed(self, error: ConsoleError) -> None:
        self._views = {}
        self._error = str(error)
        self._show()

    def _show(self) -> None:
        view = self._views.get(self._session)
        self.facts.say(lines_of(view, self._desk.clock()) if view is not None else [])
        if self._error:
            self.none.say(f"Not known: {self._error}", "warn", "triangle")
        else:
            self.none.say("This session has no workspace here.", "text2", "")
        self.none.setVisible(view is None)
        for verb, button in self.buttons.items():
            button.setVisible(view is not None)
            button.allow(why_not(view, verb))

    def ask(self, verb: Verb) -> None:
        """The question, with a reason."""
        view = self._views.get(self._session)
        if view is None or why_not(view, verb):
            return
        dialog = WorkspaceDialog(self._desk, verb, view, self.window())
        dialog.answered = self._came
        dialog.open()


class WorkspaceDialog(Dialog):
    """Acts once a reason is there; a refusal is shown in the supervisor's words."""

    def __init__(self, desk: Desk, verb: Verb, view: ContextView, parent: QWidget) -> None:
        title, words, kind = _ASKS[verb]
        super().__init__(f"{title} the workspace of {view.context_id}?", title, kind, parent)
        self._desk, self._verb, self._id = desk, verb, view.context_id
        self.answered: Callable[[ContextsView], None] = lambda _view: None
        self.paragraph(f"{size_words(view.bytes)} in {view.path}. {words}")
        self.reason = self.ask_reason(300, needed=True)
        self.main.clicked.connect(self._send)
        self.reason.setFocus()

    def _send(self) -> None:
        self.main.allow(IN_PROGRESS)
        self.problem.hide()
        body = ContextActBody(reason=self.reason.text().strip())
        asked = self._desk.requests.ask(ep.SESSION_ACT, self._id, self._verb, body=body).while_alive(self)
        asked.then(self._done).failed(self.refused)

    def _done(self, view: ContextsView) -> None:
        self.answered(view)
        self.accept()
