"""Dialogs: a title, plain paragraphs, what the caller adds, and buttons of which the harmless one is the default."""

from __future__ import annotations

import shiboken6
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeySequence, QShortcut, QShowEvent
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLineEdit, QToolTip, QVBoxLayout, QWidget

from console.domain.errors import ConsoleError
from console.gui.theme import fonts
from console.gui.widgets.buttons import Button
from console.gui.widgets.safe_text import safe_text, tooltip
from console.gui.widgets.text import Text

NO_REASON, IN_PROGRESS = "A reason is needed.", "In progress."
"""Why a main button is off."""


class Dialog(QDialog):
    """``body`` takes the caller's widgets. The main button's ``clicked`` is the caller's; Esc and Cancel close."""

    def __init__(self, title: str, main: str, kind: str, parent: QWidget, *, width: int = 480) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(safe_text(title, 120))
        self.setModal(True)
        self.setFixedWidth(width)
        column = QVBoxLayout(self)
        column.setSizeConstraint(QVBoxLayout.SizeConstraint.SetNoConstraint)  # its least height is that of narrower paragraphs
        column.setContentsMargins(24, 20, 24, 18)
        column.setSpacing(12)
        self.title = Text(title, 17, fonts.SEMIBOLD, wrap=True)
        column.addWidget(self.title)
        self.body = QVBoxLayout()
        self.body.setSpacing(8)
        column.addLayout(self.body)
        self.problem = Text("", 12, fonts.MEDIUM, "warn", wrap=True, mark="triangle")
        self.problem.hide()
        column.addWidget(self.problem)
        self.button_row = row = QHBoxLayout()
        row.setSpacing(8)
        row.addStretch(1)
        self.cancel = Button("Cancel", keys="Esc", parent=self)
        self.cancel.clicked.connect(self.reject)
        self.main = Button(main, kind=kind, keys="Ctrl Enter", parent=self)
        for key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            QShortcut(QKeySequence(Qt.Modifier.CTRL | key), self, self._go)
        row.addWidget(self.cancel)
        row.addWidget(self.main)
        column.addSpacing(4)
        column.addLayout(row)
        self.cancel.setFocus()

    def _go(self) -> None:
        """Ctrl Enter: the main button, or why it is off."""
        if self.main.isEnabled():
            self.main.click()
        else:
            QToolTip.showText(self.main.mapToGlobal(self.main.rect().topLeft()), tooltip(self.main.accessibleDescription()), self.main)

    def paragraph(self, words: str, role: str = "text2", mark: str = "") -> Text:
        """Adds a paragraph to the body."""
        text = Text(words, 13, fonts.REGULAR, role, wrap=True, mark=mark)
        self.body.addWidget(text)
        return text

    def ask_reason(self, longest: int = 500, label: str = "Reason, for the record", *, needed: bool = False) -> QLineEdit:
        """Adds a field for a reason to the body. ``needed``: the main button works once there is one."""
        self.body.addWidget(Text(label, 11, fonts.MEDIUM, "text2"))
        field = QLineEdit(self)
        field.setMaxLength(longest)
        field.setAccessibleName("Reason")
        self.body.addWidget(field)
        if needed:
            self.main.allow(NO_REASON)
            field.textChanged.connect(lambda text: self.main.allow("" if text.strip() else NO_REASON))
        return field

    def adjustSize(self) -> None:
        """As high as its paragraphs are at this width: Qt's own guess leaves room for narrower ones."""
        column = self.layout()
        if column is not None:
            column.activate()
            self.resize(self.width(), column.totalHeightForWidth(self.width()))

    @property
    def is_open(self) -> bool:
        """Whether it is still open: an answer may come after it was closed, and Qt deletes it then."""
        return shiboken6.isValid(self) and self.isVisible()

    def refused(self, error: ConsoleError) -> None:
        """Shows why it was refused, in the refuser's words, and lets the person try again."""
        self.problem.setText(f"{error.what} {error.remedy}".strip())
        self.problem.show()
        self.main.allow("")

    def event(self, event: QEvent) -> bool:
        done = super().event(event)
        if event.type() == QEvent.Type.LayoutRequest and self.isVisible():
            self.adjustSize()  # an answer came that needs more room, or less
        return done

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.adjustSize()
