"""A list of numbered rows of any length, newest first: pages are read as they are needed, and new ones wait while a person reads.

The filter is the supervisor's: it is asked for the pages of what is typed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QWidget

from console.domain.errors import ConsoleError
from console.gui.kit.layout import STRETCH, bar, column
from console.gui.kit.table import Cell, painter_of, sorts_of, words_of
from console.gui.link.pending import Pending
from console.gui.theme import fonts
from console.gui.theme.tokens import ROW
from console.gui.timers import once
from console.gui.widgets.buttons import Button, SearchField
from console.gui.widgets.reading import empty_note, say_empty
from console.gui.widgets.rows import ManyRowView, RowModel, RowView
from console.gui.widgets.side_pane import Ground
from console.gui.widgets.text import Text
from console.gui.widgets.words import plural

TYPED_MS = 200
NEWS_MS = 5_000
"""How long new rows are announced beside the count."""
NEWER_MS = 500
"""New rows are read at most twice a second."""


class Numbered(Protocol):
    """A row. Numbers begin with 1 and have no gaps."""

    seq: int
    hash: str
    """The same as long as it is the same row."""


class RowsPage(Protocol):
    """An answer: rows below one, newest first, and how far the list goes."""

    @property
    def rows(self) -> Sequence[Any]:
        """The rows."""

    newest: int
    total: int


Ask = Callable[[int | None, int, str], Pending[Any]]
"""(below which number, or None: the newest; how many; the filter) -> a RowsPage"""


@dataclass(frozen=True, slots=True)
class Wording:
    """What a list says of itself."""

    title: str
    filtered: str
    """What can be typed into the filter."""
    noun: str
    """One row: ``record``."""
    order: str
    """Why the newest comes first."""
    empty: str
    none: str
    """Nothing matches the filter."""


PAGE = 200
TRIMMED = 2000
"""While following, what lies further back is dropped; scrolling reads it again."""


class Book:
    """Rows of one query. ``newest`` is the number of the newest record there is, shown or not."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.query = ""
        self.newest = 0
        self.total = 0
        self.seen = 0
        """Up to which number the list has been read at the upper end."""
        self.at_end = False
        """There is nothing older."""

    def clear(self, query: str) -> None:
        """Another query: nothing of the old one holds."""
        self.rows, self.query, self.at_end, self.seen = [], query, False, 0

    def is_of(self, page: Sequence[Numbered], newest: int) -> bool:
        """Whether the newest page is of the list that was read here: rows never become fewer, and stay what they are."""
        mine = {row.seq: row.hash for row in self.rows}
        return newest >= self.seen and all(mine.get(row.seq, row.hash) == row.hash for row in page)

    def know(self, newest: int, total: int) -> None:
        """How far the list goes."""
        self.newest, self.total = max(self.newest, newest), max(self.total, total)

    @property
    def waiting(self) -> int:
        """Rows written since the upper end was read."""
        return max(0, self.newest - self.seen) if self.seen else 0

    def oldest(self) -> int | None:
        """Where the next older page begins; None for the newest page."""
        return self.rows[-1].seq if self.rows else None

    def take_older(self, page: Sequence[Numbered]) -> list[Any]:
        """A further page; returns the rows that were added."""
        before = self.oldest()
        fresh = [row for row in page if before is None or row.seq < before]
        self.rows.extend(fresh)
        self.at_end = _is_last(page)
        if self.rows and not self.seen:
            self.seen = self.rows[0].seq
        return fresh

    def take_newest(self, page: Sequence[Numbered], newest: int) -> None:
        """The newest page: joined to what is there, or in its place when it does not reach it."""
        top = self.rows[0].seq if self.rows else 0
        fresh = [row for row in page if row.seq > top]
        if len(fresh) == PAGE or not self.rows:
            self.rows = list(page)
            self.at_end = _is_last(page)
        else:
            self.rows = [*fresh, *self.rows]
            if len(self.rows) > TRIMMED:
                self.rows, self.at_end = self.rows[:TRIMMED], False
        self.know(newest, newest)
        self.seen = max(newest, self.rows[0].seq if self.rows else 0)


def _is_last(page: Sequence[Numbered]) -> bool:
    """Numbers begin with 1 and have no gaps."""
    return len(page) < PAGE or page[-1].seq <= 1


