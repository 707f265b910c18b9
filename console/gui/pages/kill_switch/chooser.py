"""The choice of a scope to stop: an agent, a tree or a session, found by typing."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from console.gui.models.fleet import Fleet
from console.gui.widgets.buttons import SearchField
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.rows import Canvas, Column, RowModel, RowView
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.words import plural

MOST = 200
"""Lines listed; typing narrows them."""
_COLUMNS = (Column("name", "Name", share=3), Column("side", "", share=2, right=True))
_TITLES = {"agent": "Which agent?", "tree": "Which tree?", "session": "Which session?"}


@dataclass(frozen=True, slots=True)
class Choice:
    """One line: what is shown and the id that is meant."""

    target: str
    name: str
    side: str


def choices(fleet: Fleet, reach: str, text: str) -> list[Choice]:
    """Live agents, those with agents below them, or sessions with live agents, that hold all the words."""
    words = text.lower().split()
    if reach == "session":
        counted: dict[str, int] = {}
        for row in fleet.rows.values():
            if row.is_live and row.view.session and all(word in row.view.session.lower() for word in words):
                counted[row.view.session] = counted.get(row.view.session, 0) + 1
        return [Choice(name, safe_text(name, 80), plural(number, "agent")) for name, number in sorted(counted.items())[:MOST]]
    parents = {row.view.parent_id for row in fleet.rows.values()} if reach == "tree" else set()
    out: list[Choice] = []
    for row in fleet.rows.values():
        if row.is_live and (reach != "tree" or row.id in parents) and all(word in row.haystack for word in words):
            out.append(Choice(row.id, row.name, row.id))
            if len(out) == MOST:
                break
    return out


class ScopeDialog(Dialog):
    """``target`` is what was chosen once it is accepted."""

    def __init__(self, fleet: Fleet, reach: str, parent: QWidget) -> None:
        super().__init__(_TITLES[reach], "Choose", "primary", parent, width=520)
        self._fleet, self._reach = fleet, reach
        self.target = ""
        self.field = SearchField("Name, id, session", "", 34, self)
        self.model = RowModel(_COLUMNS, lambda choice, key: str(getattr(choice, key)), self)
        self.view = RowView(self.model, _paint, lambda choice: str(choice.target), self)
        self.view.header().hide()
        self.view.setFixedHeight(300)
        self.view.setAccessibleName(_TITLES[reach])
        self.body.addWidget(self.field)
        self.body.addWidget(self.view)
        self.field.textChanged.connect(self._search)
        self.field.installEventFilter(self)
        self.view.opened.connect(lambda _row: self._go())
        self.view.chosen.connect(lambda _row: self._name())
        self.main.clicked.connect(self._go)
        self._search("")
        self.field.setFocus()

    def _search(self, text: str) -> None:
        self.view.show_rows(choices(self._fleet, self._reach, text))
        if self.view.current() is None and self.model.rows:
            self.view.setCurrentIndex(self.model.index(0, 0))
        self._name()

    def _name(self) -> None:
        choice = self.view.current()
        self.main.allow("" if choice is not None else "Nothing is selected.")

    def _go(self) -> None:
        choice = self.view.current()
        if choice is not None:
            self.target = choice.target
            self.accept()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() is QEvent.Type.KeyPress:
            if event.key() in (Qt.Key.Key_Up, Qt.Key.Key_Down):
                self.view.keyPressEvent(event)
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._go()
                return True
        return super().eventFilter(watched, event)


def _paint(canvas: Canvas, choice: Choice) -> None:
    canvas.text("name", choice.name)
    canvas.text("side", choice.side, "text2", mono=True, right=True)
