"""The settings page: a list with a filter, one setting beside it, and a change of it."""

from __future__ import annotations

from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from console.api import endpoints as ep
from console.api.settings import SettingRow, SettingsView
from console.domain.errors import ConsoleError
from console.gui.actions import ActionSpec
from console.gui.pages.interface import Badge, Desk, Page, PageSpec
from console.gui.pages.settings.change import ChangeDialog
from console.gui.pages.settings.detail import DetailPane
from console.gui.pages.settings.rows import COLUMNS, Item, Line, arrange, cell_words, paint
from console.gui.theme import fonts
from console.gui.theme.tokens import DETAIL, FILTER_BAR, ink
from console.gui.widgets.buttons import SearchField
from console.gui.widgets.reading import empty_note
from console.gui.widgets.rows import RowModel, RowView
from console.gui.widgets.split import beside
from console.gui.widgets.text import Text
from console.gui.widgets.words import plural

_AGAIN_S = 5.0
_ON_A_ROW = ("settings.change", "settings.reset", "settings.detail")


class SettingsPage(Page):
    """Shows every setting; changes one of this account at a time, with a reason."""

    spec = PageSpec("settings", "Settings", "settings", "Set up", help="how-to/settings.md")
    verbs = (
        ActionSpec("settings.move", "Move in the list", "", "setting", cap="↑ ↓"),
        ActionSpec("settings.change", "Change the setting…", "E", "change…"),
        ActionSpec("settings.reset", "Reset the setting…", "R", "reset…"),
        ActionSpec("settings.filter", "Filter the settings", "/", "filter"),
        ActionSpec("settings.detail", "Show or hide the detail pane", "", "", cap="Enter"),
    )

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self.rows: list[SettingRow] = []
        self._loaded = False
        self._asked_at = 0.0
        self._pane_wanted = False
        """Turned by Enter: hidden when wide, shown over the table when narrow."""
        self.search = SearchField("Name, value, file or words", "/", parent=self, kept="filter")
        self.search.setMaximumWidth(300)
        self.shown = Text("", 12, fonts.REGULAR, "text2", right=True)
        self.trouble = Text("", 12, fonts.MEDIUM, "warn", wrap=True, mark="triangle")
        self.trouble.hide()
        self.view = RowView(RowModel(COLUMNS, cell_words, self), paint, lambda line: str(line.key), self)
        self.view.order.keep("", "Settings stand together by what they are about.")
        self.view.setAccessibleName("Settings")
        self.empty = empty_note(self.view, "No settings match the filter.")
        self.pane = DetailPane(self)
        self.pane.hide()
        self._build()
        self.search.textChanged.connect(lambda _text: self._show_lines())
        self.search.left.connect(self.view.setFocus)
        self.view.chosen.connect(lambda _line: self._chose())
        self.view.opened.connect(lambda _line: self.do("settings.detail"))
        self.pane.asked.connect(self.do)

    def _build(self) -> None:
        bar = QWidget(self)
        bar.setFixedHeight(FILTER_BAR)
        line = QHBoxLayout(bar)
        line.setContentsMargins(16, 0, 16, 0)
        line.setSpacing(10)
        line.addWidget(Text("Settings", 17, fonts.SEMIBOLD))
        line.addWidget(self.search, 2)
        line.addStretch(1)
        line.addWidget(self.shown)
        said = QHBoxLayout()
        said.setContentsMargins(16, 0, 16, 0)
        said.addWidget(self.trouble)
        left = QVBoxLayout()
        left.setSpacing(0)
        left.addWidget(bar)
        left.addLayout(said)
        left.addWidget(self.view, 1)
        row = QVBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(beside(left, self.pane, self, DETAIL))

    # --- what the window tells -----------------------------------------------------------------------------------

    def on_show(self, argument: str = "") -> None:
        if argument:
            self.search.setText(argument)
        self._read()
        self.view.setFocus()

    def on_models(self) -> None:
        self._judge()

    def on_tick(self, now: float) -> None:
        if now - self._asked_at > _AGAIN_S:
            self._read()

    def resync(self) -> None:
        if self.isVisible():
            self._read()

    def badge(self) -> Badge | None:
        status = self.desk.switch.status
        return Badge("check", "warn") if status is not None and status.configuration else None

    def is_ready(self) -> bool:
        return self._loaded

    # --- actions ---------------------------------------------------------------------------------------------------

    def current(self) -> SettingRow | None:
        """The current setting; None on a heading."""
        line: Line | None = self.view.current()
        return line.row if isinstance(line, Item) else None

    def why_not(self, action_id: str) -> str:
        row = self.current()
        if action_id not in _ON_A_ROW:
            return ""
        if row is None:
            return "No setting is selected."
        if action_id == "settings.detail":
            return ""
        if row.locked_by:
            return f"{row.locked_by} locks it. Ask the administrator of this host."
        if self.desk.switch.is_killed:
            return "Killed: nothing changes until you rearm."
        if action_id == "settings.reset" and row.layer != "account":
            return "This account does not set it."
        return ""

    def do(self, action_id: str) -> None:
        row = self.current()
        if self.why_not(action_id):
            self.desk.notices.say("info", self.why_not(action_id))
        elif action_id == "settings.filter":
            self.search.setFocus()
        elif action_id == "settings.detail":
            self._pane_wanted = not self._pane_wanted
            self._show_pane()
        elif row is not None and action_id in ("settings.change", "settings.reset"):
            dialog = ChangeDialog(self.desk, row, self.window(), is_reset=action_id == "settings.reset")
            dialog.accepted.connect(self._read)
            dialog.open()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        self._asked_at = self.desk.clock()
        self.desk.requests.ask(ep.CONFIG).while_alive(self).then(self._came).failed(self._failed)

    def _failed(self, error: ConsoleError) -> None:
        self._say_trouble(f"Load failed: shows stale values. {error}")

    def _came(self, view: SettingsView) -> None:
        self._loaded = True
        self.rows = view.rows
        self._say_trouble(view.trouble)
        self._show_lines()

    def _say_trouble(self, words: str) -> None:
        self.trouble.setText(words)
        self.trouble.setVisible(bool(words))

    def _show_lines(self) -> None:
        lines = arrange(self.rows, self.search.text())
        self.view.show_rows(lines)
        first = next((line for line in lines if isinstance(line, Item)), None)
        if self.view.current() is None and first is not None:
            self.view.choose(first.key, scroll=False)
        found = sum(isinstance(line, Item) for line in lines)
        self.shown.setText(f"{found} of {len(self.rows)}" if self.search.text() else plural(len(self.rows), "setting"))
        self.empty.setVisible(self._loaded and not lines)
        self._chose()

    def _chose(self) -> None:
        row = self.current()
        if row is not None:
            self.pane.show_row(row)
        self._judge()
        self._show_pane()

    def _judge(self) -> None:
        self.pane.change.allow(self.why_not("settings.change"))
        self.pane.reset.allow(self.why_not("settings.reset"))

    def _show_pane(self) -> None:
        wanted = self._pane_wanted if self.is_narrow else not self._pane_wanted
        self.pane.setVisible(self.current() is not None and wanted)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_pane()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(ink().bg0))
        painter.end()
