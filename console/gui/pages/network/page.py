"""The network page: allowlist with drawer, a URL to test, Envoy's configuration, and the egress log below."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from console.api.messages import AllowlistView, Delta, EgressView
from console.domain.message import Malformed
from console.gui.kit.layout import column
from console.gui.pages import declared
from console.gui.pages.interface import Badge, Desk, Page
from console.gui.pages.network.drawer import WIDTH, Drawer
from console.gui.pages.network.editor import Editor
from console.gui.pages.network.header import Blocked, NetworkHeader, head_facts
from console.gui.pages.network.reader import NetworkReader
from console.gui.pages.network.tabs import NetworkTabs
from console.gui.widgets.split import beside

SANDBOX_KEYS = (
    ("↑ ↓", "move"),
    ("Enter", "switch stricter…"),
    ("D", "private data…"),
    ("/", "filter"),
    ("A", "allow this…"),
    ("S", "allowlist"),
    ("H", "history"),
)
"""What the status bar shows while the sandboxes are looked at."""
_OF_AN_ENTRY = ("network.new", "network.edit", "network.allow", "network.remove")


class NetworkPage(Page):
    """See, add, edit and remove entries; test a URL; watch what agents ask for."""

    spec = declared.NETWORK

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self.reader = NetworkReader(desk, self)
        self.header = NetworkHeader(self)
        self.tabs = NetworkTabs(desk, lambda: self.editor.draft(), self)
        self.drawer = Drawer(desk, self)  # in the order in which Tab goes through them
        self.drawer.hide()
        self.editor = Editor(desk, self.reader, self.drawer)
        self.editor.view, self.editor.log = self.tabs.view, self.tabs.log.view
        left = column(self.header, (self.tabs, 1))
        column(beside(left, self.drawer, self, WIDTH), on=self)
        tabs, reader, drawer = self.tabs, self.reader, self.drawer
        reader.list_came.connect(self._list_came)
        reader.egress_came.connect(lambda page: tabs.log.replace(page.egress))
        reader.failed.connect(tabs.fail)
        reader.failed.connect(lambda _problem: self.on_models())
        tabs.view.opened.connect(lambda _row: self.do("network.edit"))
        tabs.sandboxes.asked.connect(lambda _row: self.do("network.stricter"))
        tabs.log.allow_asked.connect(self.editor.allow)
        tabs.log.changed.connect(self.on_models)
        tabs.history.reverted.connect(reader.read_list)
        drawer.saved.connect(lambda _view: reader.read_list())
        drawer.stale.connect(reader.read_list)
        for told in (drawer.closed, drawer.draft_changed, self.editor.opened):
            told.connect(lambda: tabs.mark_edited(self.editor.editing()))
        drawer.closed.connect(tabs.view.setFocus)
        drawer.remove_asked.connect(lambda _id: self.do("network.remove"))

    # --- what the window tells -----------------------------------------------------------------------------------

    def on_show(self, argument: str = "") -> None:
        self.tabs.log.set_live(True)
        self._catch_up()
        self.on_models()
        if argument in self.tabs.bar.tabs.pills:
            self.tabs.choose(argument)
        elif argument:
            self.tabs.bar.search.setText(argument)
        self.tabs.focus()

    def on_hide(self) -> None:
        self.tabs.log.set_live(False)

    def on_models(self) -> None:
        old = self.desk.switch.is_old(self.desk.clock())
        book = self.tabs.log.book
        oldest = book.lines[-1].view.at if book.lines else None
        blocked = Blocked(book.number("blocked"), len(book.lines), oldest, book.blocked_slices()) if self.tabs.log.is_read else None
        self.header.take(self.desk.fleet, head_facts(self.reader.list, self.reader.problem, old, blocked))
        self.tabs.log.set_old(old)
        if not self.tabs.sandboxes.model.rows:
            self.tabs.show_sandboxes()
        self.tabs.sandboxes.view.refresh()

    def on_tick(self, now: float) -> None:
        self.tabs.show_sandboxes()
        self.reader.again(now)
        self.on_models()
        self.tabs.view.refresh()

    def handle(self, delta: Delta) -> None:
        if delta.kind == "egress":
            try:
                self.tabs.log.add(EgressView.read(delta.data))
            except Malformed:
                self.reader.forget_egress()
        elif delta.kind == "allowlist":
            self.reader.is_stale = True
            self._catch_up()

    def resync(self) -> None:
        self.reader.forget_egress()
        self._catch_up()
        if self.tabs.name() == "history":
            self.tabs.history.read()

    def keys(self) -> tuple[tuple[str, str], ...]:
        return SANDBOX_KEYS if self.tabs.name() == "sandboxes" else super().keys()

    def badge(self) -> Badge | None:
        if self.reader.list is not None and self.reader.list.envoy == "failed":
            return Badge("Envoy", "danger", "alert")
        exposed = self.desk.fleet.count("exposed")  # the whole network alone is no alarm
        return Badge(f"{exposed:,}", "warn", "warning") if exposed else None

    def is_ready(self) -> bool:
        return self.reader.list is not None and self.reader.has_egress

    # --- actions ---------------------------------------------------------------------------------------------------

    def why_not(self, action_id: str) -> str:
        if action_id in _OF_AN_ENTRY:
            return self.editor.why_not(action_id)
        if action_id == "network.save":
            return self.drawer.why_not_save()
        return self.tabs.why_not(action_id)

    def do(self, action_id: str) -> None:
        if self.why_not(action_id):
            self.desk.notices.say("info", self.why_not(action_id))
        elif action_id in _OF_AN_ENTRY:
            self.editor.do(action_id)
        elif action_id == "network.save":
            self.drawer.save_draft()
        elif action_id == "network.discard":
            self.drawer.close_draft()
        else:
            self.tabs.do(action_id)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _catch_up(self) -> None:
        if not self.isVisible() and self.reader.list is not None:
            return  # read when the page comes to the front
        if self.reader.catch_up() and self.tabs.name() == "config":
            self.tabs.config.forget()
            self.tabs.config.read()

    def _list_came(self, view: AllowlistView, is_newer: bool) -> None:
        self.drawer.sandboxes = view.sandboxes
        self.drawer.list_came(view.version, next((e for e in view.entries if e.entry_id == self.drawer.draft.entry_id), None))
        self.tabs.take(view, is_newer)
        self.on_models()
        self.badge_changed.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.drawer.isVisible():
            self.drawer.close_draft()
            return
        super().keyPressEvent(event)
