"""The network page: allowlist with drawer, a URL to test, Envoy's configuration, and the egress log below."""

from __future__ import annotations

from pydantic import ValidationError
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QSplitter, QStackedWidget, QVBoxLayout, QWidget

from console.api.messages import AllowlistEntryBody, AllowlistEntryView, AllowlistView, Delta, EgressPage, EgressView
from console.domain.errors import ConsoleError, UsageProblem
from console.gui.pages.interface import Badge, Desk, Page, PageSpec
from console.gui.pages.network.bar import Bar
from console.gui.pages.network.config import ConfigView
from console.gui.pages.network.draft import offer
from console.gui.pages.network.drawer import Drawer
from console.gui.pages.network.egress import EgressLog
from console.gui.pages.network.entries import COLUMNS, EntryRow, cell_words, matches, paint_entry
from console.gui.pages.network.header import Blocked, NetworkHeader, head_facts
from console.gui.pages.network.history import HistoryView
from console.gui.pages.network.register import RegisterDialog
from console.gui.pages.network.remove import RemoveDialog
from console.gui.pages.network.sandboxes import SandboxList
from console.gui.pages.network.stricter import StricterDialog
from console.gui.pages.network.tester import TestLine
from console.gui.pages.network.verbs import SANDBOX_KEYS, VERBS
from console.gui.widgets.reading import empty_note
from console.gui.widgets.rows import RowModel, RowView

READ = 1000
"""Lines of the egress log read at first."""
_AGAIN_S = 5.0
_EMPTY = "The allowlist is empty: an agent in PROXIED mode reaches nothing. N adds the first entry."


