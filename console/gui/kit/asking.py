"""A question whose answer is sent with a reason: what is asked comes from the caller, sending and refusal are the same everywhere."""

from __future__ import annotations

from typing import Any

from PySide6.QtWidgets import QLineEdit

from console.gui.link.pending import Pending
from console.gui.widgets.dialog import IN_PROGRESS, Dialog


class ReasonDialog(Dialog):
    """A subclass says what it is about with ``paragraph``, then calls ``ask``; ``send`` and ``answered`` are its own.

    A refusal is shown in the supervisor's words and nothing is changed: the person may try again.
    """

    reason: QLineEdit

    def ask(self, label: str = "Reason, for the record", *, longest: int = 500, needed: bool = True) -> None:
        """The field for the reason, below what was said; ``needed``: nothing is sent without one."""
        self.reason = self.ask_reason(longest, label, needed=needed)
        self.main.clicked.connect(self._send)
        self.reason.setFocus()

    def send(self, reason: str) -> Pending[Any]:
        """What is asked of the supervisor."""
        raise NotImplementedError

    def answered(self, answer: Any) -> None:
        """It was carried out: tell it. The dialog closes then."""

    def _send(self) -> None:
        self.main.allow(IN_PROGRESS)
        self.problem.hide()
        self.send(self.reason.text().strip()).while_alive(self).then(self._done).failed(self.refused)

    def _done(self, answer: Any) -> None:
        self.answered(answer)
        self.accept()
