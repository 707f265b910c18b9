"""The tabs of the policy page: the bar, the list or form of each, what the filter keeps, and what is selected."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QStackedWidget, QWidget

from console.gui.kit.layout import STRETCH, column, fill_bar
from console.gui.pages.interface import Desk
from console.gui.pages.policy import findings, rules, tools
from console.gui.pages.policy.backtest import Backtest
from console.gui.pages.policy.explain import Explainer
from console.gui.pages.policy.listing import Listing
from console.gui.pages.policy.profiles import ProfilesTab
from console.gui.pages.policy.reader import PolicyReader
from console.gui.pages.policy.sequences import SequenceTables
from console.gui.theme import fonts
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
_LISTS = ("rules", "lint", "matrix", "sequences")
"""Tabs with a filter and a pane."""


class Bar(Ground):
    """Filter, tabs, and how many are shown."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.search = SearchField("Filter this list", "/", parent=self, kept="filter")
        self.search.setMaximumWidth(191)
        self.tabs = Pills(TABS, self, kept="tab")
        self.shown = Text("", 12, fonts.REGULAR, "text2", right=True)
        fill_bar(self, (self.search, 2), self.tabs, STRETCH, self.shown, spacing=8)


class PolicyTabs(QWidget):
    """``turned``: another tab is in front; ``chosen``: another row is selected; ``opened``: Enter on it."""

    turned = Signal()
    chosen = Signal()
    opened = Signal()

    def __init__(self, desk: Desk, reader: PolicyReader, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._reader = reader
        self.bar = Bar(self)
        self.rules = Listing("Rules", rules.COLUMNS, rules.key_of, rules.keeps, rules.NOTES, self)
        self.lint = Listing("Lint findings", findings.COLUMNS, findings.key_of, findings.keeps, findings.NOTES, self)
        self.matrix = Listing("Tools", tools.COLUMNS, tools.key_of, tools.keeps, tools.NOTES, self)
        self.sequences = SequenceTables(desk.fleet, self)
        self.profiles, self.explain, self.backtest = ProfilesTab(desk, self), Explainer(desk, self), Backtest(desk, self)
        self.stack = QStackedWidget(self)
        for part in (self.rules, self.profiles, self.lint, self.explain, self.matrix, self.sequences, self.backtest):
            self.stack.addWidget(part)
        column(self.bar, (self.stack, 1), on=self)
        self.bar.search.textChanged.connect(self.filter)
        self.bar.search.left.connect(self.focus)
        self.bar.tabs.changed.connect(lambda _tab: self._turn())
        for listing in (self.rules, self.lint, self.matrix):
            listing.chosen.connect(lambda _row: self.chosen.emit())
            listing.opened.connect(lambda _row: self.opened.emit())
        self.sequences.chosen.connect(lambda _row: self.chosen.emit())
        for view in (self.sequences.patterns, self.sequences.marks):
            view.opened.connect(lambda _row: self.opened.emit())
        reader.came.connect(self.show_answer)
        reader.failed.connect(self._show_failure)

    def name(self) -> str:
        """The tab in front."""
        return self.bar.tabs.chosen()

    def choose(self, tab: str) -> None:
        """Brings it to the front."""
        self.bar.tabs.pills[tab].setChecked(True)
        self._turn()

    def has_filter(self) -> bool:
        """Whether a list is in front."""
        return self.name() in _LISTS

    def current(self) -> object:
        """The selected row of the list in front."""
        if self.name() == "sequences":
            return self.sequences.current()
        front = self.stack.currentWidget()
        return front.view.current() if isinstance(front, Listing) else None

    def focus(self) -> None:
        """Into the list or the field in front."""
        lists = (self.rules.view, self.profiles.kind, self.lint.view, self.explain.call, self.matrix.view, self.sequences.patterns)
        (*lists, self.backtest.field)[self.stack.currentIndex()].setFocus()

    def filter(self) -> None:
        """What the words in the bar keep."""
        text, front, shown = self.bar.search.text(), self.stack.currentWidget(), ""
        if isinstance(front, Listing | SequenceTables):
            front.arrange(text)
        if isinstance(front, Listing):
            shown = front.shown_words()
        self.bar.shown.setText(shown)
        self.bar.shown.setVisible(bool(shown))

    def _turn(self) -> None:
        self.stack.setCurrentIndex(list(TABS).index(self.name()))
        self.bar.search.setEnabled(self.has_filter())
        self.filter()
        if self.name() == "profiles":
            self.profiles.read()
        self.turned.emit()

    def show_answer(self, tab: str) -> None:
        """A newer answer about one of the lists."""
        {"rules": self._show_rules, "lint": self._show_lint, "matrix": self._show_tools, "sequences": self._show_sequences}[tab]()

    def _show_rules(self) -> None:
        view = self._reader.policy
        if view is not None:
            kept = "the last good rules stay in force" if view.rules else "every call is denied"
            self.rules.warn(f"The newest file is NOT in force: {view.problem} So {kept}." if view.problem else "")
            self.rules.say(rows := rules.rows_of(view))
            self.bar.tabs.pills["rules"].setText(f"Rules {len(rows):,}")
            self.backtest.take(view)

    def _show_lint(self) -> None:
        view = self._reader.lint
        if view is not None:
            self.lint.say(view.findings)
            problem = "These findings are about the last good rules: the newest file is not in force." if view.problem else ""
            shown = findings.counted(view) if view.count > len(view.findings) else ""
            self.lint.warn(problem or shown, "danger" if problem else "warn", "diamond" if problem else "triangle")
            self.bar.tabs.pills["lint"].setText(f"Lint {view.count:,}")

    def _show_tools(self) -> None:
        view = self._reader.tools
        if view is not None:
            self.matrix.warn(*tools.matrix_words(view))
            self.matrix.say(view.tools)

    def _show_sequences(self) -> None:
        view = self._reader.sequences
        if view is not None:
            self.sequences.say(view)
            if self.sequences.current() is None and view.patterns:
                self.sequences.patterns.choose(view.patterns[0].name)

    def _show_failure(self, tab: str, error: str) -> None:
        """What is shown stays, and says that it is old."""
        words = self._reader.old_words(tab)
        if tab == "sequences":
            self.sequences.fail(error)
            self.sequences.warn(words)
            return
        listing = {"rules": self.rules, "lint": self.lint, "matrix": self.matrix}[tab]
        listing.fail(f"Not known: {error}")
        listing.warn(words, "warn", "triangle")