class NetworkPage(Page):
    """See, add, edit and remove entries; test a URL; watch what agents ask for."""

    spec = PageSpec("network", "Network", "network", "Operate")
    verbs = VERBS

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self.list: AllowlistView | None = None
        self._egress_read = False
        self._stale = True
        self._read_at = 0.0
        self._problem = ""
        self.header = NetworkHeader(self)
        self.bar = Bar(self)
        self.line = TestLine(desk, self._open_draft, self.bar.url, self)
        self.model = RowModel(COLUMNS, cell_words, self)
        self.view = RowView(self.model, paint_entry, lambda row: str(row.id), self)
        self.view.setAccessibleName("Allowlist")
        self.empty = empty_note(self.view, _EMPTY)
        self.config = ConfigView(desk, self)
        self.history = HistoryView(desk, self)
        self.sandboxes = SandboxList(desk.fleet, self)
        self.log = EgressLog(self)
        self.drawer = Drawer(desk, self)
        self.drawer.hide()
        self._build()
        self._connect()

    def _build(self) -> None:
        self.stack = QStackedWidget(self)
        self.stack.addWidget(self.view)
        self.stack.addWidget(self.config)
        self.stack.addWidget(self.history)
        self.stack.addWidget(self.sandboxes)
        self.split = QSplitter(Qt.Orientation.Vertical, self)
        self.split.setChildrenCollapsible(False)
        self.split.setHandleWidth(3)
        self.split.setStyleSheet("QSplitter::handle { background: transparent; }")
        self.split.addWidget(self.stack)
        self.split.addWidget(self.log)
        self.stack.setMinimumHeight(120)
        self.log.setMinimumHeight(140)
        self.split.setSizes([360, 290])
        column = QVBoxLayout()
        column.setSpacing(0)
        for part in (self.header, self.bar, self.line):
            column.addWidget(part)
        column.addWidget(self.split, 1)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addLayout(column, 1)
        row.addWidget(self.drawer)

    def _connect(self) -> None:
        self.view.opened.connect(lambda _row: self.do("network.edit"))
        self.bar.search.textChanged.connect(lambda _text: self._show_list())
        self.bar.search.left.connect(self._focus_list)
        self.bar.url.left.connect(self._focus_list)
        self.sandboxes.asked.connect(lambda _row: self.do("network.stricter"))
        self.bar.tabs.changed.connect(lambda _key: self._show_tab())
        self.log.allow_asked.connect(self._allow)
        self.log.changed.connect(self._show_head)
        self.history.reverted.connect(self._read_list)
        self.drawer.saved.connect(lambda _view: self._read_list())
        self.drawer.stale.connect(self._read_list)
        self.drawer.closed.connect(self._drawer_closed)
        self.drawer.draft_changed.connect(self._draft_changed)
        self.drawer.remove_asked.connect(lambda _id: self.do("network.remove"))

    # --- what the window tells -----------------------------------------------------------------------------------

    def on_show(self, argument: str = "") -> None:
        self.log.set_live(True)
        self._read_if_stale()
        self.on_models()
        if argument:
            self._show_argument(argument)
        self._focus_list()

    def on_hide(self) -> None:
        self.log.set_live(False)

    def on_models(self) -> None:
        self._show_head()
        if not self.sandboxes.model.rows:
            self._show_sandboxes()
        self.sandboxes.view.refresh()

    def on_tick(self, now: float) -> None:
        self._show_sandboxes()
        if now - self._read_at > _AGAIN_S:
            self._read_list()
        self._show_head()
        self.view.refresh()

    def handle(self, delta: Delta) -> None:
        if delta.kind == "egress":
            try:
                self.log.add(EgressView.model_validate(delta.data))
            except ValidationError:
                self._stale = True
                self._egress_read = False
        elif delta.kind == "allowlist":
            self._stale = True
            self._read_if_stale()

    def resync(self) -> None:
        self._stale, self._egress_read = True, False
        self._read_if_stale()

    def keys(self) -> tuple[tuple[str, str], ...]:
        return SANDBOX_KEYS if self.bar.tabs.chosen() == "sandboxes" else super().keys()

    def badge(self) -> Badge | None:
        if self.list is not None and self.list.envoy == "failed":
            return Badge("Envoy", "danger", "alert")
        full = self.desk.fleet.count("full")
        return Badge(f"{full:,}", "warn", "warning") if full else None

    def is_ready(self) -> bool:
        return self.list is not None and self._egress_read

    # --- actions ---------------------------------------------------------------------------------------------------

    def why_not(self, action_id: str) -> str:
        if action_id == "network.save":
            return self.drawer.why_not_save()
        if action_id in ("network.back", "network.stricter", "network.data"):
            return self._why_not_in_tab(action_id)
        if action_id in ("network.edit", "network.remove") and self._entry_in_hand() is None:
            return "No entry is selected."
        if action_id in ("network.new", "network.allow", "network.remove"):
            if self.desk.switch.is_killed:
                return "Killed: nothing changes until rearm."
            if self.list is None:
                return "The allowlist has not been read yet."
        if action_id == "network.allow":
            line = self.log.view.current()
            if line is None:
                return "No request is selected."
            return "" if line.offer.kind == "allow" else line.offer.why or "That request was let through."
        if action_id in ("network.new", "network.allow", "network.edit") and self._other_draft(action_id):
            return "Save or discard the draft first (Esc)."
        return ""

    def _why_not_in_tab(self, action_id: str) -> str:
        """Of what acts on the selected row of another tab."""
        tab = self.bar.tabs.chosen()
        if action_id == "network.back":
            return self.history.why_not() if tab == "history" else "The history is not shown (H)."
        if tab != "sandboxes":
            return "The sandboxes are not shown (S)."
        killed = self.desk.switch.is_killed
        return self.sandboxes.why_not_data(killed) if action_id == "network.data" else self.sandboxes.why_not(killed)

    def do(self, action_id: str) -> None:
        if self.why_not(action_id):
            self.desk.notices.say("info", self.why_not(action_id))
            return
        row = self.view.current()
        if action_id == "network.new":
            self._open(None, "")
        elif action_id == "network.edit" and row is not None and self.list is not None:
            if not (self.drawer.isVisible() and self.drawer.draft.entry_id == row.id):
                self.drawer.open_entry(row.view, self.list.version)
                self._draft_changed()
        elif action_id == "network.allow":
            self._allow(self.log.view.current().view)
        elif action_id == "network.save":
            self.drawer.save_draft()
        elif action_id == "network.remove":
            self._ask_remove()
        elif action_id == "network.discard":
            self.drawer.close_draft()
        else:
            self._turn_to(action_id)

    def _turn_to(self, action_id: str) -> None:
        if action_id == "network.filter":
            self.bar.search.setFocus()
        elif action_id == "network.test":
            self.bar.url.setFocus()
        elif action_id == "network.follow":
            self.log.follow()
        elif action_id == "network.back":
            self.history.ask_back()
        elif action_id == "network.stricter":
            StricterDialog(self.desk, self.sandboxes.view.current().view, self.window()).open()
        elif action_id == "network.data":
            RegisterDialog(self.desk, self.sandboxes.view.current().view, self.window()).open()
        elif action_id in ("network.config", "network.history", "network.sandboxes"):
            tab = action_id.removeprefix("network.")
            self._choose_tab("list" if self.bar.tabs.chosen() == tab else tab)

    def _choose_tab(self, tab: str) -> None:
        self.bar.tabs.pills[tab].setChecked(True)
        self._show_tab()
        self._focus_list()

    def _show_argument(self, argument: str) -> None:
        """``sandboxes``, or words to filter the list by."""
        if argument in self.bar.tabs.pills:
            self._choose_tab(argument)
        else:
            self.bar.search.setText(argument)

    def _focus_list(self) -> None:
        lists = (self.view, self.config, self.history.view, self.sandboxes.view)
        lists[self.stack.currentIndex()].setFocus()

    def _show_sandboxes(self) -> None:
        """Only what is looked at is arranged; the number is always told."""
        chosen = self.bar.tabs.chosen() == "sandboxes"
        if chosen:
            self.sandboxes.arrange(self.bar.search.text())
            found, total = len(self.sandboxes.model.rows), self.sandboxes.total
            self.bar.shown.setText(f"{found:,} of {total:,} shown" if self.bar.search.text() else "")
            self.bar.shown.setVisible(bool(self.bar.search.text()))
        self.bar.tabs.pills["sandboxes"].setText(f"Sandboxes {self.desk.fleet.live():,}")

    # --- inside ------------------------------------------------------------------------------------------------------

    def _entry_in_hand(self) -> AllowlistEntryView | None:
        """The entry of the drawer, else the selected one."""
        if self.list is None:
            return None
        row = self.view.current()
        wanted = self.drawer.draft.entry_id if self.drawer.isVisible() else row.id if row is not None else ""
        return next((e for e in self.list.entries if e.entry_id == wanted), None)

    def _other_draft(self, action_id: str) -> bool:
        row = self.view.current()
        same = action_id == "network.edit" and row is not None and row.id == self.drawer.draft.entry_id
        return self.drawer.is_dirty and not same

    def _open_draft(self) -> tuple[str, AllowlistEntryBody] | None:
        if not self.drawer.is_dirty:
            return None
        try:
            return self.drawer.draft.entry_id, self.drawer.form.now().body(None)
        except UsageProblem:
            return None

    def _allow(self, record: EgressView) -> None:
        made = offer(record)
        if made.draft is None or self.list is None or self.desk.switch.is_killed or self.drawer.is_dirty:
            self.desk.notices.say("info", self.why_not("network.new") or made.why or "Save or discard the draft first (Esc).")
            return
        self._open(made.draft, "from a blocked request")

    def _open(self, view: AllowlistEntryView | None, source: str) -> None:
        assert self.list is not None
        self.drawer.open_new(self.list.version, view, source)
        self._draft_changed()

    def _ask_remove(self) -> None:
        entry = self._entry_in_hand()
        if entry is None or self.list is None:
            return
        dialog = RemoveDialog(self.desk, entry, self.list.version, self.window())
        dialog.accepted.connect(self._removed)
        dialog.rejected.connect(self._read_list)
        dialog.open()

    def _removed(self) -> None:
        if self.drawer.isVisible() and not self.drawer.is_dirty:
            self.drawer.close_draft()
        self._read_list()

    def _drawer_closed(self) -> None:
        self._draft_changed()
        self.view.setFocus()

    def _draft_changed(self) -> None:
        editing = self.drawer.draft.entry_id if self.drawer.isVisible() else ""
        for row in self.model.rows:
            row.editing = row.id == editing
        self.view.refresh()
        if self.bar.url.text().strip():
            self.line.again()

    def _read_if_stale(self) -> None:
        if not self.isVisible() and self.list is not None:
            return  # read when the page comes to the front
        if self._stale:
            self._stale = False
            self._read_list()
            if self.bar.tabs.chosen() == "config":
                self.config.forget()
                self.config.read()
        if not self._egress_read:
            self.desk.requests.network.egress(READ).while_alive(self).then(self._egress_came).failed(self._failed)

    def _read_list(self) -> None:
        self._read_at = self.desk.clock()
        self.desk.requests.network.allowlist().while_alive(self).then(self._list_came).failed(self._failed)

    def _failed(self, error: ConsoleError) -> None:
        self._problem = str(error)
        self._stale = True
        self._show_head()

    def _egress_came(self, page: EgressPage) -> None:
        self._egress_read = True
        self.log.replace(page.egress)

    def _list_came(self, view: AllowlistView) -> None:
        newer = self.list is not None and self.list.version != view.version
        self.list, self._problem = view, ""
        self.drawer.sandboxes = view.sandboxes
        self.drawer.list_came(view.version, next((e for e in view.entries if e.entry_id == self.drawer.draft.entry_id), None))
        self._show_list()
        self._show_head()
        self.badge_changed.emit()
        if newer:
            self.config.forget()
            if self.bar.url.text().strip():
                self.line.again()
            if self.bar.tabs.chosen() in ("config", "history"):
                self._show_tab()

    def _show_list(self) -> None:
        entries = self.list.entries if self.list else []
        text = self.bar.search.text()
        editing = self.drawer.draft.entry_id if self.drawer.isVisible() else ""
        marked = self.bar.tabs.chosen() == "marked"
        rows = [EntryRow(e, e.entry_id == editing) for e in entries if matches(e, text) and (e.marks or not marked)]
        if [r.view for r in rows] != [r.view for r in self.model.rows]:
            self.view.show_rows(rows)
        if self.view.current() is None and rows:
            self.view.choose(rows[0].id)
        nothing = "No entry holds these words." if text or not marked else "Nothing about these entries needs a look."
        self.empty.setText(nothing if entries else _EMPTY)
        self.empty.setVisible(self.list is not None and not rows)
        self.bar.tabs.pills["list"].setText(f"Allowlist {len(entries):,}")
        self.bar.tabs.pills["marked"].setText(f"Marked {sum(1 for e in entries if e.marks):,}")
        self.bar.tabs.pills["history"].setText(f"History v{self.list.version}" if self.list else "History")
        self.bar.shown.setText(f"{len(rows):,} of {len(entries):,} shown" if text else "")
        self.bar.shown.setVisible(bool(text))
        self._show_sandboxes()

    def _show_head(self) -> None:
        light, _ = self.desk.switch.light(self.desk.clock())
        book = self.log.book
        oldest = book.lines[-1].view.at if book.lines else None
        blocked = Blocked(book.number("blocked"), len(book.lines), oldest, book.blocked_slices())
        self.header.take(self.desk.fleet, head_facts(self.list, self._problem, light == "unknown", blocked))

    def _show_tab(self) -> None:
        tab = self.bar.tabs.chosen()
        self.stack.setCurrentIndex({"config": 1, "history": 2, "sandboxes": 3}.get(tab, 0))
        self.bar.search.setEnabled(tab in ("list", "marked", "sandboxes"))
        self._show_list()
        if tab == "config":
            self.config.read()
        elif tab == "history":
            self.history.read()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.drawer.isVisible():
            self.drawer.close_draft()
            return
        super().keyPressEvent(event)
