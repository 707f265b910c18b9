"""What the tabs of the policy page are made of: a list that a filter keeps rows of, and a form with its result beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from PySide6.QtCore import QRectF, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QLayout, QWidget

from console.gui.kit.layout import Margins, column, row
from console.gui.kit.table import Cell, listing
from console.gui.theme import fonts
from console.gui.theme.tokens import ink
from console.gui.widgets.reading import empty_note
from console.gui.widgets.rows import RowView
from console.gui.widgets.text import Text

RESULT: Margins = (1, 0, 0, 0)
"""What stands beside a form leaves room for the line between them."""


class Listing(QWidget):
    """``chosen`` with the current row or None, ``opened`` on Enter."""

    chosen = Signal(object)
    opened = Signal(object)

    def __init__(
        self,
        name: str,
        cells: Sequence[Cell[Any]],
        key: Callable[[Any], str],
        keeps: Callable[[Any, str], bool],
        notes: tuple[str, str, str],
        parent: QWidget | None = None,
    ) -> None:
        """``notes``: what an empty list says while it is read, when nothing matches, and when there is nothing."""
        super().__init__(parent)
        self._key, self._keeps = key, keeps
        reading, *self._words = notes
        self.rows: list[Any] | None = None
        """All of them; None: not read yet."""
        self.text = ""
        self.problem = Text("", 12, fonts.MEDIUM, "danger", wrap=True, mark="diamond")
        self.problem.hide()
        self.view = listing(name, cells, key, self, RowView)
        self.model = self.view.row_model
        self.empty = empty_note(self.view, reading)
        self.empty.show()
        column(column(self.problem, margins=(16, 2, 16, 2)), (self.view, 1), on=self)
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


class FormTab(QWidget):
    """A form of so many pixels at the left, and at the right what came of it."""

    def __init__(self, form_width: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._form_width = form_width

    def lay(self, form: QLayout, result: QLayout) -> None:
        """Places both."""
        left = QWidget(self)
        left.setFixedWidth(self._form_width)
        left.setLayout(form)
        row(left, (result, 1), on=self)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(colours.bg1))
        painter.fillRect(QRectF(self._form_width, 0, 1, self.height()), QColor(colours.line))
        painter.end()
