"""The command palette (Ctrl K) over actions and agents, and the sheet of all keys (?)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QDialog, QWidget

from console.gui.actions import ActionSpec, search
from console.gui.kit.layout import Part, column, scrolled
from console.gui.models.fleet import Fleet
from console.gui.theme import fonts
from console.gui.widgets.buttons import SearchField
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.facts import Fact, Facts
from console.gui.widgets.reading import empty_note
from console.gui.widgets.rows import Canvas, Column, RowModel, RowView
from console.gui.widgets.text import Text

_MOST = 60


@dataclass(frozen=True, slots=True)
class Found:
    """One line of the palette: an action (``verb``) or an agent (``agent_id``)."""

    title: str
    side: str
    verb: str = ""
    agent_id: str = ""
    why_not: str = ""

    @property
    def key(self) -> str:
        return self.verb or f"agent {self.agent_id}"


def nothing_words(text: str) -> str:
    """What stands in the list when nothing matches."""
    return f"No action and no agent matches “{text.strip()}”. Type a name, an id, or a word such as kill, limit, log, export or help."


def find(text: str, verbs: Sequence[ActionSpec], why_not: Callable[[str], str], fleet: Fleet) -> list[Found]:
    """Actions first, then agents whose name, id, session or last action has all the words."""
    out = [Found(a.title, a.shown_key, verb=a.id, why_not=why_not(a.id)) for a in search(verbs, text)]
    words = text.lower().split()
    if words:
        rows = (row for row in fleet.rows.values() if all(w in row.haystack for w in words))
        out.extend(Found(row.name, "agent", agent_id=row.id) for row in islice(rows, _MOST))
    return out


class Palette(QDialog):
    """Typing filters, arrows move, Enter runs, Esc closes. What cannot be done now says why and does nothing."""

    def __init__(
        self, verbs: Sequence[ActionSpec], why_not: Callable[[str], str], fleet: Fleet, run: Callable[[Found], None], parent: QWidget
    ) -> None:
        super().__init__(parent, Qt.WindowType.Dialog | Qt.WindowType.FramelessWindowHint)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setModal(True)
        self.setWindowTitle("Find an agent or command")
        self._verbs, self._fleet, self._run = verbs, fleet, run
        self._why_not = cache(why_not)  # judged once while it is open, not with each letter; the act itself asks again
        self.field = SearchField("Find an agent or command", "", 40, self)
        self.model = RowModel((Column("title", "Title"), Column("side", "Key", 190, right=True)), lambda f, k: str(getattr(f, k)), self)
        self.view = RowView(self.model, _paint, lambda f: str(f.key), self)
        self.view.header().hide()
        self.view.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.nothing = empty_note(self.view, "")
        column(self.field, self.view, margins=(10, 10, 10, 10), spacing=-1, on=self)
        self.setFixedSize(min(640, parent.width() - 40), min(460, parent.height() - 40))
        self.move(parent.mapToGlobal(parent.rect().center()) - self.rect().center())
        self.field.textChanged.connect(self._search)
        self.field.installEventFilter(self)
        self.view.doubleClicked.connect(lambda _index: self._go())
        self._search("")
        self.field.setFocus()

    def _search(self, text: str) -> None:
        found = find(text, self._verbs, self._why_not, self._fleet)
        self.view.show_rows(found)
        self.nothing.setText(nothing_words(text))
        self.nothing.setVisible(not found)
        if self.model.rows:
            self.view.setCurrentIndex(self.model.index(0, 0))

    def _go(self) -> None:
        found = self.view.current()
        if found is not None and not found.why_not:
            self.accept()
            self._run(found)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() is QEvent.Type.KeyPress:
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._go()
                return True
            if event.key() == Qt.Key.Key_Escape:
                self.reject()
                return True
            if event.key() in (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown):
                self.view.keyPressEvent(event)
                return True
        return super().eventFilter(watched, event)


def _paint(canvas: Canvas, found: Found) -> None:
    role = "text3" if found.why_not else "text"
    canvas.text("title", found.title, role, size=13, weight=fonts.MEDIUM if found.verb else fonts.REGULAR)
    canvas.text("side", found.why_not or found.side, "text3", right=True)


class KeySheet(Dialog):
    """Every action with its key, by place."""

    def __init__(self, groups: Sequence[tuple[str, Sequence[ActionSpec]]], parent: QWidget) -> None:
        super().__init__("Keys", "Close", "plain", parent, width=560)
        self.cancel.hide()
        self.main.clicked.connect(self.accept)
        parts: list[Part] = []
        for title, verbs in groups:
            facts = Facts(26, ruled=True)
            facts.say([Fact(a.title, a.shown_key, right_role="text") for a in verbs if a.shown_key])
            parts += [Text(title, 12, fonts.SEMIBOLD, "text2"), facts, 10]
        scroll = scrolled(self, *parts, margins=(0, 0, 10, 0), spacing=-1)
        scroll.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        scroll.setMinimumHeight(min(480, parent.height() - 200))
        self.body.addWidget(scroll)
        self.main.setFocus()
