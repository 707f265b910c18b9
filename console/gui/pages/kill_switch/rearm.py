"""Rearm: a reason, the kill's id typed by hand, and everything that is still open shown first."""

from __future__ import annotations

from PySide6.QtWidgets import QLineEdit, QWidget

from console.gui.models.switch import Switch, counts, is_proven
from console.gui.pages.interface import Desk
from console.gui.theme import fonts
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.text import Text
from console.gui.widgets.words import plural


def still_open(switch: Switch) -> list[str]:
    """What speaks against rearming now, in words."""
    words = []
    receipt = switch.receipt
    if receipt is None:
        words.append("The receipt of this kill has not been read.")
    elif not is_proven(receipt):
        proven, provable, _ = counts(receipt)
        words.append(f"Not proven: {provable - proven} of {plural(provable, 'agent')}; {plural(len(receipt.survivors), 'survivor')} known.")
    if receipt is not None and not receipt.complete:
        words.append("Steps of the kill are still being carried out.")
    if switch.view is not None and switch.view.remote_latched:
        words.append(
            f"Remote orders are latched ({', '.join(o[:24] for o in switch.view.remote_latched[:3])}): a signed release comes first."
        )
    return words


class RearmDialog(Dialog):
    """The button works once a reason is there and the id matches; a refusal is shown in the supervisor's words."""

    def __init__(self, desk: Desk, kill_id: str, parent: QWidget) -> None:
        super().__init__("Rearm: let agents start again?", "Rearm", "danger", parent, width=520)
        self._desk, self._kill_id = desk, kill_id
        self.paragraph("Nothing that was killed comes back. Launches are allowed again, and the kill switch is armed for the next press.")
        for words in still_open(desk.switch):
            self.paragraph(words, "warn", "triangle")
        self.body.addWidget(Text("Reason, for the record", 11, fonts.MEDIUM, "text2"))
        self.reason = QLineEdit(self)
        self.reason.setMaxLength(500)
        self.reason.setAccessibleName("Reason")
        self.body.addWidget(self.reason)
        self.body.addWidget(Text(f"Type the id of the kill: {kill_id}", 11, fonts.MEDIUM, "text2"))
        self.typed = QLineEdit(self)
        self.typed.setMaxLength(80)
        self.typed.setFont(fonts.mono(12))
        self.typed.setAccessibleName("Kill id")
        self.body.addWidget(self.typed)
        self.main.setEnabled(False)
        self.reason.textChanged.connect(self._judge)
        self.typed.textChanged.connect(self._judge)
        self.main.clicked.connect(self._send)
        self.reason.setFocus()

    def _judge(self) -> None:
        self.main.setEnabled(bool(self.reason.text().strip()) and self.typed.text().strip() == self._kill_id)

    def _send(self) -> None:
        self.main.setEnabled(False)
        self.problem.hide()
        asked = self._desk.requests.switch.rearm(self.reason.text().strip(), self.typed.text().strip()).while_alive(self)
        asked.then(lambda _view: self._done()).failed(self.refused)

    def _done(self) -> None:
        self._desk.notices.say("info", "Rearmed. Agents can start again.")
        self._desk.ask_sync()
        self.accept()
