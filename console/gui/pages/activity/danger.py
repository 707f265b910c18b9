"""A message that names dangerous operations: which, with the words, and whether it is meant."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QLineEdit, QWidget

from console.gui.theme import fonts
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.text import Text

REASON_MAX = 500


class DangerDialog(Dialog):
    """``then`` gets the reason. What is sent is the message that was shown, whatever was written since."""

    def __init__(self, words: str, message: str, then: Callable[[str], None], parent: QWidget) -> None:
        super().__init__("Send it all the same?", "Send", "danger", parent, width=560)
        self._then = then
        self.found = self.paragraph(words, "warn", "triangle")
        self.message = self.paragraph(f"The message: {message}")
        self.body.addWidget(Text("Why it is meant; recorded", 11, fonts.MEDIUM, "text2"))
        self.reason = QLineEdit(self)
        self.reason.setMaxLength(REASON_MAX)
        self.reason.setAccessibleName("Why it is meant")
        self.body.addWidget(self.reason)
        self.main.setEnabled(False)
        self.reason.textChanged.connect(lambda text: self.main.setEnabled(bool(text.strip())))
        self.reason.returnPressed.connect(self.main.click)
        self.main.clicked.connect(self._send)
        self.reason.setFocus()

    def _send(self) -> None:
        if reason := self.reason.text().strip():
            self._then(reason)
            self.accept()
