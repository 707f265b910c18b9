"""A table of one tab: rows that a filter keeps, sorted by a column, with the words of an empty one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from console.gui.theme import fonts
from console.gui.widgets.reading import empty_note
from console.gui.widgets.rows import Column, RowModel, RowPainter, RowView, Sorts
from console.gui.widgets.text import Text


class Listing(QWidget):
    """``chosen`` with the current row or None, ``opened`` on Enter."""

    chosen = Signal(object)
    opened = Signal(object)

    def __init__(
        self,
        name: str,
        columns: Sequence[Column],
        words: Callable[[Any, str], str],
        paint: RowPainter,
        key: Callable[[Any], str],
        sorts: Sorts,
        keeps: Callable[[Any, str], bool],
        reading: str,
        none: str,
        empty: str,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._key, self._keeps = key, keeps
        self._words = (none, empty)
        self.rows: list[Any] | None = None
        """All of them; None: not read yet."""
        self.text = ""
        self.problem = Text("", 12, fonts.MEDIUM, "danger", wrap=True, mark="diamond")
        self.problem.hide()
        self.model = RowModel(columns, words, self)
        self.view = RowView(self.model, paint, key, self, sorts=sorts)
        self.view.setAccessibleName(name)
        self.empty = empty_note(self.view, reading)
        self.empty.show()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        room = QVBoxLayout()
        room.setContentsMargins(16, 2, 16, 2)
        room.addWidget(self.problem)
        column.addLayout(room)
        column.addWidget(self.view, 1)
        self.view.chosen.connect(self.chosen)
        self.view.opened.connect(self.opened)

    def say(self, rows: Sequence[Any]) -> None:
        """A newer answer."""
        if self.rows is None or list(rows) != self.rows:
            self.rows = list(rows)
            self.arrange(self.text)

    def warn(self, words: str, role: str = "danger", mark: str = "diamond") -> None:
        """Above the table; empty: nothing."""
        self.problem.say(words, role, mark)
        self.problem.setVisible(bool(words))

    def fail(self, words: str) -> None:
        """Nothing was ever read, and why."""
        if self.rows is None:
            self.empty.setText(words)

    def arrange(self, text: str) -> None:
        """What a filter keeps; the selected row stays selected."""
        self.text = text
        if self.rows is None:
            return
        rows = [row for row in self.rows if self._keeps(row, text)] if text.strip() else list(self.rows)
        self.view.show_rows(rows)
        if self.view.current() is None and rows:
            self.view.choose(self._key(self.model.rows[0]))
        self.empty.setText(self._words[0] if self.rows else self._words[1])
        self.empty.setVisible(not rows)

    def shown_words(self) -> str:
        """``11 of 38 shown`` while something is filtered."""
        return f"{len(self.model.rows):,} of {len(self.rows or ()):,} shown" if self.text.strip() else ""
