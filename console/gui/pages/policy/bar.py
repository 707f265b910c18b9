"""The bar of the policy page."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QWidget

from console.gui.theme import fonts
from console.gui.theme.tokens import FILTER_BAR
from console.gui.widgets.buttons import Pills, SearchField
from console.gui.widgets.side_pane import Ground
from console.gui.widgets.text import Text

TABS = {
    "rules": "Rules",
    "profiles": "Profiles",
    "lint": "Lint",
    "explain": "Explain",
    "matrix": "Matrix",
    "sequences": "Sequences",
    "backtest": "Backtest",
}


class Bar(Ground):
    """Filter, tabs, and how many are shown."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(FILTER_BAR)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 0, 16, 0)
        row.setSpacing(8)
        self.search = SearchField("Filter this list", "/", parent=self, kept="filter")
        self.search.setMaximumWidth(191)
        self.tabs = Pills(TABS, self, kept="tab")
        self.shown = Text("", 12, fonts.REGULAR, "text2", right=True)
        row.addWidget(self.search, 2)
        row.addWidget(self.tabs)
        row.addStretch(1)
        row.addWidget(self.shown)
