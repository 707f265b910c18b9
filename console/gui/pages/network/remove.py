"""The question before an entry is removed: what it lets through now, and the reason for the record."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from console.api.allowlist_review import BacktestBody
from console.api.messages import AllowlistChangedView, AllowlistEntryView
from console.domain.errors import Conflict, ConsoleError
from console.gui.pages.interface import Desk
from console.gui.pages.network.backtest import BacktestCard
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.words import age, plural


class RemoveDialog(Dialog):
    """Removes once a reason is there; a refusal is shown in the supervisor's words and nothing is changed."""

    def __init__(self, desk: Desk, entry: AllowlistEntryView, version: int, parent: QWidget) -> None:
        super().__init__(f"Remove {entry.host}:{entry.port}?", "Remove", "danger", parent)
        self._desk, self._entry, self._version = desk, entry, version
        self.result_view: AllowlistChangedView | None = None
        used = (
            f"{plural(entry.hits_7d, 'request')} in 7 days, last {age(entry.last_used, desk.clock())}"
            if entry.hits_7d
            else "not used in 7 days"
        )
        self.paragraph(f"Entry {entry.entry_id}, {entry.owner}: {entry.reason}")
        self.paragraph(f"{used[0].upper()}{used[1:]}. Agents can reach it no longer, and open connections are cut.")
        self.test = BacktestCard(self)
        self.body.addWidget(self.test)
        self.test.asking()
        tested = desk.requests.network.backtest(BacktestBody(remove=entry.entry_id)).while_alive(self)
        tested.then(self.test.say).failed(self.test.fail)
        self.reason = self.ask_reason(needed=True)
        self.main.clicked.connect(self._send)
        self.reason.setFocus()

    def _send(self) -> None:
        self.main.setEnabled(False)
        self.problem.hide()
        asked = self._desk.requests.network.remove_entry(self._entry.entry_id, self.reason.text().strip(), self._version)
        asked.while_alive(self).then(self._done).failed(self._failed)

    def _failed(self, error: ConsoleError) -> None:
        self.refused(error)
        if isinstance(error, Conflict):
            self.main.setEnabled(False)  # the list is another one now: look at it first

    def _done(self, view: AllowlistChangedView) -> None:
        self.result_view = view
        self._desk.notices.say("info", f"{self._entry.host}:{self._entry.port} removed. v{view.version}: {view.words}")
        self.accept()
