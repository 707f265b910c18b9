"""The questions before a session is tightened: which agents it means, that it cannot be undone, and the result."""

from __future__ import annotations

from typing import Literal

from PySide6.QtWidgets import QLineEdit, QWidget

from console.api import endpoints as ep
from console.api.messages import AgentView
from console.api.network import MeantBody, StricterBody, StricterView, SwitchedAgent
from console.domain.errors import ConsoleError
from console.gui.kit.layout import STRETCH, fill, row
from console.gui.link.pending import Pending
from console.gui.models.modes import SEVERITY, asked_mode
from console.gui.pages.interface import Desk
from console.gui.theme import fonts
from console.gui.widgets.buttons import Pills
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.facts import Fact, Facts
from console.gui.widgets.text import Text
from console.gui.widgets.words import plural, took

FOR_GOOD = (
    "A mode is never loosened. It holds as long as the session lives, for every agent in it and all that they start. "
    "To cut the network and give it back later, isolate instead."
)
Mode = Literal["PROXIED", "NONE"]
TITLES: dict[Mode, str] = {"PROXIED": "Proxied", "NONE": "No network"}
HAPPENS: dict[Mode, str] = {
    "PROXIED": "Only the allowlist and the model of a started program can be reached, through the portal. All else is cut.",
    "NONE": "No destination can be reached. Portals are closed and open connections are reset.",
}
KEEPS: dict[Mode, str] = {
    "PROXIED": "Files, computation, the agents' own sockets and allowlisted requests keep working; nothing is ended.",
    "NONE": "Files, computation and the agents' own sockets keep working; nothing is ended.",
}
_LISTED = 6
_PREVIEW = "asked before"


class RatchetDialog(Dialog):
    """Ask for a reason before anything is sent. A change that only tightens does not wait for the supervisor's preview.

    A subclass adds its fields, then calls ``ask_whom`` and ``place_question``. ``request`` is what it asks for.
    """

    def __init__(self, desk: Desk, title: str, main: str, parent: QWidget) -> None:
        super().__init__(title, main, "danger", parent, width=560)
        self.desk = desk
        self.preview: StricterView | None = None
        self._asked = 0
        self._sent = False
        self.inputs: list[QWidget] = []
        """What is put away once it is done."""
        self.main.clicked.connect(self._send)

    def place_question(self) -> None:
        """The agents that it means, and the field for the reason, below what the subclass added."""
        self.sentence = self.paragraph("", "text2", "ring")
        self.doubts = Facts(21)
        self.body.addWidget(self.doubts)
        label = Text("Reason, for the record", 11, fonts.MEDIUM, "text2")
        self.reason = QLineEdit(self)
        self.reason.setMaxLength(400)
        self.reason.setAccessibleName("Reason")
        self.body.addWidget(label)
        self.body.addWidget(self.reason)
        self.inputs += [label, self.reason]
        self.reason.textChanged.connect(lambda _text: self.allow())

    # --- what a subclass says -------------------------------------------------------------------------------------

    def request(self, reason: str, *, dry_run: bool) -> Pending[StricterView]:
        """What it asks of the supervisor."""
        raise NotImplementedError

    def would(self, view: StricterView) -> str:
        """What a preview says, in one sentence."""
        sessions = f" in {plural(view.sessions_total, 'session')}" if view.sessions_total != 1 else ""
        return f"{plural(view.switched, 'agent')}{sessions} will be switched."

    def missing(self) -> str:
        """What has to be filled in first, or empty."""
        return "" if self.reason.text().strip() else "Give a reason: it is recorded."

    # --- before ------------------------------------------------------------------------------------------------------

    def ask_whom(self) -> None:
        """Ask the supervisor what this would do. An answer to an older question is not shown."""
        self.preview = None
        self._asked += 1
        number = self._asked
        self.sentence.say("Asking the supervisor which agents this affects…", "text2", "ring")
        self.doubts.say([])
        self.problem.hide()
        self.allow()
        asked = self.request(_PREVIEW, dry_run=True).while_alive(self)
        asked.then(lambda view: self._previewed(view, number)).failed(lambda error: self._unknown(error, number))

    def _previewed(self, view: StricterView, number: int) -> None:
        if number != self._asked or self._sent:
            return
        self.preview = view
        self.sentence.say(self.would(view), "text", "")
        self.doubts.say(doubt_lines(view.agents))
        self.problem.setText(view.why_not)
        self.problem.setVisible(bool(view.why_not))
        self.allow()

    def _unknown(self, error: ConsoleError, number: int) -> None:
        if number == self._asked and not self._sent:
            self.sentence.say(f"The affected agents are unknown: {error}", "warn", "triangle")
            self.allow()

    def allow(self) -> None:
        """Enable the main button as far as the fields and the preview allow."""
        self.main.allow((self.preview.why_not if self.preview is not None else "") or self.missing())

    # --- the act -----------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        self._sent = True
        self.problem.hide()
        self.main.allow("In progress.")
        self._enable(on=False)
        self.sentence.say("In progress. You can close this window.", "text2", "ring")
        self.doubts.say([])
        self.request(self.reason.text().strip(), dry_run=False).then(self._done).failed(self._failed)

    def _enable(self, *, on: bool) -> None:
        for part in self.inputs:
            part.setEnabled(on)

    def _failed(self, error: ConsoleError) -> None:
        self.desk.ask_sync()
        if not self.is_open:
            self.desk.notices.fail(error)
            return
        self._sent = False
        self._enable(on=True)
        self.sentence.say("It was refused, or not finished.", "warn", "triangle")
        self.refused(error)

    def _done(self, view: StricterView) -> None:
        self.desk.ask_sync()
        words = f"{view.words.rstrip('.')} ({took(view.ms)})." if "ms" not in view.words else view.words
        self.desk.notices.say("amber" if view.not_enforceable else "info", words)
        if not self.is_open:
            return
        if not view.not_enforceable:
            self.accept()
            return
        self.sentence.say(words, "warn", "triangle")
        self.doubts.say(doubt_lines(view.agents))
        self.cancel.setText("Close")
        for part in (self.main, *self.inputs):
            part.hide()


