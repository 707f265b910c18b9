"""The upper part of the page: head, filter, orders, the list, and what stands there while nothing has a limit."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from console.api.budgets import BudgetRow, BudgetsView
from console.gui.kit.layout import bar, column, row
from console.gui.pages.budgets.head import BudgetHead
from console.gui.pages.budgets.rows import COLUMNS, ORDERS, SORTS, TITLES, Line, arrange, cell_words, counted, depth, has_limits, paint_line
from console.gui.theme import fonts
from console.gui.widgets.buttons import Pills, SearchField
from console.gui.widgets.held_order import HeldOrder, moved_button
from console.gui.widgets.reading import empty_note
from console.gui.widgets.rows import ManyRowView, RowModel
from console.gui.widgets.side_pane import Ground
from console.gui.widgets.text import Text

HOW = "Press L, or before anything runs: watchfloor budget set cost=600 --day --reason R; one agent: watchfloor run --limit cost=2.50."
NO_LIMITS = f"No limits set: nothing here ends by itself. {HOW}"
NOBODY = (
    "No agent has spent anything yet. Each tree appears here with what it spends, the first to end on top. "
    f"A limit can be set before anything starts. {HOW}"
)
_NONE_OF = {
    "project": "No project or session has a limit or a live agent.",
    "day": "No day has been counted yet.",
}


class BudgetList(Ground):
    """``chosen`` when another line is current; ``order_changed`` when the trees have to be read again."""

    chosen = Signal()
    order_changed = Signal(str)
    more_wanted = Signal()
    """The end of a list that was cut has come into sight, or it is searched."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.data: BudgetsView | None = None
        self.order = "time"
        self._closed: set[str] = set()
        self.head = BudgetHead(self)
        self.search = SearchField("Filter this list", "/", parent=self, kept="filter")
        self.search.setMinimumWidth(110)
        self.search.setMaximumWidth(176)
        self.pills = Pills(ORDERS, self, kept="tab")
        self.moved = moved_button(self)
        self.shown = Text("", 12, fonts.REGULAR, "text2", right=True)
        self.hint = Text("", 12, fonts.MEDIUM, "text", wrap=True, mark="ring")
        self.hint.setContentsMargins(16, 0, 16, 8)
        self.model = RowModel(COLUMNS, cell_words, self)
        self.view = ManyRowView(self.model, paint_line, lambda line: str(line.key), self, sorts=SORTS)
        self.view.order.depth = depth
        self.view.setAccessibleName("Budgets")
        self._held = HeldOrder(self.view, self.model, lambda line: str(line.key))
        self.empty = empty_note(self.view, NOBODY)
        filters = bar(self, (self.search, 1), self.pills, self.moved, (self.shown, 1))
        column(self.head, filters, row(self.hint, margins=(16, 0, 16, 0)), (self.view, 1), on=self)
        self.hint.hide()
        self._held.released.connect(self.show_lines, Qt.ConnectionType.QueuedConnection)
        self.moved.clicked.connect(self.arrange)
        self.search.textChanged.connect(lambda _text: self.arrange())
        self.search.textChanged.connect(lambda _text: self._at_end())
        self.search.left.connect(self.view.setFocus)
        self.pills.changed.connect(self.turn)
        self.view.chosen.connect(lambda _line: self.chosen.emit())
        self.view.picked_changed.connect(self.chosen)
        self.view.picked_changed.connect(self._say_shown)
        self.view.fold_asked.connect(self._fold)
        self.view.pressed_at.connect(lambda line, at: self._fold(line, not line.is_open) if line.folds and at.x() < 32 else None)
        self.view.verticalScrollBar().valueChanged.connect(lambda _value: self._at_end())

    @property
    def wants_all(self) -> bool:
        """Whether more than the first trees are needed."""
        bar = self.view.verticalScrollBar()
        return bool(self.search.text()) or (bar.maximum() > 0 and bar.value() > bar.maximum() * 0.7)

    def _at_end(self) -> None:
        if self.data is not None and self.data.more_trees and self.wants_all:
            self._held.ask()
            self.more_wanted.emit()

    def current(self) -> BudgetRow | None:
        """The node of the current line."""
        line: Line | None = self.view.current()
        return line.row if line is not None else None

    def picked(self) -> list[BudgetRow]:
        """The nodes of the selected lines: the current one, or several."""
        return [line.row for line in self.view.picked_rows() if line.row is not None]

    def take(self, view: BudgetsView, note: str = "", halted: int = 0) -> None:
        """An answer came; ``note``: what its sums lack; ``halted``: agents that a limit halted today."""
        self.data = view
        self.head.say(view.totals, view.totals.day_note or note, halted)
        self.show_lines()

    def fail(self, why: str, remedy: str) -> None:
        """It could not be read: what stands there is old, and nothing there is no zero."""
        self.head.fail(f"{why}; the figures are old" if self.data is not None else why)
        if self.data is None:
            self.empty.setText(f"{why[:1].upper()}{why[1:]}. {remedy}".strip())
            self.empty.show()

    def turn(self, order: str) -> None:
        """Another order."""
        if order != self.order:
            self.order = order
            self.pills.pills[order].setChecked(True)
            self.view.retitle("who", TITLES.get(order, "Tree"))
            self._held.ask()
            self.show_lines()
            self._held.ask()  # the answer that is on its way is arranged too
            self.order_changed.emit(order)

    def arrange(self) -> None:
        """Shows the list in its present order, wherever the pointer is."""
        self._held.ask()
        self.show_lines()

    def show_lines(self) -> None:
        """Arranges and shows; the selection stays where it was, else on the first that is a node."""
        if self.data is None:
            return
        lines = arrange(self.data, self.order, self.search.text(), self._closed)
        self._held.show(lines)
        self.moved.setVisible(self._held.moved)
        self._held.choose_first(lambda line: line.row is not None)
        self._say_shown()
        self.empty.setText("No row matches the filter." if self.search.text() else _NONE_OF.get(self.order, NOBODY))
        self.empty.setVisible(not lines)
        bare = bool(lines) and not has_limits(self.data)
        self.hint.setText(NO_LIMITS if bare else "")
        self.hint.setVisible(bare)

    def _say_shown(self) -> None:
        if self.data is None:
            return
        number, is_filtered = len(self.picked()), bool(self.search.text().strip())
        words = (f"{number:,} selected · " if number > 1 else "") + counted(self.data, self.order, self.model.rows)
        self.shown.say(
            f"Filtered: {words}" if is_filtered else words, "warn" if is_filtered else "text2", "triangle" if is_filtered else ""
        )

    def reveal(self, agent_id: str) -> None:
        """Selects an agent's tree, or the agent among those that end first."""
        self.search.clear()
        if not self.view.choose(f"agent:{agent_id}"):
            self.view.choose(f"tree:{agent_id}")

    def _fold(self, line: Line, is_open: bool) -> None:
        if line.below:
            if not is_open:
                self.view.choose(f"tree:{line.parent}")
        elif line.folds and line.row is not None:
            (self._closed.discard if is_open else self._closed.add)(line.row.key)
            self.arrange()
