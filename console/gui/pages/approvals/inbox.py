"""The left of the page: how much waits, the filter, and the three lists (waiting, decided, given to sessions)."""

from __future__ import annotations

import time

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from console.api.policy.approvals import ApprovalRow, GrantRow
from console.gui.kit.layout import bar, column, row
from console.gui.pages.approvals.book import Book, Item
from console.gui.pages.approvals.rows import (
    DECIDED_COLUMNS,
    DECIDED_SORTS,
    ITEM,
    ITEM_COLUMNS,
    decided_words,
    grant_words,
    item_painter,
    item_words,
    paint_decided,
    paint_grant,
)
from console.gui.pages.approvals.words import load_words
from console.gui.theme import fonts
from console.gui.theme.tokens import FILTER_BAR, PAGE_HEADER, ROW, ink
from console.gui.widgets.buttons import Pills, SearchField
from console.gui.widgets.held_order import HeldOrder, moved_button
from console.gui.widgets.marks import draw_text
from console.gui.widgets.reading import empty_note, say_empty
from console.gui.widgets.rows import ManyRowView, RowModel, RowView
from console.gui.widgets.side_pane import Ground
from console.gui.widgets.text import Text
from console.gui.widgets.words import long_span, plural
from console.panic.marks import draw_mark

WIDTH = 356
TABS = {"waiting": "Waiting", "decided": "Decided", "given": "Standing"}
_NOTHING = "No pending approvals. A call that no rule allows or denies waits here, and is denied automatically if not answered."
_NOT_KNOWN = "Pending approvals are not known now. A request that is not answered in time is denied automatically."
_NONE_DECIDED = "Nothing was decided yet."
_NONE_GIVEN = "No session has a standing approval: each request needs its own."


