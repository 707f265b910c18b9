"""What is done to an entry of the allowlist: the drawer opened on it, offered for a blocked request, removed; and why not."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from console.api import endpoints as ep
from console.api.allowlist_review import BacktestBody
from console.api.messages import AllowlistChangedView, AllowlistEntryBody, AllowlistEntryView, EgressView
from console.domain.errors import UsageProblem
from console.gui.link.pending import Pending
from console.gui.pages.interface import Desk
from console.gui.pages.network.backtest import ChangeDialog
from console.gui.pages.network.draft import offer
from console.gui.pages.network.drawer import Drawer
from console.gui.pages.network.reader import NetworkReader
from console.gui.widgets.rows import RowView
from console.gui.widgets.words import age, plural


class RemoveDialog(ChangeDialog):
    """Removes an entry once a reason is there."""

    def __init__(self, desk: Desk, entry: AllowlistEntryView, version: int, parent: QWidget) -> None:
        super().__init__(desk, f"Remove {entry.host}:{entry.port}?", "Remove", "danger", parent)
        self._entry, self._version = entry, version
        last = f"{plural(entry.hits_7d, 'request')} in 7 days, last {age(entry.last_used, desk.clock())}"
        used = last if entry.hits_7d else "Not used in 7 days"
        self.paragraph(f"Entry {entry.entry_id}, {entry.owner}: {entry.reason}")
        self.paragraph(f"{used}. Agents can reach it no longer, and open connections are cut.")
        self.ask_with(BacktestBody(remove=entry.entry_id))

    def send(self, reason: str) -> Pending[AllowlistChangedView]:
        return self.desk.requests.ask(ep.REMOVE_ENTRY, self._entry.entry_id, reason=reason, base_version=self._version)

    def answered(self, answer: AllowlistChangedView) -> None:
        self.desk.notices.say("info", f"{self._entry.host}:{self._entry.port} removed. v{answer.version}: {answer.words}")


class Editor(QObject):
    """``view`` is the list whose row is in hand; attached once it is there. ``opened``: the drawer holds something else now."""

    opened = Signal()

    def __init__(self, desk: Desk, reader: NetworkReader, drawer: Drawer) -> None:
        super().__init__(drawer)
        self._desk, self._reader, self._drawer = desk, reader, drawer
        self.view: RowView | None = None
        self.log: RowView | None = None
        """The egress log: a blocked request of it is offered."""

    def in_hand(self) -> AllowlistEntryView | None:
        """The entry of the drawer, else the selected one."""
        view = self._reader.list
        row = self._row()
        wanted = self._drawer.draft.entry_id if self._drawer.isVisible() else row.id if row is not None else ""
        return next((e for e in view.entries if e.entry_id == wanted), None) if view is not None else None

    def editing(self) -> str:
        """The entry that the drawer holds; empty: none, or a new one."""
        return self._drawer.draft.entry_id if self._drawer.isVisible() else ""

    def draft(self) -> tuple[str, AllowlistEntryBody] | None:
        """What is written and not saved, when it could be an entry."""
        if not self._drawer.is_dirty:
            return None
        try:
            return self._drawer.draft.entry_id, self._drawer.form.now().body(None)
        except UsageProblem:
            return None

    def why_not(self, action_id: str) -> str:
        """Of new, allow, edit and remove."""
        if action_id in ("network.edit", "network.remove") and self.in_hand() is None:
            return "No entry is selected."
        if action_id in ("network.new", "network.allow", "network.remove"):
            if self._desk.switch.is_killed:
                return "Killed: nothing changes until you rearm."
            if self._reader.list is None:
                return "The allowlist has not been read yet."
        if action_id == "network.allow":
            line = self.log.current() if self.log is not None else None
            if line is None:
                return "No request is selected."
            return "" if line.offer.kind == "allow" else line.offer.why or "That request was let through."
        if action_id in ("network.new", "network.edit") and self._other_draft(action_id):
            return "Save or discard the draft first (Esc)."
        return ""

    def do(self, action_id: str) -> None:
        """One of them; what cannot be done now is left."""
        view, row = self._reader.list, self._row()
        if view is None or self.why_not(action_id):
            return
        if action_id == "network.new":
            self._drawer.open_new(view.version, None, "")
            self.opened.emit()
        elif action_id == "network.allow" and self.log is not None:
            self.allow(self.log.current().view)
        elif action_id == "network.remove":
            self._ask_remove()
        elif row is not None and self.editing() != row.id:
            self._drawer.open_entry(row.view, view.version)
            self.opened.emit()

    def allow(self, record: EgressView) -> None:
        """The narrowest entry that would have let that request through, as a draft."""
        made, view = offer(record), self._reader.list
        if made.draft is None or view is None or self._desk.switch.is_killed or self._drawer.is_dirty:
            self._desk.notices.say("info", self.why_not("network.new") or made.why or "Save or discard the draft first (Esc).")
            return
        self._drawer.open_new(view.version, made.draft, "from a blocked request")
        self.opened.emit()

    def _ask_remove(self) -> None:
        entry, view = self.in_hand(), self._reader.list
        if entry is None or view is None:
            return
        dialog = RemoveDialog(self._desk, entry, view.version, self._drawer.window())
        dialog.accepted.connect(self._removed)
        dialog.rejected.connect(self._reader.read_list)
        dialog.open()

    def _removed(self) -> None:
        if self._drawer.isVisible() and not self._drawer.is_dirty:
            self._drawer.close_draft()
        self._reader.read_list()

    def _row(self) -> Any:
        return self.view.current() if self.view is not None else None

    def _other_draft(self, action_id: str) -> bool:
        row = self._row()
        same = action_id == "network.edit" and row is not None and row.id == self._drawer.draft.entry_id
        return self._drawer.is_dirty and not same
