"""The verdicts on one agent's calls, live: newest first, bounded; each leads to how it was judged, or to its audit record."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QWidget

from console.api import endpoints as ep
from console.api.agents.activity import ActivityEntryView, ActivityPage
from console.api.messages import Delta
from console.domain.errors import ConsoleError
from console.gui.kit.layout import STRETCH, column, row
from console.gui.pages.activity.book import Book, Item
from console.gui.pages.activity.rows import own_words
from console.gui.pages.interface import Desk
from console.gui.pages.policy.words import AskedCall, explain_argument
from console.gui.theme import fonts
from console.gui.timers import every, once
from console.gui.widgets.buttons import Button
from console.gui.widgets.marks import draw_text
from console.gui.widgets.rows import Canvas, Column, ManyRowView, RowModel
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.text import Text
from console.gui.widgets.words import clock
from console.panic.marks import draw_mark

READ = 200
KEPT = 500
SHOWN = 6
"""Rows in sight; the rest is scrolled to."""
HEIGHT = 38
POLL_MS = 2000
PACE_MS = 250
"""News are read at most four times a second."""
_VERDICTS = {"allow": ("Allowed", "check", "text2"), "ask": ("Asked", "triangle", "warn"), "deny": ("Denied", "ban", "danger")}
_UNKNOWN = ("Unknown", "triangle", "warn")
_KINDS = "tool_call,verdict"
_EMPTY = "No call of this agent was checked yet. Each checked call appears here with its result and the rule."
_UNJUDGED = "None of its last calls was checked here."
_READING = "Being read…"


def is_judged(item: Item) -> bool:
    """Whether a verdict on it is known: a program's own calls need not have one."""
    return item.row.kind == "verdict" or item.verdict is not None


def shape_of(item: Item) -> tuple[str, str, str]:
    """(word, shape, colour); what this console does not know is amber."""
    row = item.verdict or item.row
    return _VERDICTS.get(row.verdict, _UNKNOWN)


def call_words(item: Item) -> str:
    """The call in one line; of a verdict whose call is not in hand nothing."""
    return " ".join(part for part in (item.row.tool, " ".join(item.row.text[:600].split())) if part) if item.row.kind == "tool_call" else ""


def rule_words(item: Item) -> str:
    """The rule and why, as the verdict has it."""
    row = item.verdict or item.row
    return own_words(row) or row.who


def cell_words(item: Item, _key: str) -> str:
    """What a row says to a tooltip, a screen reader and the clipboard."""
    return f"{clock(item.row.at)} {shape_of(item)[0]}: {call_words(item)}; {rule_words(item)}"


def paint_verdict(canvas: Canvas, item: Item) -> None:
    """Two lines: verdict and call, time and rule."""
    word, mark, role = shape_of(item)
    cell, ink = canvas.cells["call"], canvas.ink
    x, y, width = 2.0, canvas.box.y(), cell.right() - 2
    loud = role in ("warn", "danger")
    face = fonts.ui(12, fonts.SEMIBOLD if loud else fonts.REGULAR)
    room = 64.0
    draw_mark(canvas.painter, mark, QRectF(x, y + 7, 9, 9), getattr(ink, role))
    draw_text(canvas.painter, QRectF(x + 16, y + 2, room, 18), word, face, getattr(ink, role if loud else "text"))
    left = x + 16 + room
    draw_text(canvas.painter, QRectF(left, y + 2, width - left, 18), safe_text(call_words(item), 200), fonts.mono(11), ink.text)
    draw_text(canvas.painter, QRectF(x + 16, y + 19, room, 16), clock(item.row.at), fonts.mono(10), ink.text2)
    draw_text(canvas.painter, QRectF(left, y + 19, width - left, 16), safe_text(rule_words(item), 200), fonts.ui(11), ink.text2)


