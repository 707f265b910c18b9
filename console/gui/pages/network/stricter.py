"""The question before a session is switched to a stricter mode: what happens, what keeps working, and that there is no way back."""

from __future__ import annotations

from typing import Literal

from PySide6.QtWidgets import QHBoxLayout, QWidget

from console.api import endpoints as ep
from console.api.messages import AgentView
from console.api.network import MeantBody, StricterBody, StricterView
from console.gui.link.pending import Pending
from console.gui.models.modes import SEVERITY, asked_mode
from console.gui.pages.interface import Desk
from console.gui.pages.network.ratchet import FOR_GOOD, RatchetDialog
from console.gui.theme import fonts
from console.gui.widgets.buttons import Pills
from console.gui.widgets.text import Text

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


class StricterDialog(RatchetDialog):
    """A mode for a session and all it spawned; only modes stricter than its own are offered."""

    def __init__(self, desk: Desk, view: AgentView, parent: QWidget) -> None:
        super().__init__(desk, f"Switch session {view.session} to a stricter mode?", "Switch", parent)
        self._agent_id = view.id
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
