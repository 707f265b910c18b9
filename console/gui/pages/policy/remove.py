"""Removing a rule that a person made of an approval."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QWidget

from console.api import endpoints as ep
from console.api.policy.rules import ExactRemoveBody, ExactRule, PolicyView
from console.gui.pages.interface import Desk
from console.gui.widgets.dialog import Dialog


class RemoveDialog(Dialog):
    """``then`` gets the rules that are left in force."""

    def __init__(self, desk: Desk, rule: ExactRule, then: Callable[[PolicyView], None], parent: QWidget) -> None:
        super().__init__("Remove this rule?", "Remove", "danger", parent)
        self._desk, self._rule, self._then = desk, rule, then
        self.paragraph(f"{rule.tool} {rule.argument}"[:600], "text")
        self.paragraph("From then on each such call is asked again.")
        self.reason = self.ask_reason(label="Reason (optional)")
        self.main.clicked.connect(self._send)
        self.reason.setFocus()

    def _send(self) -> None:
        self.main.setEnabled(False)
        body = ExactRemoveBody(id=self._rule.id, reason=self.reason.text().strip())
        self._desk.requests.ask(ep.REMOVE_RULE, body=body).while_alive(self).then(self._removed).failed(self.refused)

    def _removed(self, view: PolicyView) -> None:
        self._then(view)
        self.accept()
