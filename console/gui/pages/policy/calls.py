"""The recorded calls that the selected rule decided; read again once it decided more."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, Signal

from console.api import endpoints as ep
from console.api.policy.page import JudgedRow, JudgedView
from console.api.policy.rules import RuleRow
from console.domain.errors import ConsoleError
from console.gui.pages.interface import Desk
from console.gui.pages.policy.rules import decided_as, key_of, use_of


class RuleCalls(QObject):
    """``changed``: the calls of the rule that was asked for last came, or could not be read."""

    changed = Signal()

    def __init__(self, desk: Desk, parent: QObject) -> None:
        super().__init__(parent)
        self._desk = desk
        self._use = ""
        """The rule and its use that ``rows`` are of."""
        self.rows: list[JudgedRow] = []
        self.words = ""
        """Why there are none."""

    def of(self, row: RuleRow) -> None:
        """Makes it the rule whose calls are kept; what is shown of it stays until newer ones come."""
        use = use_of(row)
        if use == self._use:
            return
        if not self._use.startswith(f"{key_of(row)}\0"):
            self.rows, self.words = [], "Being read…"
        self._use = use
        asked = self._desk.requests.ask(ep.CALLS, rule=decided_as(row), verdict=row.list).while_alive(self)
        asked.then(partial(self._came, use)).failed(partial(self._failed, use))

    def _came(self, use: str, view: JudgedView) -> None:
        if use == self._use:
            self.rows, self.words = view.rows, "" if view.rows else "No recorded call was decided by it."
            self.changed.emit()

    def _failed(self, use: str, error: ConsoleError) -> None:
        if use == self._use:
            self.rows, self.words = [], f"Not known: {error}"
            self.changed.emit()
