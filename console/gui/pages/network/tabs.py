"""Below the head of the network page: its bar, the list of each tab, Envoy's configuration as text, and the egress log."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit, QStackedWidget, QWidget

from console.api import endpoints as ep
from console.api.messages import AllowlistEntryBody, AllowlistView, UrlTestBody, UrlTestView
from console.api.network import EnvoyConfigView
from console.domain.errors import ConsoleError
from console.gui.kit.layout import column, fill_bar, row
from console.gui.kit.table import listing
from console.gui.pages.interface import Desk
from console.gui.pages.network.draft import asked_for
from console.gui.pages.network.egress import EgressLog
from console.gui.pages.network.entries import COLUMNS, EntryRow, keeps
from console.gui.pages.network.history import HistoryView
from console.gui.pages.network.ratchet import StricterDialog
from console.gui.pages.network.register import RegisterDialog
from console.gui.pages.network.sandboxes import SandboxList, why_not_data, why_not_stricter
from console.gui.theme import fonts
from console.gui.timers import once
from console.gui.widgets.buttons import Pills, SearchField
from console.gui.widgets.reading import PlainView, empty_note, say_empty
from console.gui.widgets.rows import RowView
from console.gui.widgets.side_pane import Foot, Ground
from console.gui.widgets.split import above
from console.gui.widgets.text import Text

AFTER_MS = 250
Draft = Callable[[], tuple[str, AllowlistEntryBody] | None]
"""(entry id or empty, body) of the open draft, or None."""
TABS = {"list": "Allowlist", "marked": "Warnings", "sandboxes": "Sandboxes", "history": "History", "config": "Envoy"}


class UrlField(SearchField):
    """Esc clears, like the other fields of the bar."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Test a URL", "T", parent=parent, short="URL")
        self.setFont(fonts.mono(12))
        self.setMaxLength(2000)


