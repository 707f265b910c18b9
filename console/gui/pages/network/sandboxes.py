"""The sandboxes: every living agent with its kind, its mode, whether that is enforced, why it is in it and since when."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QPointF, QRectF, Signal
from PySide6.QtWidgets import QWidget

from console.gui.kit.layout import column
from console.gui.kit.table import is_in, paint_shape
from console.gui.models.fleet import Fleet, Row, view_mode
from console.gui.models.modes import SEVERITY, asked_mode, is_open, network_chip
from console.gui.models.operators import person
from console.gui.theme import fonts
from console.gui.widgets.marks import chip_width, draw_chip
from console.gui.widgets.reading import empty_note
from console.gui.widgets.rows import Canvas, Column, RowModel, RowView
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.words import day_clock, span

COLUMNS = (
    Column("agent", "Agent", share=4),
    Column("session", "Session", share=3, hide_below=640),
    Column("sandbox", "Sandbox", 92, hide_below=700),
    Column("mode", "Mode", 104),
    Column("holds", "Enforced", 124),
    Column("why", "Why this mode", share=6),
    Column("since", "Since", 68, right=True, hide_below=620),
    Column("act", "", 84, hide_below=580),
)
EMPTY = "No agent lives. Every agent that is started appears here, with what it may reach and why."
ACT = "Stricter…"
_SORTS: dict[str, Callable[[Row], Any]] = {
    "agent": lambda row: row.name.lower(),
    "session": lambda row: row.view.session,
    "sandbox": lambda row: row.view.sandbox,
    "mode": lambda row: SEVERITY.get(view_mode(row.view), 0),
    "holds": lambda row: is_open(row.view),
    "why": lambda row: why_words(row),
    "since": lambda row: since(row),
}


def since(row: Row) -> float:
    """Since when it is in its mode; a supervisor of the version before did not say."""
    return row.view.network_since or row.view.started_at


def holds(row: Row) -> tuple[str, str, str]:
    """(word, shape, colour): whether something enforces its mode."""
    if is_open(row.view):
        return "Not enforced", "triangle", "warn"
    return ("Not restricted", "ring", "text2") if asked_mode(row.view) == "FULL" else ("Enforced", "check", "text2")


def why_words(row: Row) -> str:
    """Why it is in its mode; where that is not enforceable here, because of what."""
    view = row.view
    if is_open(view):
        because = view.network_note or "nothing holds it"
        why = f" ({person(view.network_why)})" if view.network_why else ""
        return f"{asked_mode(view)} is not enforceable here, because {because}{why}"
    return person(view.network_why) or "not known"


def cell_words(row: Row, key: str) -> str:
    """What a cell says to a tooltip, a screen reader and the clipboard."""
    view = row.view
    match key:
        case "agent":
            return f"{row.name} ({view.id}), {view.control_level}"
        case "session":
            return f"{view.session}, {view.sensitivity}"
        case "sandbox":
            return view.sandbox
        case "mode":
            return network_chip(view, long=True).text
        case "holds":
            return holds(row)[0]
        case "why":
            return why_words(row)
        case "since":
            return f"since {day_clock(since(row))}"
    return why_not_stricter(row) or "Switch its session to a stricter mode…"


def why_not_stricter(row: Row) -> str:
    """What is plain without asking; the supervisor's dry run has the last word."""
    if row.view.control_level == "observed":
        return "It is only observed: nothing here can restrict it."
    if row.view.isolated:
        return ""
    return "It has no network: there is nothing stricter." if asked_mode(row.view) == "NONE" and row.view.network_enforced else ""


def why_not_data(row: Row) -> str:
    """Private data may also enter a session without network: its sensitivity rises all the same."""
    return "It is only observed: nothing here can restrict it." if row.view.control_level == "observed" else ""


def matches(row: Row, text: str) -> bool:
    """Whether all typed words occur in it."""
    words = text.lower().split()
    if not words:
        return True
    view = row.view
    haystack = f"{row.haystack}\0{view.sandbox}\0{asked_mode(view)}\0{holds(row)[0]}\0{why_words(row)}\0{view.sensitivity}".lower()
    return all(word in haystack for word in words)


def paint_sandbox(canvas: Canvas, row: Row) -> None:
    """One row."""
    view = row.view
    canvas.text("agent", row.name, weight=fonts.MEDIUM)
    canvas.text("session", view.session or "—", "text2", mono=True)
    canvas.text("sandbox", view.sandbox, "text2")
    cell = canvas.cells["mode"]
    chip = network_chip(view)
    words = safe_text(chip.text, 40)
    box = QRectF(cell.x(), cell.y() + 4.5, min(chip_width(words, True), cell.width()), 20)
    draw_chip(canvas.painter, box, words, chip.icon, chip.kind, canvas.ink)
    paint_shape(canvas, "holds", holds(row))
    canvas.text("why", why_words(row), "warn" if holds(row)[2] == "warn" else "text")
    canvas.text("since", span(time.time() - since(row)), "text2", right=True)
    if not why_not_stricter(row):
        canvas.text("act", ACT, "accent", weight=fonts.MEDIUM, right=True)


class SandboxList(QWidget):
    """``asked`` carries the row a stricter mode is wanted for."""

    asked = Signal(object)

    def __init__(self, fleet: Fleet, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._fleet = fleet
        self.text = ""
        self.total = 0
        self.model = RowModel(COLUMNS, cell_words, self)
        self.view = RowView(self.model, paint_sandbox, lambda row: str(row.id), self, sorts=_SORTS)
        self.view.setAccessibleName("Sandboxes")
        self.empty = empty_note(self.view, EMPTY)
        self.view.opened.connect(self.asked)
        self.view.pressed_at.connect(self._pressed)
        self.view.order.changed.connect(lambda: self.arrange(self.text))
        column(self.view, on=self)

    def arrange(self, text: str) -> None:
        """Reads the fleet again; the selected row stays selected."""
        self.text = text
        live = [row for row in self._fleet.rows.values() if row.is_live]
        self.total = len(live)
        rows = [row for row in live if matches(row, text)] if text else live
        ordered, shown = self.view.order.arrange(rows), self.model.rows
        if len(rows) != len(shown) or any(a is not b for a, b in zip(ordered, shown, strict=True)):
            self.view.show_rows(ordered, rows)
        else:
            self.view.refresh()
        if self.view.current() is None and rows:
            self.view.choose(self.model.rows[0].id)
        self.empty.setText("No sandboxes match the filter." if live else EMPTY)
        self.empty.setVisible(self._fleet.loaded and not rows)

    def why_not(self, killed: bool, refusal: Callable[[Row], str] = why_not_stricter) -> str:
        """Empty when a stricter mode can be asked for of the selected row, or what ``refusal`` judges."""
        row = self.view.current()
        if row is None:
            return "No sandbox is selected."
        return "Killed: nothing changes until you rearm." if killed else refusal(row)

    def _pressed(self, row: Row, at: QPointF) -> None:
        if is_in(self.view, "act", at):
            self.asked.emit(row)
