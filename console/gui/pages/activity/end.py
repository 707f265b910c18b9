"""The question before a started program is asked to finish: what that means, and the reason for the record."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QLineEdit, QWidget

from console.gui.theme import fonts
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.text import Text

REASON_MAX = 500


class EndDialog(Dialog):
    """``then`` gets the reason, which may be empty."""

    def __init__(self, name: str, agent_id: str, then: Callable[[str], None], parent: QWidget) -> None:
        super().__init__(f"Finish {name}?", "Finish", "primary", parent, width=520)
        self._then = then
        self.target = self.paragraph(f"Agent {agent_id} may finish its turn, for 30 seconds. It accepts no message afterwards.")
        self.rest = self.paragraph("Nothing is killed. Processes that are left after that time are named.", "text2")
        self.body.addWidget(Text("Why; recorded", 11, fonts.MEDIUM, "text2"))
        self.reason = QLineEdit(self)
        self.reason.setMaxLength(REASON_MAX)
        self.reason.setAccessibleName("Why")
        self.body.addWidget(self.reason)
        self.reason.returnPressed.connect(self.main.click)
        self.main.clicked.connect(self._end)
        self.reason.setFocus()

    def _end(self) -> None:
        self._then(self.reason.text().strip())
        self.accept()
