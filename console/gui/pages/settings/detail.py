"""One setting: what it is, its value now and after a start, what it takes, where the value is from, and what locks it."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from console.api.settings import SettingRow
from console.gui.pages.settings.rows import LAYERS, shown
from console.gui.theme import fonts
from console.gui.theme.tokens import DETAIL_FOOT
from console.gui.widgets.buttons import Button
from console.gui.widgets.side_pane import SidePane, scrolling
from console.gui.widgets.text import Text

CAPTIONS = ("In force", "After the next start", "Default", "Takes", "From", "Locked by")


class DetailPane(SidePane):
    """``asked`` carries an action id of the page."""

    asked = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        column = QVBoxLayout(self)
        column.setContentsMargins(1, 0, 0, 0)
        column.setSpacing(0)
        scroll, body = scrolling(self)
        self.group = Text("", 11, fonts.REGULAR, "text2", wrap=True)
        self.name = Text("", 14, fonts.MEDIUM, mono=True, wrap=True)
        self.words = Text("", 13, fonts.REGULAR, wrap=True)
        body.addWidget(self.group)
        body.addSpacing(4)
        body.addWidget(self.name)
        body.addSpacing(8)
        body.addWidget(self.words)
        body.addSpacing(10)
        self.facts: dict[str, tuple[Text, Text]] = {}
        for caption in CAPTIONS:
            head, value = Text(caption, 11, fonts.MEDIUM, "text2"), Text("", 12, fonts.REGULAR, wrap=True)
            self.facts[caption] = head, value
            body.addSpacing(6)
            body.addWidget(head)
            body.addWidget(value)
        body.addStretch(1)
        column.addWidget(scroll, 1)
        foot = QWidget(self)
        foot.setFixedHeight(DETAIL_FOOT)
        row = QHBoxLayout(foot)
        row.setContentsMargins(19, 0, 20, 0)
        row.setSpacing(8)
        self.change = Button("Change…", keys="E", parent=foot)
        self.reset = Button("Reset…", keys="R", parent=foot)
        self.change.clicked.connect(lambda: self.asked.emit("settings.change"))
        self.reset.clicked.connect(lambda: self.asked.emit("settings.reset"))
        row.addWidget(self.change)
        row.addWidget(self.reset)
        row.addStretch(1)
        column.addWidget(foot)

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
            "From": whose if row.layer in ("default", "last") else f"{whose}: {row.origin}",
            "Locked by": row.locked_by,
        }
        for caption, (head, value) in self.facts.items():
            value.say(said[caption], "warn" if caption == "After the next start" else "text")
            head.setVisible(bool(said[caption]))
            value.setVisible(bool(said[caption]))