class TestLine(Foot):
    """Hidden while the field is empty. ``field`` is placed by the page."""

    __test__ = False

    def __init__(self, desk: Desk, draft: Draft, field: QLineEdit, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._desk, self._draft, self.field = desk, draft, field
        self.setFixedHeight(32)
        self.live = Text("", 12, fonts.REGULAR, "text2")
        self.drafted = Text("", 12, fonts.REGULAR, "text2")
        row((self.live, 1), (self.drafted, 1), margins=(16, 0, 16, 0), spacing=24, on=self)
        self._late = once(self, AFTER_MS, self.ask)
        field.textChanged.connect(lambda _text: self.again())
        self.hide()

    def again(self) -> None:
        """Field, list or draft changed: the old answer is no answer any more."""
        text = self.field.text().strip()
        self.setVisible(bool(text))
        self.drafted.hide()
        if text:
            self.live.say("Asking…", "text2", "ring")
            self._late.start()
        else:
            self._late.stop()

    def ask(self) -> None:
        """Asks about exactly what stands in the field."""
        text = self.field.text().strip()
        method, url = asked_for(text)
        network = self._desk.requests
        asked = network.ask(ep.TEST_URL, body=UrlTestBody(url=url[:2000], method=method)).while_alive(self)
        asked.then(lambda view: self._say(self.live, text, "Live list", view)).failed(lambda error: self._fail(self.live, text, error))
        open_draft = self._draft()
        if open_draft is None:
            return
        entry_id, body = open_draft
        asked = network.ask(ep.TEST_URL, body=UrlTestBody(url=url[:2000], method=method, entry=body, replaces=entry_id or None))
        asked.while_alive(self).then(lambda view: self._say(self.drafted, text, "With the draft", view)).failed(
            lambda error: self._fail(self.drafted, text, error)
        )

    def _say(self, line: Text, text: str, where: str, view: UrlTestView) -> None:
        if text != self.field.text().strip():
            return
        if view.allowed:
            which = "the draft" if view.entry_id == "draft" else view.reason
            line.say(f"{where}: allowed by {which}", "text", "check")
        else:
            line.say(f"{where}: blocked, {view.reason.replace('entry draft', 'the draft')}", "danger", "ban")
        line.show()

    def _fail(self, line: Text, text: str, error: ConsoleError) -> None:
        if text == self.field.text().strip():
            line.say(str(error), "warn", "triangle")
            line.show()


class Bar(Ground):
    """Filter, tabs, the URL to test, and how many are shown."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.search = SearchField("Filter this list", "/", parent=self, kept="filter")
        self.search.setMaximumWidth(176)
        self.tabs = Pills(TABS, self, kept="tab")
        self.url = UrlField(self)
        self.shown = Text("", 12, fonts.REGULAR, "text2", right=True)
        fill_bar(self, (self.search, 2), self.tabs, (self.url, 3), self.shown, spacing=8)


_NONE_YET = "Envoy has no configuration yet: it is written when the first sandbox is attached."


class ConfigView(PlainView):
    """What cannot be read is said in its place."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__("Generated Envoy configuration", wrap=False, parent=parent)
        self._desk = desk
        self._read = False

    def forget(self) -> None:
        """The list is another one: the next look reads again."""
        self._read = False

    def read(self) -> None:
        """Asks for it, unless it was read already."""
        if not self._read:
            asked = self._desk.requests.ask(ep.ENVOY).while_alive(self)
            asked.then(self._came).failed(lambda error: self.say(f"The configuration cannot be shown: {error}"))

    def _came(self, view: EnvoyConfigView) -> None:
        self._read = True
        self.say(view.text or _NONE_YET)


_EMPTY = "The allowlist is empty: in PROXIED mode a started program reaches its model, others nothing. Press N, or “Allow this…” below."
_FILTERED = ("list", "marked", "sandboxes")


class NetworkTabs(QWidget):
    """``turned``: another tab is in front. ``draft`` answers what the drawer holds, for the URL to be tested against it too."""

    turned = Signal()

    def __init__(self, desk: Desk, draft: Draft, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._desk = desk
        self._list: AllowlistView | None = None
        self._problem = ""
        """Why the list could not be read."""
        self._editing = ""
        """The entry that the drawer holds."""
        self.bar = Bar(self)
        self.line = TestLine(desk, draft, self.bar.url, self)
        self.view = listing("Allowlist", COLUMNS, lambda row: str(row.id), self, RowView)
        self.model = self.view.row_model
        self.empty = empty_note(self.view, _EMPTY)
        self.config = ConfigView(desk, self)
        self.history = HistoryView(desk, self)
        self.sandboxes = SandboxList(desk.fleet, self)
        self.log = EgressLog(self)
        self._build()
        self.bar.search.textChanged.connect(lambda _text: self.show_list())
        self.bar.search.left.connect(self.focus)
        self.bar.url.left.connect(self.focus)
        self.bar.tabs.changed.connect(lambda _key: self._turn())

    def _build(self) -> None:
        self.stack = QStackedWidget(self)
        for part in (self.view, self.config, self.history, self.sandboxes):
            self.stack.addWidget(part)
        self.stack.setMinimumHeight(120)
        self.log.setMinimumHeight(140)
        column(self.bar, self.line, (above(self.stack, self.log, self, (360, 290)), 1), on=self)

    def name(self) -> str:
        """The tab in front."""
        return self.bar.tabs.chosen()

    def choose(self, tab: str) -> None:
        """Brings it to the front, and the keys into it."""
        self.bar.tabs.pills[tab].setChecked(True)
        self._turn()
        self.focus()

    def focus(self) -> None:
        """Into the list in front."""
        lists = (self.view, self.config, self.history.view, self.sandboxes.view)
        lists[self.stack.currentIndex()].setFocus()

    def why_not(self, action_id: str) -> str:
        """Of what acts on the selected row of a tab that is not in front, or not on this one."""
        if action_id == "network.back":
            return self.history.why_not() if self.name() == "history" else "The history is not shown (H)."
        if action_id not in ("network.stricter", "network.data"):
            return ""
        if self.name() != "sandboxes":
            return "The sandboxes are not shown (S)."
        killed = self._desk.switch.is_killed
        return self.sandboxes.why_not(killed, why_not_data if action_id == "network.data" else why_not_stricter)

    def do(self, action_id: str) -> None:
        """What is looked at, and what is done to the selected row of another tab than the allowlist."""
        if action_id == "network.filter":
            self.bar.search.setFocus()
        elif action_id == "network.test":
            self.bar.url.setFocus()
        elif action_id == "network.follow":
            self.log.follow()
        elif action_id == "network.back":
            self.history.ask_back()
        elif action_id == "network.stricter":
            StricterDialog(self._desk, self.sandboxes.view.current().view, self.window()).open()
        elif action_id == "network.data":
            RegisterDialog(self._desk, self.sandboxes.view.current().view, self.window()).open()
        elif action_id in ("network.config", "network.history", "network.sandboxes"):
            tab = action_id.removeprefix("network.")
            self.choose("list" if self.name() == tab else tab)

    def take(self, view: AllowlistView, is_newer: bool) -> None:
        """The allowlist as the supervisor said it last."""
        self._list = view
        self.show_list()
        if is_newer:
            self.config.forget()
            if self.bar.url.text().strip():
                self.line.again()
            if self.name() in ("config", "history"):
                self._turn()

    def fail(self, problem: str) -> None:
        """Allowlist or requests could not be read."""
        self._problem = self.sandboxes.problem = problem
        self.show_list()
        self.log.fail(problem)

    def mark_edited(self, entry_id: str) -> None:
        """The drawer holds that entry now, or none, or its text changed."""
        self._editing = entry_id
        for entry in self.model.rows:
            entry.editing = entry.id == entry_id
        self.view.refresh()
        if self.bar.url.text().strip():
            self.line.again()

    def show_list(self) -> None:
        """What the words in the bar keep."""
        entries = self._list.entries if self._list else []
        text, marked = self.bar.search.text(), self.name() == "marked"
        rows = [EntryRow(e, e.entry_id == self._editing) for e in entries if keeps(e, text) and (e.marks or not marked)]
        if [r.view for r in rows] != [r.view for r in self.view.order.given]:
            self.view.show_rows(rows)
        if self.view.current() is None and rows:
            self.view.choose(self.model.rows[0].id)
        nothing = "No entries match the filter." if text or not marked else "No entry has a warning."
        say_empty(self.empty, self.view, nothing if entries else _EMPTY, self._list is not None, self._problem)
        if self._list is not None:
            self.bar.tabs.pills["list"].setText(f"Allowlist {len(entries):,}")
            self.bar.tabs.pills["marked"].setText(f"Warnings {sum(1 for e in entries if e.marks):,}")
            self.bar.tabs.pills["history"].setText(f"History v{self._list.version}")
        self.bar.shown.setText(f"{len(rows):,} of {len(entries):,} shown" if text else "")
        self.bar.shown.setVisible(bool(text))
        self.show_sandboxes()

    def show_sandboxes(self) -> None:
        """Only what is looked at is arranged; the number is always told."""
        if self.name() == "sandboxes":
            text = self.bar.search.text()
            self.sandboxes.arrange(text)
            found, total = len(self.sandboxes.model.rows), self.sandboxes.total
            self.bar.shown.setText(f"{found:,} of {total:,} shown" if text else "")
            self.bar.shown.setVisible(bool(text))
        if self._desk.fleet.loaded:
            self.bar.tabs.pills["sandboxes"].setText(f"Sandboxes {self._desk.fleet.live():,}")

    def _turn(self) -> None:
        tab = self.name()
        self.stack.setCurrentIndex({"config": 1, "history": 2, "sandboxes": 3}.get(tab, 0))
        self.bar.search.setEnabled(tab in _FILTERED)
        self.show_list()
        if tab == "config":
            self.config.read()
        elif tab == "history":
            self.history.read()
        self.turned.emit()
