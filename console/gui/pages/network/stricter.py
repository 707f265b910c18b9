"""The question before a session is switched to a stricter mode: what happens, what keeps working, and that there is no way back."""

from __future__ import annotations

from typing import Literal

import shiboken6
from PySide6.QtWidgets import QHBoxLayout, QLayout, QLineEdit, QWidget

from console.api.messages import AgentView
from console.api.sandbox_messages import MeantBody, StricterBody, StricterView, SwitchedAgent
from console.domain.errors import ConsoleError
from console.gui.models.modes import SEVERITY, asked_mode
from console.gui.pages.interface import Desk
from console.gui.theme import fonts
from console.gui.widgets.buttons import Pills
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.facts import Fact, Facts
from console.gui.widgets.text import Text
from console.gui.widgets.words import plural, took

Mode = Literal["PROXIED", "NONE"]
TITLES: dict[Mode, str] = {"PROXIED": "Proxied", "NONE": "No network"}
HAPPENS: dict[Mode, str] = {
    "PROXIED": "Only destinations of the allowlist can be reached, through the portal inside each sandbox. All else is cut.",
    "NONE": "No destination can be reached. Portals are closed and open connections are reset.",
}
KEEPS: dict[Mode, str] = {
    "PROXIED": "Files, computation, the agents' own sockets and allowlisted requests keep working; nothing is ended.",
    "NONE": "Files, computation and the agents' own sockets keep working; nothing is ended.",
}
FOR_GOOD = (
    "A mode is never loosened: it holds for the session's whole life, for whoever joins it and for all it spawns. "
    "To cut and give back later, isolate instead."
)
_LISTED = 6


class StricterDialog(Dialog):
    """Nothing is sent before the supervisor has said what it would do and a reason is there."""

    def __init__(self, desk: Desk, view: AgentView, parent: QWidget) -> None:
        super().__init__(f"Switch session {view.session} to a stricter mode?", "Switch", "danger", parent, width=560)
        self._desk, self._agent_id = desk, view.id
        column = self.layout()
        assert column is not None
        column.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)  # Qt's least height is that of narrower paragraphs
        self.preview: StricterView | None = None
        self._sent = False
        now = SEVERITY.get(asked_mode(view), 0) if not view.isolated else 0
        choices = {mode: words for mode, words in TITLES.items() if SEVERITY[mode] > now or SEVERITY[mode] == 2}
        self.pills = Pills({str(mode): words for mode, words in choices.items()}, self)
        self.pills.setAccessibleName("Mode")
        self.body.addWidget(Text("From now on", 11, fonts.MEDIUM, "text2"))
        row = QHBoxLayout()
        row.addWidget(self.pills)
        row.addStretch(1)
        self.body.addLayout(row)
        self.happens = self.paragraph("", "text")
        self.keeps = self.paragraph("", "text2", "check")
        self.paragraph(FOR_GOOD, "text2", "alert")
        self.sentence = self.paragraph("", "text2", "ring")
        self.doubts = Facts(21)
        self.body.addWidget(self.doubts)
        self._label = Text("Reason, for the record", 11, fonts.MEDIUM, "text2")
        self.reason = QLineEdit(self)
        self.reason.setMaxLength(400)
        self.reason.setAccessibleName("Reason")
        self.body.addWidget(self._label)
        self.body.addWidget(self.reason)
        self.pills.changed.connect(lambda _key: self._ask())
        self.reason.textChanged.connect(lambda _text: self._allow())
        self.main.clicked.connect(self._send)
        self._ask()
        self.reason.setFocus()

    @property
    def mode(self) -> Mode:
        """The mode that is chosen."""
        return "PROXIED" if self.pills.chosen() == "PROXIED" else "NONE"

    def _body(self, reason: str, *, dry_run: bool) -> StricterBody:
        return StricterBody(scope=MeantBody(reach="agent", target=self._agent_id), mode=self.mode, reason=reason, dry_run=dry_run)

    # --- before ------------------------------------------------------------------------------------------------------

    def _ask(self) -> None:
        mode, self.preview = self.mode, None
        self.happens.setText(HAPPENS[mode])
        self.keeps.setText(KEEPS[mode])
        self.main.setText(f"Switch to {TITLES[mode]}")
        self.sentence.say("The supervisor is asked whom this means…", "text2", "ring")
        self.doubts.say([])
        self.problem.hide()
        self._allow()
        asked = self._desk.requests.network.stricter(self._body("asked before", dry_run=True)).while_alive(self)
        asked.then(lambda view: self._previewed(view, mode)).failed(lambda error: self._unknown(error, mode))

    def _previewed(self, view: StricterView, mode: Mode) -> None:
        if mode != self.mode or self._sent:
            return
        self.preview = view
        sessions = f" in {plural(view.sessions_total, 'session')}" if view.sessions_total != 1 else ""
        self.sentence.say(f"{plural(view.switched, 'agent')}{sessions} will be switched.", "text", "")
        self.doubts.say(doubt_lines(view.agents))
        self.problem.setText(view.why_not)
        self.problem.setVisible(bool(view.why_not))
        self._allow()
        self.adjustSize()

    def _unknown(self, error: ConsoleError, mode: Mode) -> None:
        """What only tightens does not wait for a preview."""
        if mode == self.mode and not self._sent:
            self.sentence.say(f"Whom this means is not known: {error}", "warn", "triangle")
            self._allow()
            self.adjustSize()

    def _allow(self) -> None:
        refused = self.preview.why_not if self.preview is not None else ""
        self.main.allow(refused or ("" if self.reason.text().strip() else "Give a reason: it is recorded."))

    # --- the act -----------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        self._sent = True
        self.problem.hide()
        self.main.allow("It is being done.")
        self.pills.setEnabled(False)
        self.sentence.say("It is being done. Closing this window does not stop it.", "text2", "ring")
        self.doubts.say([])
        asked = self._desk.requests.network.stricter(self._body(self.reason.text().strip(), dry_run=False))
        asked.then(self._done).failed(self._failed)

    @property
    def _is_open(self) -> bool:
        return shiboken6.isValid(self) and self.isVisible()

    def _failed(self, error: ConsoleError) -> None:
        self._desk.ask_sync()
        if not self._is_open:
            self._desk.notices.fail(error)
            return
        self._sent = False
        self.pills.setEnabled(True)
        self.sentence.say("It was refused, or not finished.", "warn", "triangle")
        self.refused(error)

    def _done(self, view: StricterView) -> None:
        self._desk.ask_sync()
        words = f"{view.words.rstrip('.')} ({took(view.ms)})." if "ms" not in view.words else view.words
        self._desk.notices.say("amber" if view.not_enforceable else "info", words)
        if not self._is_open:
            return
        if not view.not_enforceable:
            self.accept()
            return
        self.sentence.say(words, "warn", "triangle")
        self.doubts.say(doubt_lines(view.agents))
        self.cancel.setText("Close")
        for part in (self.main, self.reason, self._label, self.pills, self.happens, self.keeps):
            part.hide()
        self.adjustSize()


def doubt_lines(agents: list[SwitchedAgent]) -> list[Fact]:
    """Whom nothing would hold, or holds, and why; amber."""
    open_ends = [agent for agent in agents if agent.switched and not agent.verified]
    lines = [
        Fact(f"{agent.name or agent.id}: {agent.note or 'not enforceable here'}", "", "triangle", "warn", left_role="warn")
        for agent in open_ends[:_LISTED]
    ]
    if len(open_ends) > _LISTED:
        lines.append(Fact(f"and {plural(len(open_ends) - _LISTED, 'more agent')}", "", left_role="text2", indent=True))
    return lines