class VerdictStream(QWidget):
    """Reads while it is in sight; an answer about another agent is none."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._desk = desk
        self.agent_id = ""
        self.loaded = False
        self.problem = ""
        self.book = Book()
        self._serial = 0
        self._asked = False
        self.words = Text("", 12, role="text2", wrap=True)
        self.model = RowModel((Column("call", "Judged call"),), cell_words, self)
        self.view = ManyRowView(self.model, paint_verdict, lambda item: item.key, self, row_height=HEIGHT)
        self.view.setHeaderHidden(True)
        self.view.setAccessibleName("Decisions on its calls, newest first")
        self.explain = Button("Explain", keys="Enter", small=True, parent=self)
        self.audit = Button("Audit record", small=True, parent=self)
        column(self.words, self.view, row(self.explain, self.audit, STRETCH, spacing=8), spacing=6, on=self)
        self.view.opened.connect(self.open)
        self.view.pressed_at.connect(self._pressed)
        self.view.chosen.connect(lambda _item: self._allow())
        self.explain.clicked.connect(lambda: self.open(self.view.current()))
        self.audit.clicked.connect(self._open_audit)
        self._poll = every(self, POLL_MS, self._newer)
        self._pace = once(self, PACE_MS, self._newer)
        self._show()

    def show_agent(self, agent_id: str) -> None:
        """Another agent's verdicts, from the newest."""
        if agent_id == self.agent_id:
            return
        self.agent_id = agent_id
        self._serial += 1
        self.book.clear()
        self.loaded, self._asked, self.problem = False, False, ""
        self._show()
        if self.isVisible():
            self._newer()

    def handle(self, delta: Delta) -> None:
        """The supervisor keeps new entries of some agents."""
        agents = delta.data.get("agents")
        about = (isinstance(agents, dict) and self.agent_id in agents) or delta.data.get("more") is True
        if about and self.isVisible() and not self._pace.isActive():
            self._pace.start()

    def why_not_explain(self, item: Item | None) -> str:
        """Empty when it can be judged once more: an own verdict, with its call in hand."""
        if item is None:
            return "No call is selected."
        if item.row.kind != "tool_call":
            return "Its call is not in hand any more."
        own = item.audit or any(verdict.who == "waits for approval" for verdict in item.verdicts)
        return "" if own else "The program itself decided it, not a rule of Watchfloor."

    def open(self, item: Item | None) -> None:
        """How it was judged; where that is not known, its record; else its place in the activity."""
        if item is None:
            return
        if not self.why_not_explain(item):
            asked = self._desk.requests.ask(ep.ACTIVITY_ENTRY, self.agent_id, item.row.seq).while_alive(self)
            asked.then(partial(self._entry_came, self.agent_id)).failed(self._desk.notices.fail)
        elif item.audit:
            self._desk.goto("audit", f"#{item.audit}")
        else:
            self._desk.goto("activity", self.agent_id)

    def _entry_came(self, agent_id: str, view: ActivityEntryView) -> None:
        row = view.row
        if row.left_out:
            self._desk.notices.say("info", "Not all of this call is stored, so it cannot be checked again.")
        elif agent_id == self.agent_id:
            self._desk.goto("policy", explain_argument(AskedCall(row.tool, row.text, agent_id, row.ref)))

    def _open_audit(self) -> None:
        item = self.view.current()
        if item is not None and item.audit:
            self._desk.goto("audit", f"#{item.audit}")

    def _pressed(self, item: Item, _at: QPointF) -> None:
        self._allow()

    # --- reading -----------------------------------------------------------------------------------------------------

    def _newer(self) -> None:
        if not self.agent_id or self._asked:
            return
        self._asked = True
        serial, first = self._serial, not self.loaded
        after = None if first else self.book.newest
        asked = self._desk.requests.ask(ep.ACTIVITY, self.agent_id, after=after, limit=READ, kind=_KINDS).while_alive(self)
        asked.then(lambda page: self._came(page, first) if serial == self._serial else None)
        asked.failed(lambda error: self._failed(error) if serial == self._serial else None)

    def _came(self, page: ActivityPage, first: bool) -> None:
        self._asked, self.problem = False, ""
        if first:
            found, _ = self.book.older(page.rows, at_start=page.at_start)
            self.loaded = True
            self.book.newest = max(self.book.newest, page.newest)
        else:
            found = self.book.newer(page.rows)
            is_whole = len(page.rows) < READ and not page.searched_to
            last = page.rows[-1].seq if page.rows else 0
            self.book.newest = max(self.book.newest, page.newest if is_whole else max(last, page.searched_to))
            if not is_whole:
                self._pace.start()
        if first or page.rows:
            self.book.items.extend(found)
            if (many := len(self.book.items) - KEPT) > 0:
                del self.book.items[:many]
                self.book.forget(many)
            self._show()

    def _failed(self, error: ConsoleError) -> None:
        self._asked = False
        self.problem = f"Not known: {error}"
        self._show()

    def _show(self) -> None:
        rows = [item for item in reversed(self.book.items) if is_judged(item)]
        self.view.show_rows(rows)
        self.view.refresh()
        self.view.setFixedHeight(min(SHOWN, len(rows)) * HEIGHT)
        self.view.setVisible(bool(rows))
        self.explain.setVisible(bool(rows))
        self.audit.setVisible(bool(rows))
        nothing = _READING if not self.loaded else _UNJUDGED if self.book.items else _EMPTY
        self.words.say(self.problem or nothing, "warn" if self.problem else "text2", "triangle" if self.problem else "")
        self.words.setVisible(bool(self.problem or not rows))
        self._allow()

    def _allow(self) -> None:
        item = self.view.current()
        self.explain.allow(self.why_not_explain(item))
        self.audit.allow("" if item is not None and item.audit else "No audit record is behind it." if item else "No call is selected.")

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._newer()
        self._poll.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._poll.stop()
