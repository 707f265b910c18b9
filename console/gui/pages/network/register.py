"""The question before an operator registers private data: what enters which session, what that does to its network, and for good."""

from __future__ import annotations

from typing import Literal, get_args

from PySide6.QtWidgets import QLineEdit, QWidget

from console.api import endpoints as ep
from console.api.messages import AgentView
from console.api.network import MeantBody, RegisterDataBody, StricterView
from console.gui.kit.layout import STRETCH, fill, row
from console.gui.link.pending import Pending
from console.gui.models.modes import mode_words
from console.gui.pages.interface import Desk
from console.gui.pages.network.ratchet import FOR_GOOD, RatchetDialog
from console.gui.theme import fonts
from console.gui.widgets.buttons import Pills
from console.gui.widgets.text import Text
from console.gui.widgets.words import plural

Level = Literal["PUBLIC", "INTERNAL", "CONFIDENTIAL", "SECRET"]
LEVELS: tuple[Level, ...] = get_args(Level)
_UNNAMED = "not named yet"


class RegisterDialog(RatchetDialog):
    """``POST /api/network/private-data`` for the session of an agent and all it spawned."""

    def __init__(self, desk: Desk, view: AgentView, parent: QWidget) -> None:
        super().__init__(desk, f"Register private data in session {view.session}", "Register", parent)
        self._agent_id = view.id
        self.paragraph("Register it before it is handed over: the session is tightened first, then this is answered.", "text2")
        self.dataset = self._field("Dataset", 200, "customer letters")
        self.pills = Pills({level: level.capitalize() for level in LEVELS}, self)
        self.pills.setAccessibleName("Sensitivity")
        self.pills.pills[_begin_at(view.sensitivity)].setChecked(True)
        label = Text("Sensitivity", 11, fonts.MEDIUM, "text2")
        fill(self.body, label, row(self.pills, STRETCH, spacing=-1))
        self.source = self._field("Where it comes from", 200, "crm; optional")
        self.inputs += [label, self.pills]
        self.paragraph(FOR_GOOD, "text2", "alert")
        self.place_question()
        self.pills.changed.connect(lambda _key: self.ask_whom())
        self.dataset.textChanged.connect(lambda _text: self.allow())
        self.ask_whom()
        self.dataset.setFocus()

    def _field(self, title: str, longest: int, example: str) -> QLineEdit:
        label = Text(title, 11, fonts.MEDIUM, "text2")
        field = QLineEdit(self)
        field.setMaxLength(longest)
        field.setPlaceholderText(example)
        field.setAccessibleName(title)
        fill(self.body, label, field)
        self.inputs += [label, field]
        return field

    @property
    def level(self) -> Level:
        """The sensitivity that is chosen; what is not one reads as SECRET."""
        chosen = self.pills.chosen()
        return next((level for level in LEVELS if level == chosen), "SECRET")

    def request(self, reason: str, *, dry_run: bool) -> Pending[StricterView]:
        named = self.dataset.text().strip()
        body = RegisterDataBody(
            scope=MeantBody(reach="agent", target=self._agent_id),
            dataset=named or _UNNAMED if dry_run else named,
            sensitivity=self.level,
            source=self.source.text().strip(),
            reason=reason,
            dry_run=dry_run,
        )
        return self.desk.requests.ask(ep.REGISTER_DATA, body=body)

    def would(self, view: StricterView) -> str:
        held = f"The session will be {view.sensitivity.capitalize()}, in {mode_words(view.mode)[0]}"
        whom = f"{plural(view.switched, 'agent')} will be switched" if view.switched else "no agent's network changes"
        return f"{held}: {whom}."

    def missing(self) -> str:
        return super().missing() if self.dataset.text().strip() else "Name the dataset."


def _begin_at(held: str) -> Level:
    """Private data is CONFIDENTIAL at least, unless a person chooses another level; a session's own level when that is more, or unknown."""
    return "CONFIDENTIAL" if held in LEVELS[:3] else "SECRET"
