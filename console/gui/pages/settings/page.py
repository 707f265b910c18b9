"""The settings page: a list with a filter, one setting beside it, and a change of it."""

from __future__ import annotations

from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from console.api import endpoints as ep
from console.api.settings import SettingRow, SettingsView
from console.domain.errors import ConsoleError
from console.gui.kit.layout import STRETCH, Part, bar, column, scrolled
from console.gui.kit.pane import Offer, Pane
from console.gui.pages import declared
from console.gui.pages.interface import Badge, Desk
from console.gui.pages.list_page import ListPage
from console.gui.pages.settings.change import ChangeDialog
from console.gui.pages.settings.rows import COLUMNS, LAYERS, Item, Line, arrange, cell_words, paint, shown
from console.gui.theme import fonts
from console.gui.theme.tokens import DETAIL, ink
from console.gui.widgets.buttons import SearchField
from console.gui.widgets.reading import empty_note
from console.gui.widgets.rows import RowModel, RowView
from console.gui.widgets.text import Text
from console.gui.widgets.words import plural

_AGAIN_S = 5.0
_ON_A_ROW = ("settings.change", "settings.reset", "settings.detail")


CAPTIONS = ("In force", "After the next start", "Default", "Takes", "From", "Locked by")


OFFERS = (Offer("settings.change", "Change…", keys="E"), Offer("settings.reset", "Reset…", keys="R"))


class SettingPane(Pane):
    """One setting; what is not known of it has no caption."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.group = Text("", 11, fonts.REGULAR, "text2", wrap=True)
        self.name = Text("", 14, fonts.MEDIUM, mono=True, wrap=True)
        self.words = Text("", 13, fonts.REGULAR, wrap=True)
        self.facts = {caption: (Text(caption, 11, fonts.MEDIUM, "text2"), Text("", 12, fonts.REGULAR, wrap=True)) for caption in CAPTIONS}
        facts: list[Part] = [part for head, value in self.facts.values() for part in (6, head, value)]
        body = scrolled(self, self.group, 4, self.name, 8, self.words, 10, *facts, margins=(19, 13, 20, 12))
        self.lay((body, 1), offers=OFFERS, wide=False)

    def show_row(self, row: SettingRow) -> None:
        """All that is known of one setting."""
        self.group.setText(row.group_words)
        self.name.setText(row.key)
        self.words.setText(row.words)
        whose = LAYERS.get(row.layer, row.layer)
        said = {
            "In force": shown(row.value, row.unit),
            "After the next start": shown(row.next_value, row.unit) if row.is_waiting else "",
            "Default": shown(row.default, row.unit),
            "Takes": row.takes + (f", in {row.unit}" if row.unit else ""),
            "From": (whose if row.layer in ("default", "last") else f"{whose}: {row.origin}")
            + (" (after the next start)" if row.is_waiting else ""),
            "Locked by": row.locked_by,
        }
        for caption, (head, value) in self.facts.items():
            value.say(said[caption], "warn" if caption == "After the next start" else "text")
            head.setVisible(bool(said[caption]))
            value.setVisible(bool(said[caption]))


class SettingsPage(ListPage):
    """Shows every setting; changes one of this account at a time, with a reason."""

    spec = declared.SETTINGS

    pane: SettingPane

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self.rows: list[SettingRow] = []
        self._loaded = False
        self._asked_at = 0.0
        self.search = SearchField("Name, value, file or words", "/", parent=self, kept="filter")
        self.search.setMaximumWidth(300)
        self.shown = Text("", 12, fonts.REGULAR, "text2", right=True)
        self.trouble = Text("", 12, fonts.MEDIUM, "warn", wrap=True, mark="triangle")
        self.trouble.hide()
        self.view = RowView(RowModel(COLUMNS, cell_words, self), paint, lambda line: str(line.key), self)
        self.view.order.keep("", "Settings stand together by what they are about.")
        self.view.setAccessibleName("Settings")
        self.empty = empty_note(self.view, "No settings match the filter.")
        title = Text("Settings", 17, fonts.SEMIBOLD)
        head = bar(self, title, (self.search, 2), STRETCH, self.shown)
        self.lay(column(head, column(self.trouble, margins=(16, 0, 16, 0)), (self.view, 1)), SettingPane(self), DETAIL)
        self.handlers = {
            "settings.change": self._change,
            "settings.reset": lambda: self._change(is_reset=True),
            "settings.filter": self.search.setFocus,
            "settings.detail": self.turn_pane,
        }
        self.search.textChanged.connect(lambda _text: self._show_lines())
        self.search.left.connect(self.view.setFocus)
        self.view.chosen.connect(lambda _line: self._chose())
        self.view.opened.connect(lambda _line: self.do("settings.detail"))

    # --- what the window tells -----------------------------------------------------------------------------------

    def on_show(self, argument: str = "") -> None:
        if argument:
            self.search.setText(argument)
        self._read()
        self.view.setFocus()

    def on_models(self) -> None:
        self.pane.judge(self.why_not)

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

    def _change(self, *, is_reset: bool = False) -> None:
        row = self.current()
        if row is not None:
            dialog = ChangeDialog(self.desk, row, self.window(), is_reset=is_reset)
            dialog.accepted.connect(self._read)
            dialog.open()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        self._asked_at = self.desk.clock()
        self.desk.requests.ask(ep.CONFIG).while_alive(self).then(self._came).failed(self._failed)

    def _failed(self, error: ConsoleError) -> None:
        self._say_trouble(f"Load failed: shows stale values. {error}" if self._loaded else f"Not known: {error}")

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
        self.show_pane()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(ink().bg0))
        painter.end()
