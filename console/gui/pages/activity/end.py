"""Before a started program is asked to end: what that means, and why, for the record."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QLineEdit, QWidget

from console.gui.theme import fonts
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.text import Text

REASON_MAX = 500


class EndDialog(Dialog):
    """``then`` gets the reason, which may be empty."""

    def __init__(self, name: str, then: Callable[[str], None], parent: QWidget) -> None:
        super().__init__("Tell it that no more comes?", "End it", "primary", parent, width=520)
        self._then = then
        self.whom = self.paragraph(
            safe_text(f"{name} may finish its turn, for 30 seconds. Nothing more can be said to it afterwards.", 300)
        )
        self.rest = self.paragraph("Nothing is killed: if somebody of it is left then, that is said.", "text2")
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
