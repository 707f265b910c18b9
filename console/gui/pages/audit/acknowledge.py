"""The question before a loss of the audit log is acknowledged: what was lost, and a reason."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from console.api import endpoints as ep
from console.api.records import AcknowledgeLossBody, AuditVerdict
from console.gui.pages.interface import Desk
from console.gui.widgets.dialog import Dialog

_WHAT = (
    "Records of before are lost, or an older copy of the log was put in its place. Until a person acknowledges that, the log is shown as "
    "not intact in the window, in status and in every export. Your reason is recorded, and nothing is restored."
)


class AcknowledgeDialog(Dialog):
    """The page changes with the next status."""

    def __init__(self, desk: Desk, why: str, parent: QWidget) -> None:
        super().__init__("Acknowledge the loss of records?", "Acknowledge", "primary", parent, width=560)
        self._desk = desk
        self.paragraph(_WHAT)
        self.paragraph(why or "What was lost is not known.", "warn", "triangle")
        self.reason = self.ask_reason(label="What you found out about it, for the record", needed=True)
        self.main.clicked.connect(self._send)
        self.reason.setFocus()

    def _send(self) -> None:
        self.main.setEnabled(False)
        self.problem.hide()
        asked = self._desk.requests.ask(ep.ACKNOWLEDGE, body=AcknowledgeLossBody(reason=self.reason.text().strip())).while_alive(self)
        asked.then(self._acknowledged).failed(self.refused)

    def _acknowledged(self, verdict: AuditVerdict) -> None:
        self._desk.ask_sync()
        left = "" if verdict.whole else " The log is still not intact."
        self._desk.notices.say("info" if verdict.whole else "amber", f"The loss is acknowledged.{left}")
        self.accept()
