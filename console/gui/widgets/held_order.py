"""The order of a list stays while the pointer is over it or a person selected a row, so that a click hits the row that was aimed at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QWidget

from console.gui.widgets.buttons import Button
from console.gui.widgets.rows import RowModel, RowView
from console.gui.widgets.safe_text import tooltip

Places = dict[str, int]
"""key of a row -> its place in the list as it is shown"""


class HeldOrder(QObject):
    """One per list. ``released`` when the list may be arranged again; ``moved``: the list is shown in an older order."""

    released = Signal()

    def __init__(
        self, view: RowView, model: RowModel, key: Callable[[Any], str], keep: Callable[[Places], list[Any]] | None = None
    ) -> None:
        """``keep`` arranges in the order of given places; without it a selected row holds all rows, as the pointer does."""
        super().__init__(view)
        self._view, self._model, self._key, self._keep = view, model, key, keep
        self.only_pointer = False
        """A list that is worked off from the top: a selected row holds nothing, because what comes first must be seen."""
        self.moved = False
        self._asked = False
        self._came_at = QCursor.pos()
        """Where the pointer was when the list came up below it. It aims at nothing before it moves."""
        self.is_chosen = self._by_itself = False
        """``is_chosen``: a person selected the current row."""
        view.viewport().installEventFilter(self)
        view.chosen.connect(self._chosen)
        view.pressed_at.connect(self._chosen)
        view.order.changed.connect(self._sorted)

    def ask(self) -> None:
        """A person sorted, filtered or folded: the next arrangement is shown, wherever the pointer is."""
        self._asked = True

    def forget_chosen(self) -> None:
        """The row that a person selected holds the order no longer."""
        self.is_chosen = False

    def choose_first(self, fits: Callable[[Any], bool] = lambda _row: True) -> None:
        """Selects the first row that fits when none is selected. No person chose it, so it holds no order."""
        current = self._view.current()
        first = next(filter(fits, self._model.rows), None) if current is None or not fits(current) else None
        if first is not None:
            self._by_itself = True
            self._view.choose(self._key(first))
            self._by_itself = False

    def show(self, rows: list[Any]) -> None:
        """Shows ``rows``, in the order of before while that is held."""
        given, shown = rows, self._model.rows
        rows = self._view.order.arrange(given)
        aimed = self.aimed_at()
        self.moved = False
        if (aimed >= 0 or (self.is_chosen and not self.only_pointer)) and shown and not self._asked and rows != shown:
            rows = self._held(rows, shown, aimed)
        if not self.moved:
            self._asked = False
        if rows is not shown:
            self._view.show_rows(rows, given)

    def aimed_at(self) -> int:
        """The place of the row under the pointer; -1 where it is over none, or was not moved since the list came up."""
        view, at = self._view.viewport(), QCursor.pos()
        return self._view.indexAt(view.mapFromGlobal(at)).row() if view.underMouse() and at != self._came_at else -1

    def _held(self, rows: list[Any], shown: list[Any], aimed: int) -> list[Any]:
        """The rows in the order of before. What is new comes where it moves neither the row at place ``aimed`` nor one above it."""
        keys = [self._key(row) for row in shown]
        if self._keep is not None:
            kept = self._keep({key: place for place, key in enumerate(keys)})
            if [self._key(row) for row in kept[: aimed + 1]] == keys[: aimed + 1]:
                self.moved = kept != rows
                return kept
        fresh = {self._key(row): row for row in rows}
        self.moved = list(fresh) != keys
        still = [fresh.pop(key, row) for key, row in zip(keys, shown, strict=True)]
        return [*still, *fresh.values()]

    def _sorted(self) -> None:
        """A click on a title is as good as a request to arrange."""
        self.ask()
        self.released.emit()

    def _chosen(self, row: object) -> None:
        self.is_chosen = row is not None and not self._by_itself

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Show:
            self._came_at = QCursor.pos()
        elif event.type() is QEvent.Type.Leave and self.moved:
            self.released.emit()
        return super().eventFilter(watched, event)


def moved_button(parent: QWidget) -> Button:
    """Return a button that applies the current order. It is hidden until the list is shown in an older order."""
    button = Button("Order changed: refresh", "refresh", small=True, parent=parent)
    button.setToolTip(tooltip("No row moves while the pointer is over the list or a row is selected. Press R to arrange the list again."))
    button.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    button.hide()
    return button
