"""The feed: reads pages as they are needed, follows the newest while it is in sight, searches on the supervisor's side."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from console.api import endpoints as ep
from console.api.agents.activity import ActivityPage
from console.domain.errors import ConsoleError
from console.gui.kit.layout import STRETCH, bar, column
from console.gui.pages.activity.book import PAGE, Book, Item
from console.gui.pages.activity.rows import COLUMNS, HEIGHT, painter_of, turn_words, words_of
from console.gui.requests import Requests
from console.gui.timers import once
from console.gui.widgets.buttons import Button, Pills, SearchField
from console.gui.widgets.reading import empty_note
from console.gui.widgets.rows import ManyRowView, RowModel
from console.gui.widgets.side_pane import Ground
from console.gui.widgets.text import Text
from console.gui.widgets.words import plural

TYPED_MS = 200
NEWER_MS = 200
"""New entries are read at most five times a second."""
_AHEAD = 40
"""Rows from the upper end at which older ones are asked for."""
KINDS = {
    "": "All",
    "message,thinking": "Messages",
    "tool_call,tool_result,verdict": "Tools",
    "file": "Files",
    "spawn": "Children",
    "spend": "Spend",
    "error": "Errors",
}
_EMPTY = (
    "No activity of this agent yet. Its messages and thoughts, its tool calls with their results, and the cost of each answer appear here "
    "as they happen. So do the agents that it starts and the files that it touches."
)
_NONE = "No entry of this agent matches."
_READING = "Reading…"
_NO_AGENT = "No agent is selected. Choose one on the Fleet page, and press A there. The Backspace key leads to the fleet."


class FeedModel(RowModel):
    """A list that grows and shrinks at its ends without a rebuild."""

    def append(self, items: list[Item]) -> None:
        """Below."""
        if items:
            first = len(self.rows)
            self.rows.extend(items)
            self.insertRows(first, len(items))

    def prepend(self, items: list[Item]) -> None:
        """Above."""
        if items:
            self.rows[:0] = items
            self.insertRows(0, len(items))

    def drop(self, first: int, many: int) -> None:
        """Takes rows away."""
        if many > 0:
            del self.rows[first : first + many]
            self.removeRows(first, many)


class Feed(Ground):
    """``chosen`` with the current Item or None; ``changed`` when counts or words did."""

    chosen = Signal(object)
    changed = Signal()

    def __init__(self, requests: Requests, failed: Callable[[ConsoleError], object], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._requests, self._failed_door = requests, failed
        self.book = Book()
        self.agent_id = ""
        self.page: ActivityPage | None = None
        """The last answer: counts, and where the feed comes from."""
        self.problem = ""
        self.loaded = False
        self.following = True
        self.waiting = 0
        """Entries that came since the person scrolled up."""
        self._serial = 0
        self._searched_to = 0
        self._older_asked = self._newer_asked = self._quiet = False
        self._build()
        self._typed = once(self, TYPED_MS, self._filter)
        self._pace = once(self, NEWER_MS, self._read_newer)
        self.search.textChanged.connect(lambda _text: self._typed.start())
        self.search.left.connect(self.view.setFocus)
        self.kinds.changed.connect(lambda _kind: self.read())
        self.view.chosen.connect(self.chosen)
        self.view.verticalScrollBar().valueChanged.connect(lambda _value: self._scrolled())
        self.view.verticalScrollBar().rangeChanged.connect(lambda _low, _high: self._keep_at_end())
        self._say()

    def _build(self) -> None:
        self.search = SearchField("Search this feed", "/", parent=self, kept="filter")
        self.search.setMaximumWidth(280)
        self.search.setMinimumWidth(120)
        self.kinds = Pills(KINDS, self, kept="tab")
        self.newer = Button("0 new", "down", keys="End", small=True, parent=self)
        self.newer.clicked.connect(self.to_newest)
        self.newer.hide()
        self.shown = Text("", 12, role="text2", right=True)
        self.model = FeedModel(COLUMNS, words_of, self)
        self.view = ManyRowView(self.model, painter_of(self._turn_of), lambda item: item.key, self, row_height=HEIGHT)
        self.view.setAccessibleName("Activity")
        self.view.order.keep("time", "The newest entry comes last, as in a conversation.")
        self.empty = empty_note(self.view, _EMPTY)
        column(bar(self, (self.search, 2), self.kinds, STRETCH, self.newer, self.shown), (self.view, 1), on=self)

    # --- reading -----------------------------------------------------------------------------------------------------

    def show_agent(self, agent_id: str) -> None:
        """Another agent's feed, from its newest entry; the same one's stays where it is read."""
        if agent_id == self.agent_id and self.loaded and not self.problem:
            return
        self.agent_id = agent_id
        self.search.blockSignals(True)
        self.search.clear()
        self.search.blockSignals(False)
        self.read()

    def read(self) -> None:
        """The newest page of what is asked for, from nothing."""
        self._typed.stop()
        self._serial += 1
        self.book.clear()
        self.model.replace([])
        self.book.items = self.model.rows
        self.loaded, self.problem, self.following, self.waiting, self._searched_to = False, "", True, 0, 0
        self._older_asked = self._newer_asked = False
        self._say()
        if self.agent_id:
            self._ask(self._first_came)

    def told(self, newest: int, added: int) -> None:
        """The supervisor keeps entries of this agent that are not here yet."""
        if not self.loaded or newest <= self.book.newest:
            return
        if self.following:
            if not self._pace.isActive():
                self._pace.start()
        else:
            self.waiting += added
            self._say()

    def to_newest(self) -> None:
        """End: the newest entry, and what waits."""
        self.following = True
        if self.waiting:
            self._read_newer()
        self.waiting = 0
        self.view.scrollToBottom()
        if self.model.rows:
            self.view.choose(self.model.rows[-1].key, scroll=False)
        self._say()

    def _ask(self, then: Callable[[ActivityPage], None], *, before: int | None = None, after: int | None = None) -> None:
        serial, query = self._serial, self.search.text().strip()
        asked = self._requests.ask(ep.ACTIVITY, self.agent_id, before=before, after=after, limit=PAGE, q=query, kind=self.kinds.chosen())
        asked.while_alive(self)
        asked.then(lambda page: then(page) if serial == self._serial else None)
        asked.failed(lambda error: self._failed(error) if serial == self._serial else None)

    def _failed(self, error: ConsoleError) -> None:
        self._older_asked = self._newer_asked = False
        self.problem = str(error)
        self._say()
        self._failed_door(error)

    def _first_came(self, page: ActivityPage) -> None:
        self._older_came(page)
        self.loaded = True
        self.book.newest = max(self.book.newest, page.newest)
        self._to_end()
        if self.model.rows and self.view.current() is None:
            self.view.choose(self.model.rows[-1].key, scroll=False)
        self._say()

    def _older_came(self, page: ActivityPage) -> None:
        self._older_asked = False
        self.page, self.problem = page, ""
        found, adopted = self.book.older(page.rows, at_start=page.at_start)
        bar = self.view.verticalScrollBar()
        place, self._quiet = bar.value(), True
        for item in adopted:
            self.model.drop(self.model.rows.index(item), 1)
        self.model.prepend(found)
        if self.loaded and not self.following:
            bar.setValue(place + HEIGHT * (len(found) - len(adopted)))
        self._quiet = False
        self._searched_to = page.searched_to
        if page.searched_to and len(self.model.rows) < PAGE:
            self._ask(self._older_came, before=page.searched_to)
        self.view.refresh()
        self._say()
        self.changed.emit()

    def _read_newer(self) -> None:
        if not self._newer_asked and self.agent_id:
            self._newer_asked = True
            self._ask(self._newer_came, after=self.book.newest)

    def _newer_came(self, page: ActivityPage) -> None:
        self._newer_asked = False
        self.page, self.problem = page, ""
        last = page.rows[-1].seq if page.rows else 0
        self.model.append(self.book.newer(page.rows))
        is_whole = len(page.rows) < PAGE and not page.searched_to
        self.book.newest = max(self.book.newest, page.newest if is_whole else max(last, page.searched_to))
        if self.following and (many := self.book.trimmed()):
            self.model.drop(0, many)
            self.book.forget(many)
        if not is_whole:
            self._read_newer()
        self._keep_at_end()
        self.view.refresh()
        self._say()
        self.changed.emit()

    # --- place -------------------------------------------------------------------------------------------------------

    def _scrolled(self) -> None:
        if self._quiet:
            return
        bar = self.view.verticalScrollBar()
        at_end = bar.maximum() - bar.value() < HEIGHT
        if at_end and not self.following:
            self.following = True
            if self.waiting:
                self.waiting = 0
                self._read_newer()
        elif not at_end and self.loaded:
            self.following = False
        if bar.value() < _AHEAD * HEIGHT and self.loaded and not self.book.at_start and not self._older_asked and self.model.rows:
            self._older_asked = True
            self._ask(self._older_came, before=self._searched_to or self.book.oldest)
        self._say()

    def _keep_at_end(self) -> None:
        if self.following:
            self._to_end()

    def _to_end(self) -> None:
        self._quiet = True
        bar = self.view.verticalScrollBar()
        bar.setValue(bar.maximum())
        self._quiet = False

    def _filter(self) -> None:
        self._typed.stop()
        self.read()

    # --- words -------------------------------------------------------------------------------------------------------

    def _turn_of(self, item: Item) -> str:
        row = item.row
        known = self.book.turns.get(row.turn) if row.kind == "message" and row.who == "user" and row.turn else None
        return turn_words(*known) if known is not None else ""

    def _say(self) -> None:
        is_asked = bool(self.search.text().strip() or self.kinds.chosen())
        self.newer.setText(f"{self.waiting:,} new" if self.waiting else "Newest")
        self.newer.setVisible(self.loaded and not self.following)
        page = self.page
        if page is not None:
            more = "" if self.book.at_start else "+"
            found = f"{len(self.model.rows):,}{more} of {page.count:,}" if is_asked else plural(page.count, "entry", "entries")
            self.shown.setText(found if self.loaded else _READING)
        why_empty = _READING if not self.loaded else _NONE if is_asked else _EMPTY
        self.empty.setText(self.problem or (why_empty if self.agent_id else _NO_AGENT))
        self.empty.setVisible(not self.model.rows)
