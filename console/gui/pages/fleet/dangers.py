"""Dangerous operations that the words of a new agent name: shown before it starts, and confirmed with a reason."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit, QWidget

from console.gui.kit.layout import column
from console.gui.theme import fonts
from console.gui.widgets.text import Text

SHOWN = 5
REASON_MAX = 500
HEAD = "It names dangerous operations. They ask a human when they are called, too; this is a warning about the words."


class DangerBox(QWidget):
    """Hidden while nothing is named. ``changed`` with every edit of the reason."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.named: list[str] = []
        self.lines = Text("", 12, fonts.REGULAR, "text", wrap=True)
        self.reason = QLineEdit(self)
        self.reason.setMaxLength(REASON_MAX)
        self.reason.setAccessibleName("Why it is meant")
        self.reason.setPlaceholderText("Why it is meant; recorded with your name")
        self.reason.textChanged.connect(lambda _text: self.changed.emit())
        column(Text(HEAD, 12, fonts.MEDIUM, "warn", wrap=True, mark="triangle"), self.lines, self.reason, spacing=5, on=self)
        self.hide()

    def say(self, named: list[str]) -> None:
        """What the supervisor found. Other dangers than before need a new confirmation."""
        if named != self.named:
            self.named = named
            self.reason.clear()
        more = f" And {len(named) - SHOWN} more." if len(named) > SHOWN else ""
        self.lines.say("; ".join(named[:SHOWN]) + "." + more if named else "")
        self.setVisible(bool(named))

    def missing(self) -> str:
        """Empty: nothing is named, or it is confirmed."""
        return "Say why the dangerous operations are meant." if self.named and not self.reason.text().strip() else ""

    def confirmed(self) -> str:
        """The reason, or empty where nothing is named."""
        return self.reason.text().strip() if self.named else ""
