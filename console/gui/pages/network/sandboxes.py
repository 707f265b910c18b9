"""The sandboxes: every living agent with its kind, its mode, whether that is enforced, why it is in it and since when."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QPointF, QRectF, Signal
from PySide6.QtWidgets import QWidget

from console.gui.kit.layout import column
from console.gui.kit.table import Cell, Shape, is_in, listing
from console.gui.models.fleet import Fleet, Row, view_mode
from console.gui.models.modes import SEVERITY, asked_mode, is_open, network_chip
from console.gui.models.operators import person
from console.gui.theme import fonts
from console.gui.widgets.marks import chip_width, draw_chip
from console.gui.widgets.reading import empty_note, say_empty
from console.gui.widgets.rows import Canvas, RowView
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.words import day_clock, span

EMPTY = "No agent runs. Every agent that is started appears here, with what it may reach and why."
ACT = "Stricter…"


def since(row: Row) -> float:
    """Since when it is in its mode; a supervisor of the version before did not say."""
    return row.view.network_since or row.view.started_at


def holds(row: Row) -> Shape:
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


def _paint_mode(canvas: Canvas, row: Row) -> None:
    cell, chip = canvas.cells["mode"], network_chip(row.view)
    words = safe_text(chip.text, 40)
    box = QRectF(cell.x(), cell.y() + 4.5, min(chip_width(words, True), cell.width()), 20)
    draw_chip(canvas.painter, box, words, chip.icon, chip.kind, canvas.ink)


COLUMNS: tuple[Cell[Row], ...] = (
    Cell(
        "agent",
        "Agent",
        share=4,
        words=lambda row: f"{row.name} ({row.view.id}), {row.view.control_level}",
        text=lambda row: row.name,
        weight=fonts.MEDIUM,
        sort=lambda row: row.name.lower(),
    ),
    Cell(
        "session",
        "Session",
        share=3,
        hide_below=760,
        words=lambda row: f"{row.view.session}, {row.view.sensitivity}",
        text=lambda row: row.view.session or "—",
        role="text2",
        mono=True,
        sort=lambda row: row.view.session,
    ),
    Cell("sandbox", "Sandbox", 92, hide_below=700, words=lambda row: row.view.sandbox, role="text2", sort=lambda row: row.view.sandbox),
    Cell(
        "mode",
        "Mode",
        104,
        words=lambda row: network_chip(row.view, long=True).text,
        paint=_paint_mode,
        sort=lambda row: SEVERITY.get(view_mode(row.view), 0),
    ),
    Cell("holds", "Enforced", 124, words=lambda row: holds(row)[0], shape=holds, sort=lambda row: is_open(row.view)),
    Cell("why", "Why this mode", share=6, words=why_words, role=lambda row: "warn" if is_open(row.view) else "text", sort=why_words),
    Cell(
        "since",
        "Since",
        76,
        right=True,
        hide_below=620,
        words=lambda row: f"since {day_clock(since(row))}",
        text=lambda row: span(time.time() - since(row)),
        role="text2",
        sort=since,
    ),
    Cell(
        "act",
        "",
        84,
        right=True,
        hide_below=580,
        words=lambda row: why_not_stricter(row) or "Switch its session to a stricter mode…",
        text=lambda row: "" if why_not_stricter(row) else ACT,
        role="accent",
        weight=fonts.MEDIUM,
    ),
)


class SandboxList(QWidget):
    """``asked`` carries the row a stricter mode is wanted for."""

    asked = Signal(object)

    def __init__(self, fleet: Fleet, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._fleet = fleet
        self.text = self.problem = ""
        self.total = 0
        self.view = listing("Sandboxes", COLUMNS, lambda row: str(row.id), self, RowView)
        self.model = self.view.row_model
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
        say_empty(self.empty, self.view, "No sandboxes match the filter." if live else EMPTY, self._fleet.loaded, self.problem)

    def why_not(self, killed: bool, refusal: Callable[[Row], str] = why_not_stricter) -> str:
        """Empty when a stricter mode can be asked for of the selected row, or what ``refusal`` judges."""
        row = self.view.current()
        if row is None:
            return "No sandbox is selected."
        return "Killed: nothing changes until you rearm." if killed else refusal(row)

    def _pressed(self, row: Row, at: QPointF) -> None:
        if is_in(self.view, "act", at):
            self.asked.emit(row)