class Head(QWidget):
    """Title, items and requests that wait, how long the oldest does, how fast people decide."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(PAGE_HEADER)
        self._items = self._requests = 0
        self._oldest = self._median = self._load = self.problem = ""

    def say(self, book: Book, at: float) -> None:
        """Every second."""
        new = (
            book.items_waiting,
            len(book.waiting()),
            long_span(at - book.oldest_at) if book.oldest_at is not None else "",
            f"median to decide {long_span(book.median_s)}" if book.median_s is not None else "",
            load_words(book.per_hour, book.rule_share),
        )
        if new != (self._items, self._requests, self._oldest, self._median, self._load):
            self._items, self._requests, self._oldest, self._median, self._load = new
            waits = f"Waiting {new[0]}, {plural(new[1], 'request')}. Oldest waits {new[2] or 'not at all'}."
            self.setAccessibleName(f"{waits} {new[3]} {new[4]}".strip())
            self.setToolTip("Of the last day. A rule could have answered what repeats an approved request exactly." if new[4] else "")
            self.update()

    def fail(self, problem: str) -> None:
        """It could not be read; empty: it could."""
        if problem != self.problem:
            self.problem = problem
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(colours.bg0))
        painter.fillRect(QRectF(0, self.height() - 1, self.width(), 1), QColor(colours.line))
        draw_text(painter, QRectF(16, 12, 160, 24), "Approvals", fonts.ui(17, fonts.SEMIBOLD), colours.text)
        width = self.width()
        draw_text(painter, QRectF(16, 35, width - 112, 20), self._load, fonts.ui(11), colours.text2)
        if self._oldest:
            draw_text(painter, QRectF(width - 176, 14, 160, 18), "Oldest waits", fonts.ui(12), colours.text2, right=True)
            draw_text(painter, QRectF(width - 176, 35, 160, 20), self._oldest, fonts.ui(13, fonts.SEMIBOLD), colours.text, right=True)
        if self.problem:
            draw_mark(painter, "triangle", QRectF(17, 64, 9, 9), colours.warn)
            draw_text(painter, QRectF(33, 58, width - 49, 20), self.problem, fonts.ui(12, fonts.MEDIUM), colours.warn)
            painter.end()
            return
        loud = colours.warn if self._items else colours.text2
        draw_mark(painter, "triangle" if self._items else "check", QRectF(17, 64, 9, 9), loud)
        draw_text(painter, QRectF(33, 58, 60, 20), "Waiting", fonts.ui(12), colours.text)
        figure = fonts.ui(18, fonts.MEDIUM)
        room = fonts.metrics(figure).horizontalAdvance(f"{self._items:,}") + 4
        draw_text(painter, QRectF(87, 56, room, 24), f"{self._items:,}", figure, loud if self._items else colours.text)
        asked = plural(self._requests, "request")
        draw_text(painter, QRectF(97 + room, 58, 90, 20), asked, fonts.ui(12), colours.text2)
        draw_text(painter, QRectF(width - 176, 58, 160, 20), self._median, fonts.ui(11), colours.text2, right=True)
        painter.end()


class Inbox(Ground):
    """``chosen`` when something else is looked at; ``tab_changed`` with the list in front."""

    chosen = Signal()
    tab_changed = Signal(str)
    opened = Signal()

    def __init__(self, book: Book, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._book = book
        self._open: set[str] = set()
        self.grants: list[GrantRow] = []
        self.head = Head(self)
        self.search = SearchField("Filter", "/", parent=self)  # not kept: an inbox opens with all that waits
        self.tabs = Pills(TABS, self)
        self.model = RowModel(ITEM_COLUMNS, item_words, self)
        self.view = ManyRowView(self.model, item_painter(time.monotonic), lambda item: str(item.key), self, row_height=ITEM)
        self.decided_model = RowModel(DECIDED_COLUMNS, decided_words, self)
        self.decided = ManyRowView(self.decided_model, paint_decided, lambda row: str(row.id), self, sorts=DECIDED_SORTS)
        self.given_model = RowModel((ITEM_COLUMNS[0],), grant_words, self)
        self.given = ManyRowView(self.given_model, paint_grant, lambda row: f"{row.session}\0{row.digest}", self, row_height=ITEM)
        self._held = HeldOrder(self.view, self.model, lambda item: str(item.key))
        self._held.only_pointer = True
        self.moved = moved_button(self)
        self._title = Text("Decided", 12, fonts.REGULAR, "text2", parent=self)
        self._title.setContentsMargins(16, 0, 0, 0)
        self.empty = empty_note(self.view, _NOTHING)
        self._none_decided = empty_note(self.decided, _NONE_DECIDED)
        self._none_given = empty_note(self.given, _NONE_GIVEN)
        for view, name in ((self.view, "Waiting requests"), (self.decided, "Decided requests"), (self.given, "Standing approvals")):
            view.header().hide()
            view.setAccessibleName(name)
        self._lay_out()
        self._connect()
        self._show_tab()

    def _lay_out(self) -> None:
        self._strip = QWidget(self)
        self._strip.setFixedHeight(ROW)
        row((self._title, 1), margins=(16, 0, 16, 0), on=self._strip)
        filters = bar(self, (self.search, 1), self.tabs, spacing=8)
        column(self.head, filters, self.view, self._strip, (self.decided, 1), (self.given, 1), on=self)

    def _connect(self) -> None:
        self._held.released.connect(self.show_lines, Qt.ConnectionType.QueuedConnection)
        self.moved.clicked.connect(lambda: self.show_lines(asked=True))
        self.search.textChanged.connect(lambda _text: self.show_lines(asked=True))
        self.search.left.connect(lambda: self.front().setFocus())
        self.tabs.changed.connect(lambda _key: self._turn())
        for view in (self.view, self.decided, self.given):
            view.chosen.connect(lambda _line: self.chosen.emit())
            view.opened.connect(lambda _line: self.opened.emit())
        self.view.fold_asked.connect(self._fold)
        self.decided.pressed_at.connect(lambda row, _at: self._show_decided(row))

    def _show_decided(self, row: ApprovalRow) -> None:
        if self.tab() != "decided":
            self.show_tab("decided")
            self.decided.choose(row.id)

    def tab(self) -> str:
        """waiting, decided or given."""
        return self.tabs.chosen()

    def front(self) -> RowView:
        """The list that the keys move in."""
        return {"decided": self.decided, "given": self.given}.get(self.tab(), self.view)

    def current(self) -> Item | ApprovalRow | GrantRow | None:
        """What is looked at."""
        found: Item | ApprovalRow | GrantRow | None = self.front().current()
        return found

    def several(self) -> list[ApprovalRow]:
        """Each pending request once of the selected lines, when several lines are selected; else none."""
        items: list[Item] = self.view.picked_rows() if self.tab() == "waiting" else []
        found = {entry.row.id: entry.row for item in items for entry in item.live} if len(items) > 1 else {}
        return list(found.values())

    def show_tab(self, name: str) -> None:
        self.tabs.pills[name].setChecked(True)
        self._turn()

    def _turn(self) -> None:
        self._show_tab()
        self._choose_first()
        self.tab_changed.emit(self.tab())

    def _choose_first(self) -> None:
        view = self.front()
        model = view.model()
        if view.current() is None and model is not None and model.rowCount():
            view.setCurrentIndex(model.index(0, 0))

    def show_lines(self, *, asked: bool = False) -> None:
        """Arranges and shows; what is looked at stays so, also when it became part of a group. ``asked``: under the pointer too."""
        if asked:
            self._held.ask()
        before: Item | None = self.view.current()
        items = self._book.items(self.search.text(), self._open)
        if before is not None and not before.is_group and not any(item.key == before.key for item in items):
            group = before.first.row.group
            if any(item.key == f"g:{group}" for item in items):
                self._open.add(group)
                items = self._book.items(self.search.text(), self._open)
        self._held.show(items)
        self.moved.setVisible(self._held.moved)
        if before is not None and self.view.current() is None:
            group_key = f"g:{before.first.row.group}"
            self.view.choose(before.key) or self.view.choose(group_key)
        words = self.search.text().lower().split()
        self.decided.show_rows([row for row in self._book.decided if all(w in decided_words(row, "call").lower() for w in words)])
        self.given.show_rows([row for row in self.grants if all(w in grant_words(row, "").lower() for w in words)])
        self._choose_first()
        self._say()
        self._lay()

    def _say(self) -> None:
        book = self._book
        nothing = _NOT_KNOWN if book.is_old else _NOTHING
        waiting = "No requests match the filter." if self.search.text() and book.entries else nothing
        for note, view, words in (
            (self.empty, self.view, waiting),
            (self._none_decided, self.decided, _NONE_DECIDED),
            (self._none_given, self.given, _NONE_GIVEN),
        ):
            say_empty(note, view, words, book.loaded, book.problem)
        self.tabs.pills["waiting"].setText(f"Waiting {self._book.items_waiting:,}" if self._book.items_waiting else "Waiting")
        self.tabs.pills["given"].setText(f"Standing {len(self.grants):,}" if self.grants else "Standing")
        self._title.setText(f"Decided last: {len(book.decided)}" if book.loaded else "Decided last")

    def reveal(self, wanted: str) -> bool:
        """Selects a request by its id or its agent's, whatever filter or group hides it."""
        entry = next((e for e in self._book.waiting() if wanted in (e.row.id, e.row.agent_id)), None)
        self.search.clear()
        if entry is None:
            if any(row.id == wanted for row in self._book.decided):
                self.show_tab("decided")
                return self.decided.choose(wanted)
            return False
        if self.tab() != "waiting":
            self.show_tab("waiting")
        self._open.add(entry.row.group)
        self.show_lines(asked=True)
        return self.view.choose(f"r:{entry.row.id}")

    def turn_group(self) -> None:
        """G: opens the group that is looked at, or closes the one it lies in."""
        item: Item | None = self.view.current()
        if item is not None and (item.is_group or item.within):
            self._fold(item, item.is_group and not item.is_open)

    def _fold(self, item: Item, is_open: bool) -> None:
        group = item.first.row.group
        if is_open and item.is_group:
            self._open.add(group)
            self.show_lines(asked=True)
        elif not is_open and (item.is_group or item.within):
            self._open.discard(group)
            self.view.choose(f"g:{group}")
            self.show_lines(asked=True)

    def _show_tab(self) -> None:
        tab = self.tab()
        self.view.setVisible(tab == "waiting")
        self.given.setVisible(tab == "given")
        self._lay()

    def _lay(self) -> None:
        """Waiting ones take what they need; the rest of the room shows what was decided."""
        room = self.height() - PAGE_HEADER - FILTER_BAR
        waiting = self.tab() == "waiting"
        wanted = max(1, len(self.model.rows)) * ITEM + 4
        both = waiting and room - wanted > ROW * 4
        self._strip.setVisible(both)
        self.decided.setVisible(both or self.tab() == "decided")
        self.decided.header().setVisible(self.tab() == "decided")
        self.view.setMinimumHeight(wanted if both else 0)
        self.view.setMaximumHeight(wanted if both else 16_777_215)
        self.moved.adjustSize()
        self.moved.move(self.width() - self.moved.width() - 12, self.height() - self.moved.height() - 8)
        self.decided.setFocusPolicy(Qt.FocusPolicy.NoFocus if both else Qt.FocusPolicy.StrongFocus)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay()
