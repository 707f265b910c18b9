"""Setting or changing the passphrase for rearm, in the console. Nothing that is typed is shown, and no field keeps it."""

from __future__ import annotations

from PySide6.QtWidgets import QLineEdit, QWidget

from console.api import endpoints as ep
from console.api.rearm import PassphraseBody, PassphraseView
from console.domain.errors import ConsoleError
from console.gui.pages.interface import Desk
from console.gui.theme import fonts
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.text import Text

SHORTEST = 8


class PassphraseDialog(Dialog):
    """New, again, and the old one when there is one."""

    def __init__(self, desk: Desk, parent: QWidget) -> None:
        state = desk.switch.view.passphrase if desk.switch.view is not None else "unknown"
        is_set = state == "set"
        super().__init__("Change the passphrase for rearm" if is_set else "Set a passphrase for rearm", "Set", "primary", parent, width=520)
        self._desk = desk
        self.paragraph(
            "After a kill only this passphrase, or a signature by an operator key, lets agents start again. "
            "If it is lost, the owner of the state directory resets it at a terminal, on record."
        )
        self.old = self._field("Old passphrase", shown=is_set)
        self.new = self._field(f"New passphrase, {SHORTEST} characters or more")
        self.again = self._field("Again")
        self._judge()
        for field in (self.old, self.new, self.again):
            field.textChanged.connect(self._judge)
        self.main.clicked.connect(self._send)
        self.finished.connect(self._clear)
        (self.old if is_set else self.new).setFocus()

    def _field(self, name: str, *, shown: bool = True) -> QLineEdit:
        label = Text(name, 11, fonts.MEDIUM, "text2")
        self.body.addWidget(label)
        field = QLineEdit(self)
        field.setEchoMode(QLineEdit.EchoMode.NoEcho)
        field.setPlaceholderText("nothing is shown while you type")
        field.setMaxLength(256)
        field.setAccessibleName(name)
        self.body.addWidget(field)
        label.setVisible(shown)
        field.setVisible(shown)
        return field

    def _judge(self) -> None:
        new = self.new.text()
        same = new == self.again.text()
        why_not = "" if same else "The two are not the same."
        if len(new) < SHORTEST:
            why_not = f"The new passphrase needs {SHORTEST} characters or more."
        if not self.old.isHidden() and not self.old.text():
            why_not = "The old passphrase is needed."
        self.main.allow(why_not)
        if new and self.again.text() and not same and len(self.again.text()) >= len(new):
            self.problem.setText("The two are not the same.")
            self.problem.show()
        else:
            self.problem.hide()

    def _send(self) -> None:
        body = PassphraseBody(action="set", new=self.new.text(), old=self.old.text())
        self._clear()
        asked = self._desk.requests.ask(ep.CHANGE_PASSPHRASE, body=body).while_alive(self)
        asked.then(self._done).failed(self._refused)

    def _clear(self) -> None:
        for field in (self.old, self.new, self.again):
            field.clear()

    def _refused(self, error: ConsoleError) -> None:
        self.refused(error)
        self.main.allow("Type the passphrase again.")

    def _done(self, view: PassphraseView) -> None:
        self._desk.notices.say("info", "The passphrase for rearm is set.")
        for words in view.notes:
            self._desk.notices.say("amber", words)
        self._desk.ask_sync()
        self.accept()
