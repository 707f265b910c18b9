"""The table of records: reads pages as they are needed, lets new ones wait while a person reads, filters on the supervisor's side."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from console.api import endpoints as ep
from console.api.records import AuditPage, AuditRow
from console.domain.errors import ConsoleError
from console.gui.pages.audit.book import PAGE, Book
from console.gui.pages.audit.rows import COLUMNS, cell_words, painter_of
from console.gui.requests import Requests
from console.gui.theme import fonts
from console.gui.theme.tokens import FILTER_BAR, ROW
from console.gui.timers import once
from console.gui.widgets.buttons import Button, SearchField
from console.gui.widgets.reading import empty_note
from console.gui.widgets.rows import ManyRowView, RowModel, RowView
from console.gui.widgets.side_pane import Ground
from console.gui.widgets.text import Text
from console.gui.widgets.words import plural

TYPED_MS = 200
NEWS_MS = 5_000
"""How long new rows are announced beside the count."""
NEWER_MS = 500
"""New records are read at most twice a second."""
_EMPTY = (
    "No record yet. Every launch, decision, change and kill is written here before it takes effect. "
    "Each record holds the hash of the one before."
)
_NONE = "No records match the filter."


class LogModel(RowModel):
    """A list that can grow at its end without a rebuild."""

    def grow(self, rows: list[AuditRow]) -> None:
        """``rows`` were appended to the list already."""
        if not rows:
            return
        self.insertRows(len(self.rows) - len(rows), len(rows))


class NewRows(QObject):
    """Announces rows that came at the top: in words for a while, and to a screen reader."""

    def __init__(self, view: RowView, changed: Callable[[], None]) -> None:
        super().__init__(view)
        self._view, self._changed = view, changed
        self.words = ""
        self._quiet = once(self, NEWS_MS, lambda: self._set(""))

    def tell(self, number: int) -> None:
        """So many are new."""
        if number > 0:
            self._set(f"{number:,} new · ")
            self._quiet.start()
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self._view, plural(number, "new audit record")))

    def _set(self, words: str) -> None:
        self.words = words
        self._changed()


class Log(Ground):
    """``chosen`` with the current record or None; ``changed`` when counts did; ``failed`` in the supervisor's words."""

    chosen = Signal(object)
    changed = Signal()

    def __init__(
        self,
        requests: Requests,
        name_of: Callable[[str], str],
        failed: Callable[[ConsoleError], object],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._requests, self._failed_door = requests, failed
        self.book = Book()
        self.loaded = False
        self._serial = 0
        """Answers to an older question are dropped."""
        self._older_asked = self._newer_asked = False
        self._wanted: int | None = None
        self._to_top = False
        self.is_asking = False
        """The first page of another question is on its way; what stands there answers the one before."""
        self.bar = QWidget(self)
        self.bar.setFixedHeight(FILTER_BAR)
        row = QHBoxLayout(self.bar)
        row.setContentsMargins(16, 0, 16, 0)
        row.setSpacing(10)
        row.addWidget(Text("Audit", 17, fonts.SEMIBOLD))
        self.search = SearchField("Actor, kind, what or agent", "/", parent=self.bar)
        self.search.setMaximumWidth(300)
        row.addWidget(self.search, 2)
        self.newer = Button("0 new", "arrow", keys="Home", small=True, parent=self.bar)
        self.newer.clicked.connect(self.to_newest)
        self.newer.hide()
        row.addWidget(self.newer)
        row.addStretch(1)
        self.shown = Text("", 12, fonts.REGULAR, "text2", right=True)
        row.addWidget(self.shown)
        self.model = LogModel(COLUMNS, cell_words, self)
        self.view = ManyRowView(self.model, painter_of(name_of), lambda record: str(record.seq), self)
        self.view.setAccessibleName("Audit records")
        self.view.order.keep("seq", "The newest record comes first: each one holds the hash of the one before.", descending=True)
        self.empty = empty_note(self.view, _EMPTY)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.bar)
        column.addWidget(self.view, 1)
        self._typed = once(self, TYPED_MS, self._filter)
        self._pace = once(self, NEWER_MS, self._read_newer)
        self._news = NewRows(self.view, self._say)
        self.search.textChanged.connect(lambda _text: self._typed.start())
        self.search.left.connect(self.view.setFocus)
        self.view.chosen.connect(self.chosen)
        self.view.verticalScrollBar().valueChanged.connect(lambda _value: self._scrolled())

    @property
    def is_following(self) -> bool:
        """The newest record is in sight."""
        at_top = self.view.verticalScrollBar().value() == 0
        return at_top and self._wanted is None and (not self.book.rows or self.book.seen >= self.book.newest or self.book.waiting < PAGE)

    # --- reading -----------------------------------------------------------------------------------------------------

    def read(self, query: str | None = None, *, to_top: bool = False) -> None:
        """The newest page, from nothing; ``query`` None keeps the filter; ``to_top`` selects the newest record."""
        self._wanted, self._to_top = None, to_top
        self._begin(self.book.query if query is None else query)
        self._ask(None, self._first_came)

    def go_to(self, seq: int) -> None:
        """Shows a record by its number, whatever filter hides it."""
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
        """How far the log goes now; reads on when the newest record is in sight."""
        self.book.know(newest, newest)
        if self.loaded and self.book.newest > self.book.seen and not self._pace.isActive() and self.is_following:
            self._pace.start()
        self._say()

    def to_newest(self) -> None:
        """Home: the newest record, and what waits."""
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

    def _ask(self, before: int | None, then: Callable[[AuditPage], None]) -> None:
        serial = self._serial
        asked = self._requests.ask(ep.AUDIT, before=before, limit=PAGE, q=self.book.query).while_alive(self)
        asked.then(lambda page: then(page) if serial == self._serial else None)
        asked.failed(lambda error: self._failed(error) if serial == self._serial else None)

    def _failed(self, error: ConsoleError) -> None:
        self._older_asked = self._newer_asked = self.is_asking = False
        self._failed_door(error)

    def _first_came(self, page: AuditPage) -> None:
        self.loaded, self.is_asking = True, False
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

    def _older_came(self, page: AuditPage) -> None:
        self._older_asked = False
        self.book.know(page.newest, page.total)
        self.model.grow(self.book.take_older(page.rows))
        self._say()

    def _read_newer(self) -> None:
        if self.is_following and not self._newer_asked:
            self._newer_asked = True
            self._ask(None, self._newer_came)

    def _newer_came(self, page: AuditPage) -> None:
        self._newer_asked = False
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
        found = f"{len(book.rows):,}{more} of {book.total:,}" if book.query else f"{book.total:,} records"
        self.shown.setText("Reading…" if self.is_asking else f"{self._news.words}{found}")
        self.empty.setText(_NONE if book.query else _EMPTY)
        self.empty.setVisible(self.loaded and not self.is_asking and not book.rows)