def doubt_lines(agents: list[SwitchedAgent]) -> list[Fact]:
    """Return amber lines: each agent on which the mode is not enforced or not checked, and why."""
    open_ends = [agent for agent in agents if agent.switched and not agent.verified]
    lines = [
        Fact(f"{agent.name or agent.id}: {agent.note or 'not enforceable here'}", "", "triangle", "warn", left_role="warn")
        for agent in open_ends[:_LISTED]
    ]
    if len(open_ends) > _LISTED:
        lines.append(Fact(f"and {plural(len(open_ends) - _LISTED, 'more agent')}", "", left_role="text2", indent=True))
    return lines


class StricterDialog(RatchetDialog):
    """A mode for a session and all it spawned; only modes stricter than its own are offered."""

    def __init__(self, desk: Desk, view: AgentView, parent: QWidget) -> None:
        super().__init__(desk, f"Switch session {view.session} to a stricter mode?", "Switch", parent)
        self._agent_id = view.id
        now = SEVERITY.get(asked_mode(view), 0) if not view.isolated else 0
        choices = {mode: words for mode, words in TITLES.items() if SEVERITY[mode] > now or SEVERITY[mode] == 2}
        self.pills = Pills({str(mode): words for mode, words in choices.items()}, self)
        self.pills.setAccessibleName("Mode")
        fill(self.body, Text("From now on", 11, fonts.MEDIUM, "text2"), row(self.pills, STRETCH, spacing=-1))
        self.happens = self.paragraph("", "text")
        self.keeps = self.paragraph("", "text2", "check")
        self.paragraph(FOR_GOOD, "text2", "alert")
        self.inputs += [self.pills, self.happens, self.keeps]
        self.place_question()
        self.pills.changed.connect(lambda _key: self._chosen())
        self._chosen()
        self.reason.setFocus()

    @property
    def mode(self) -> Mode:
        """The mode that is chosen."""
        return "PROXIED" if self.pills.chosen() == "PROXIED" else "NONE"

    def _chosen(self) -> None:
        self.happens.setText(HAPPENS[self.mode])
        self.keeps.setText(KEEPS[self.mode])
        self.main.setText(f"Switch to {TITLES[self.mode]}")
        self.ask_whom()

    def request(self, reason: str, *, dry_run: bool) -> Pending[StricterView]:
        scope = MeantBody(reach="agent", target=self._agent_id)
        return self.desk.requests.ask(ep.STRICTER, body=StricterBody(scope=scope, mode=self.mode, reason=reason, dry_run=dry_run))
