"""Talking to an agent that was started as a program: a message, an interrupt, its end; and why not, in the supervisor's words."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QWidget

from console.api import endpoints as ep
from console.api.agents.programs import EndBody, EndedView, InterruptBody, SaidView, SayBody
from console.api.messages import AgentDetailView
from console.domain.conversation import checked_text
from console.domain.errors import ConsoleError, Unconfirmed
from console.gui.kit.layout import column, row
from console.gui.models.operators import person
from console.gui.pages.interface import Desk
from console.gui.theme import fonts
from console.gui.timers import every
from console.gui.widgets.buttons import Button
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.side_pane import Foot
from console.gui.widgets.text import Text

LOOK_MS = 2000
"""How often it is asked whether one can talk to it, while the page is in front."""
_END_S = 75.0
"""How long its end is waited for: a turn under way has 30 s to finish."""
_UNKNOWN = "Whether one can talk to it is not known yet."
_BEING_SENT = "It is being sent."
_VERBS = ("say", "interrupt", "end")
_HINT = ("It accepts messages: Enter sends, Shift Enter begins a line.", False)


class MessageField(QPlainTextEdit):
    """Enter sends, Shift Enter begins a line, Esc gives the focus back."""

    sent = Signal()
    left = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.sent.emit()
        elif event.key() == Qt.Key.Key_Escape:
            self.left.emit()
        else:
            super().keyPressEvent(event)


class DangerDialog(Dialog):
    """A message that names dangerous operations: which, and whether it is meant. ``then`` gets the reason.

    What is sent is the message that was shown, whatever was written since.
    """

    def __init__(self, words: str, message: str, then: Callable[[str], None], parent: QWidget) -> None:
        super().__init__("Send it all the same?", "Send", "danger", parent, width=560)
        self.found = self.paragraph(words, "warn", "triangle")
        self.message = self.paragraph(f"The message: {message}")
        self.reason = self.ask_reason(label="Why it is meant; recorded", needed=True)
        _send_with(self, self.reason, then)


class EndDialog(Dialog):
    """The question before a started program is asked to finish. ``then`` gets the reason, which may be empty."""

    def __init__(self, name: str, agent_id: str, then: Callable[[str], None], parent: QWidget) -> None:
        super().__init__(f"Finish {name}?", "Finish", "primary", parent, width=520)
        self.target = self.paragraph(f"Agent {agent_id} may finish its turn, for 30 seconds. It accepts no message afterwards.")
        self.rest = self.paragraph("Nothing is killed. Processes that are left after that time are named.", "text2")
        self.reason = self.ask_reason(label="Why; recorded")
        _send_with(self, self.reason, then)


def _send_with(dialog: Dialog, reason: QLineEdit, then: Callable[[str], None]) -> None:
    """Enter in the field or the main button closes the dialog and hands the reason on."""
    reason.setAccessibleName("Why")
    reason.returnPressed.connect(dialog.main.click)
    dialog.main.clicked.connect(lambda: then(reason.text().strip()))
    dialog.main.clicked.connect(dialog.accept)
    reason.setFocus()


class TalkBar(Foot):
    """Below the feed. What was written for one agent never goes to another."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._desk = desk
        self.agent_id = ""
        self._why = dict.fromkeys(_VERBS, _UNKNOWN)
        self._busy = ""
        self._note = _HINT
        """The last outcome, and whether it is odd; it stays until something is written."""
        self.state = Text("", 12, fonts.REGULAR, "text2", mark="ring")
        self.field = MessageField(self)
        self.field.setAccessibleName("Message")
        self.field.setTabChangesFocus(True)
        self.field.setFixedHeight(54)
        self.field.sent.connect(self.say)
        self.field.textChanged.connect(self._typed)
        self.send = Button("Send", "", "primary", keys="Enter", small=True, parent=self)
        self.send.clicked.connect(self.say)
        self.stop = Button("Interrupt its turn", "pause", keys="I", small=True, parent=self)
        self.stop.clicked.connect(self.interrupt)
        self.finish = Button("End…", "", small=True, parent=self)
        self.finish.clicked.connect(self.ask_end)
        buttons = column(self.send, row(self.stop, self.finish, spacing=4), spacing=4)
        column(self.state, row((self.field, 1), buttons, spacing=8), margins=(16, 7, 16, 8), spacing=5, on=self)
        self._poll = every(self, LOOK_MS, self.look)
        self._show()

    # --- whom, and whether one can -----------------------------------------------------------------------------------

    def show_agent(self, agent_id: str) -> None:
        """Another agent: what was written for the one before goes."""
        if agent_id != self.agent_id:
            self.agent_id, self._busy = agent_id, ""
            self._why = dict.fromkeys(_VERBS, _UNKNOWN)
            self.field.clear()
            self._typed()
        self.look()

    def watch(self, *, on: bool) -> None:
        """Whether the page is in front."""
        if on:
            self._poll.start()
        else:
            self._poll.stop()

    def look(self) -> None:
        """Asks the supervisor."""
        if self.agent_id:
            asked, agent_id = self._desk.requests.ask(ep.AGENT, self.agent_id).while_alive(self), self.agent_id
            asked.then(self._came).failed(lambda error: self._not_known(agent_id, error))

    def _came(self, detail: AgentDetailView) -> None:
        if detail.agent.id == self.agent_id:
            self._why = {verb: person(detail.can.get(verb, "the supervisor does not say whether one can")) for verb in _VERBS}
            self._show()

    def _not_known(self, agent_id: str, error: ConsoleError) -> None:
        if agent_id == self.agent_id:
            self._why = dict.fromkeys(_VERBS, f"not known: {error.what}")
            self._show()

    def why_not(self, verb: str) -> str:
        """Return why ``say``, ``interrupt`` or ``end`` is not possible now; empty: it is possible."""
        if not self.agent_id:
            return "No agent is selected."
        if self._desk.switch.is_killed:
            return "Everything is stopped. No agent takes messages until you rearm."
        return self._busy or self._why[verb]

    # --- the acts ----------------------------------------------------------------------------------------------------

    def say(self) -> None:
        """Send what is written. It stays in the field until the agent has taken it."""
        why_not = self.why_not("say")
        text = written = self.field.toPlainText()
        if why_not:
            self._told(why_not, odd=True)
            return
        try:
            text = checked_text(text)
        except ConsoleError as error:
            self._told(f"{error.what} {error.remedy}", odd=True)
            return
        self._send(self.agent_id, text, written)

    def _send(self, agent_id: str, text: str, written: str, dangerous_ok: str = "") -> None:
        if agent_id != self.agent_id or self.why_not("say"):
            self._told("It was not sent: one cannot talk to that agent now.", odd=True)
            return
        self._busy = _BEING_SENT
        self._show()

        def refused(error: ConsoleError) -> None:
            self._refused(agent_id, error)
            if isinstance(error, Unconfirmed) and agent_id == self.agent_id and not dangerous_ok:
                DangerDialog(error.what, text, lambda reason: self._send(agent_id, text, written, reason), self.window()).open()

        sent = self._desk.requests.ask(ep.MESSAGE, agent_id, body=SayBody(text=text, dangerous_ok=dangerous_ok)).while_alive(self)
        sent.then(lambda view: self._said(view, written)).failed(refused)

    def interrupt(self) -> None:
        """Ends its present turn; the program has to confirm it."""
        if why_not := self.why_not("interrupt"):
            self._told(why_not, odd=True)
            return
        agent_id, self._busy = self.agent_id, "Its own word that the turn ended is waited for."
        self._show()
        sent = self._desk.requests.ask(ep.INTERRUPT, agent_id, body=InterruptBody()).while_alive(self)
        sent.then(self._interrupted).failed(lambda error: self._refused(agent_id, error))

    def ask_end(self) -> None:
        """Asks first: nothing more can be said to it afterwards."""
        if why_not := self.why_not("end"):
            self._told(why_not, odd=True)
            return
        agent_id = self.agent_id
        agent = self._desk.fleet.rows.get(agent_id)
        EndDialog(agent.name if agent is not None else agent_id, agent_id, lambda reason: self._end(agent_id, reason), self.window()).open()

    def _end(self, agent_id: str, reason: str) -> None:
        if agent_id != self.agent_id or self.why_not("end"):
            self._told("It was not asked to end: one cannot talk to that agent now.", odd=True)
            return
        self._busy = "Ending: it was told that no more messages come."
        self._show()
        sent = self._desk.requests.ask(ep.FINISH, agent_id, body=EndBody(reason=reason), wait_s=_END_S).while_alive(self)
        sent.then(self._ended).failed(lambda error: self._refused(agent_id, error))

    def _ended(self, view: EndedView) -> None:
        if view.id != self.agent_id:
            return
        self._busy = ""
        said = {"ended": "It has ended", "runs": "Still active", "killed": "It did not end by itself"}[view.done]
        doubt = f" Best effort: {view.best_effort}" if view.best_effort else ""
        self._told(safe_text(f"{said}: {view.words}.{doubt}", 400), odd=view.done != "ended" or bool(doubt))
        self.look()

    def _said(self, view: SaidView, written: str) -> None:
        if view.id == self.agent_id:
            self._busy = ""
            if self.field.toPlainText() == written:
                self.field.clear()  # what was written meanwhile was not sent
            self._told("Sent, and on record.")

    def _interrupted(self, view: SaidView) -> None:
        if view.id == self.agent_id:
            self._busy = ""
            self._told("Its turn has ended: it confirmed that.")

    def _refused(self, agent_id: str, error: ConsoleError) -> None:
        if agent_id != self.agent_id:
            self._desk.notices.fail(error)
            return
        self._busy = ""
        self._told(f"{error.what} {error.remedy}".strip(), odd=True)
        self.look()

    # --- words -------------------------------------------------------------------------------------------------------

    def _told(self, words: str, *, odd: bool = False) -> None:
        self._note = (words, odd)
        self._show()

    def _typed(self) -> None:
        self._note = _HINT
        self._show()

    def _show(self) -> None:
        why_not, text = self.why_not("say"), self.field.toPlainText()
        can_write = not why_not or bool(self._busy) or bool(text)
        for part in (self.field, self.send, self.stop, self.finish):
            part.setVisible(can_write)
        self.setFixedHeight(102 if can_write else 34)
        agent = self._desk.fleet.rows.get(self.agent_id)
        self.field.setPlaceholderText(safe_text(f"Tell {agent.name if agent is not None else self.agent_id} something", 120))
        self.send.allow(why_not or ("" if text.strip() else "Nothing is written yet."))
        self.stop.allow(self.why_not("interrupt"))
        self.finish.allow(self.why_not("end"))
        words, odd = self._note
        if why_not and not odd:
            words = why_not if self._busy else f"Read only: {why_not}"
        self.state.say(words, "warn" if odd else "text2", "triangle" if odd else "ring")