class GrowingModel(RowModel):
    """A list that can grow at its end without a rebuild."""

    def grow(self, rows: list[Any]) -> None:
        """``rows`` were appended to the list already."""
        if rows:
            self.insertRows(len(self.rows) - len(rows), len(rows))


class NewRows(QObject):
    """Announces rows that came at the top: in words for a while, and to a screen reader."""

    def __init__(self, view: RowView, noun: str, changed: Callable[[], None]) -> None:
        super().__init__(view)
        self._view, self._noun, self._changed = view, noun, changed
        self.words = ""
        self._quiet = once(self, NEWS_MS, lambda: self._set(""))

    def tell(self, number: int) -> None:
        """So many are new."""
        if number > 0:
            self._set(f"{number:,} new · ")
            self._quiet.start()
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self._view, plural(number, f"new {self._noun}")))

    def _set(self, words: str) -> None:
        self.words = words
        self._changed()


class PagedList(Ground):
    """``chosen`` with the current row or None; ``changed`` when counts did; ``failed`` with a ConsoleError."""

    chosen = Signal(object)
    changed = Signal()
    failed = Signal(object)

    def __init__(self, ask: Ask, cells: Sequence[Cell[Any]], wording: Wording, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._ask_page, self._wording = ask, wording
        self.book = Book()
        self.loaded = False
        self._serial = 0
        """Answers to an older question are dropped."""
        self._older_asked = self._newer_asked = False
        self._problem = ""
        self._wanted: int | None = None
        self._to_top = False
        self.is_asking = False
        """The first page of another question is on its way; what stands there answers the one before."""
        self.search = SearchField(wording.filtered, "/", parent=self, kept="filter")
        self.search.setMaximumWidth(300)
        self.newer = Button("0 new", "arrow", keys="Home", small=True, parent=self)
        self.newer.clicked.connect(self.to_newest)
        self.newer.hide()
        self.shown = Text("", 12, fonts.REGULAR, "text2", right=True)
        self.model = GrowingModel(cells, words_of(cells), self)
        self.view = ManyRowView(self.model, painter_of(cells), lambda row: str(row.seq), self, sorts=sorts_of(cells))
        self.view.setAccessibleName(f"{wording.title} {plural(2, wording.noun)[2:]}")
        self.view.order.keep("seq", wording.order, descending=True)
        self.empty = empty_note(self.view, wording.empty)
        title = Text(wording.title, 17, fonts.SEMIBOLD)
        column(bar(self, title, (self.search, 2), self.newer, STRETCH, self.shown), (self.view, 1), on=self)
        self._typed = once(self, TYPED_MS, self._filter)
        self._pace = once(self, NEWER_MS, self.read_newer)
        self._news = NewRows(self.view, wording.noun, self._say)
        self.search.textChanged.connect(lambda _text: self._typed.start())
        self.search.left.connect(self.view.setFocus)
        self.view.chosen.connect(self.chosen)
        self.view.verticalScrollBar().valueChanged.connect(lambda _value: self._scrolled())

    @property
    def is_following(self) -> bool:
        """The newest row is in sight."""
        at_top = self.view.verticalScrollBar().value() == 0
        return at_top and self._wanted is None and (not self.book.rows or self.book.seen >= self.book.newest or self.book.waiting < PAGE)

    # --- reading -----------------------------------------------------------------------------------------------------

    def read(self, query: str | None = None, *, to_top: bool = False) -> None:
        """The newest page, from nothing; ``query`` None keeps the filter; ``to_top`` selects the newest row."""
        self._wanted, self._to_top = None, to_top
        self._begin(self.book.query if query is None else query)
        self._ask(None, self._first_came)

    def go_to(self, seq: int) -> None:
        """Shows a row by its number, whatever filter hides it."""
        self.set_query_silently("")
        self._wanted = seq
        self._begin("")
        self._ask(seq + PAGE // 2, self._first_came)

    def set_query_silently(self, query: str) -> None:
        """Changes the field without reading."""
        self.search.blockSignals(True)
        self.search.setText(query)
        self.search.blockSignals(False)

    def know(self, newest: int) -> None:
        """How far the list goes now; reads on when the newest row is in sight."""
        self.book.know(newest, newest)
        if self.loaded and self.book.newest > self.book.seen and not self._pace.isActive() and self.is_following:
            self._pace.start()
        self._say()

    def to_newest(self) -> None:
        """Home: the newest row, and what waits."""
        if self._wanted is not None or self.book.waiting:
            self.read(to_top=True)
            return
        self.view.verticalScrollBar().setValue(0)
        if self.book.rows:
            self.view.choose(str(self.book.rows[0].seq))
        self._say()

    def _begin(self, query: str) -> None:
        self._serial += 1
        self._older_asked = self._newer_asked = False
        self.is_asking = True
        self.book.clear(query)
        self._say()

    def _ask(self, before: int | None, then: Callable[[RowsPage], None]) -> None:
        serial = self._serial
        asked = self._ask_page(before, PAGE, self.book.query).while_alive(self)
        asked.then(lambda page: then(page) if serial == self._serial else None)
        asked.failed(lambda error: self._refused(error) if serial == self._serial else None)

    def _refused(self, error: ConsoleError) -> None:
        self._older_asked = self._newer_asked = self.is_asking = False
        self._problem = str(error)
        self._say()
        self.failed.emit(error)

    def _first_came(self, page: RowsPage) -> None:
        self.loaded, self.is_asking, self._problem = True, False, ""
        self.book.know(page.newest, page.total)
        self.book.take_older(page.rows)
        if self._wanted is None:
            self.book.seen = page.newest
        self.view.verticalScrollBar().setValue(0)
        self.view.show_rows(self.book.rows)
        wanted = self._wanted
        if wanted is not None and not self.view.choose(str(wanted)):
            older = next((row for row in self.book.rows if row.seq < wanted), None)
            if older is not None:
                self.view.choose(str(older.seq))
        elif (self._to_top or self.view.current() is None) and self.book.rows:
            self.view.choose(str(self.book.rows[0].seq))
        self._say()
        self.changed.emit()

    def _scrolled(self) -> None:
        bar = self.view.verticalScrollBar()
        if bar.maximum() - bar.value() < 40 * ROW and not self.book.at_end and not self._older_asked and self.book.rows:
            self._older_asked = True
            self._ask(self.book.oldest(), self._older_came)
        if bar.value() == 0 and self.book.waiting:
            self.know(self.book.newest)
        self._say()

    def _older_came(self, page: RowsPage) -> None:
        self._older_asked = False
        self.book.know(page.newest, page.total)
        self.model.grow(self.book.take_older(page.rows))
        self._say()

    def read_newer(self, *, always: bool = False) -> None:
        """Read the newest page; a person who reads further down keeps the place. ``always``: also where that is so, to compare the list."""
        if (always or self.is_following) and not self._newer_asked:
            self._newer_asked = True
            self._ask(None, self._newer_came)

    def _newer_came(self, page: RowsPage) -> None:
        self._newer_asked, self._problem = False, ""
        if not self.book.is_of(page.rows, page.newest):
            self.book.newest = self.book.total = 0
            self.read()
            return
        if not self.is_following:
            self.book.know(page.newest, page.total)
        else:
            self._news.tell(page.newest - self.book.seen)
            self.book.take_newest(page.rows, page.newest)
            self.view.show_rows(self.book.rows)
        self._say()
        self.changed.emit()

    def _filter(self) -> None:
        self._typed.stop()
        text = self.search.text()
        if text != self.book.query or self._wanted is not None:
            self.read(text)

    # --- words -------------------------------------------------------------------------------------------------------

    def _say(self) -> None:
        book = self.book
        waiting = book.waiting
        self.newer.setText(f"{waiting:,} newer" if self._wanted is not None else f"{waiting:,} new")
        self.newer.setVisible(waiting > 0 and not self.is_following)
        more = "" if book.at_end else "+"
        found = f"{len(book.rows):,}{more} of {book.total:,}" if book.query else plural(book.total, self._wording.noun)
        is_asking = self.is_asking and not self._problem  # one that failed is asked again and again
        self.shown.setText("Reading…" if is_asking else f"{self._news.words}{found}" if self.loaded else "")
        words = self._wording.none if book.query else self._wording.empty
        say_empty(self.empty, self.view, words, self.loaded and not self._problem, self._problem)
        if is_asking:
            self.empty.hide()
