"""One entry as a row of two lines: who or what, what about, what came of it; time at the left, money at the right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import time as now

from PySide6.QtCore import QPointF, QRectF

from console.api.agents.activity import ActivityRow
from console.domain.amounts import fine_usd
from console.gui.models.operators import person
from console.gui.pages.activity.book import Item
from console.gui.theme import fonts
from console.gui.theme.icons import icon_pixmap
from console.gui.widgets.marks import draw_text
from console.gui.widgets.rows import Canvas, Column
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.words import clock, count, day_clock, recent_clock

HEIGHT = 46
COLUMNS = (Column("time", "Time", 104), Column("what", "What it did"), Column("spend", "Spend", 104, right=True))
_LEAD = 26
_MAIN = ("command", "cmd", "file_path", "notebook_path", "path", "pattern", "url", "query", "description", "prompt")
_FILES = {"create": "Created", "edit": "Edited", "delete": "Deleted", "write": "Wrote"}
_VERDICTS = {"allow": ("Allowed", "check", "text2"), "deny": ("Denied", "ban", "danger"), "ask": ("Asked", "warning", "warn")}
_TOOL_ICONS = (
    ("bash", "terminal"),
    ("exec", "terminal"),
    ("command", "terminal"),
    ("http", "network"),
    ("web", "network"),
    ("file", "file"),
)


@dataclass(frozen=True, slots=True)
class Lines:
    """What a row says, safe to show."""

    icon: str
    icon_role: str
    title: str
    foreign: bool
    """The title is an agent's word, not ours."""
    main: str
    main_role: str
    mono: bool
    second: str
    second_role: str


def lines_of(item: Item) -> Lines:
    """Made once for each item and state."""
    if not isinstance(item.lines, Lines):
        item.lines = _lines(item)
    return item.lines


def money(row: ActivityRow) -> str:
    """``$0.0101``; without a price the word for that, never $0."""
    if row.kind != "spend":
        return ""
    if row.cost_usd is None:
        return "unpriced"
    return fine_usd(row.cost_usd)


def turn_words(cost: float, unpriced: int) -> str:
    """The sum of a turn."""
    return fine_usd(cost) + (" + ?" if unpriced else "")


def words_of(item: Item, key: str) -> str:
    """What a cell says to a tooltip, a screen reader and the clipboard."""
    if key == "time":
        return f"{day_clock(item.row.at)}{clock(item.row.at)[5:]}"
    if key == "spend":
        return money(item.row)
    said = lines_of(item)
    return " · ".join(w for w in (said.title, said.main, said.second) if w)


def painter_of(turn_of: Callable[[Item], str]) -> Callable[[Canvas, Item], None]:
    """The row painter; ``turn_of`` gives the sum of the turn that begins here, or nothing."""
    return lambda canvas, item: _paint(canvas, item, turn_of(item))


def _paint(canvas: Canvas, item: Item, turn: str) -> None:
    said, ink, top = lines_of(item), canvas.ink, canvas.box.y()
    time, cell = canvas.cells["time"], canvas.cells["what"]
    upper = top + (5 if said.second else 13)
    draw_text(canvas.painter, QRectF(time.x(), upper + 1, time.width(), 17), recent_clock(item.row.at, now()), fonts.mono(11), ink.text2)
    canvas.painter.drawPixmap(QPointF(cell.x(), upper + 2), icon_pixmap(said.icon, getattr(ink, said.icon_role), 14))
    x, width = cell.x() + _LEAD, cell.width() - _LEAD
    # Words of ours are in the interface's face; what an agent chose to call something never is.
    face = fonts.mono(12, fonts.MEDIUM) if said.foreign else fonts.ui(12, fonts.SEMIBOLD)
    room = min(width * 0.4, fonts.metrics(face).horizontalAdvance(said.title) + 10) if said.title else 0
    role = said.icon_role if said.icon_role in ("danger", "warn") else "text"
    draw_text(canvas.painter, QRectF(x, upper, room - 6, 19), said.title, face, getattr(ink, role))
    main = fonts.mono(12) if said.mono else fonts.ui(13)
    draw_text(canvas.painter, QRectF(x + room, upper, width - room, 19), said.main, main, getattr(ink, said.main_role))
    draw_text(canvas.painter, QRectF(x, top + 24, width, 17), said.second, fonts.ui(12), getattr(ink, said.second_role))
    if "spend" in canvas.cells:
        _paint_spend(canvas, item.row, turn)


def _paint_spend(canvas: Canvas, row: ActivityRow, turn: str) -> None:
    cell, ink = canvas.cells["spend"], canvas.ink
    upper, lower = (turn, f"turn {row.turn:,}") if turn else (money(row), f"{count(row.tokens)} tok" if row.tokens else "")
    role = "warn" if upper == "unpriced" or upper.endswith("?") else "text"
    face = fonts.ui(12, fonts.MEDIUM if turn else fonts.REGULAR)
    draw_text(canvas.painter, QRectF(cell.x(), cell.y() + 6, cell.width(), 17), upper, face, getattr(ink, role), right=True)
    draw_text(canvas.painter, QRectF(cell.x(), cell.y() + 24, cell.width(), 16), lower, fonts.ui(11), ink.text2, right=True)


def _lines(item: Item) -> Lines:
    row = item.row
    match row.kind:
        case "tool_call":
            return _call(item)
        case "message" | "thinking":
            return _said(row)
        case "file":
            title = _FILES.get(row.tool, "File")
            put_back = "restorable" if row.rollback_id else ""
            return _make("file", "text2", title, row.ref, _join(put_back, row.text), mono=True)
        case "spawn":
            return _make("fleet", "accent", "Started", row.text or row.ref, f"agent {row.ref}" if row.text else "", main_role="accent")
        case "spend":
            return _make("budgets", "text3", "Answer", row.tool or row.who, row.text, main_role="text2")
        case "verdict":
            word, icon, role = _VERDICTS.get(row.verdict, ("Decided", "shield", "text2"))
            return _make(icon, role, word, row.tool or own_words(row), _join(own_words(row) if row.tool else "", row.who))
        case "tool_result":
            return _make("alert" if row.failed else "right", "danger" if row.failed else "text2", "Result", *_first(row.text), mono=True)
        case "error":
            return _make("alert", "danger", "Error", *_first(row.text), main_role="danger")
    if row.who.startswith("operator:") and row.audit:  # from our own record: an agent's word for it would have none
        return _operator(row)
    icon, who = "network" if row.tool == "network" else "info", _who(row.who)
    return _make(icon, "text3", who, *_first(row.text), main_role="text2", foreign=who == row.who != "")


def own_words(row: ActivityRow) -> str:
    """Return an entry's text, with operators by name where it is our own record: in an agent's text a number stays as it was written."""
    return person(row.text) if row.audit else row.text


def _call(item: Item) -> Lines:
    row, tool, verdict, result = item.row, item.row.tool, item.verdict, item.result
    icon = next((icon for part, icon in _TOOL_ICONS if part in tool.lower()), "right")
    first, rest = _first(row.text)
    key, colon, value = first.partition(": ")
    main = value if colon and key in _MAIN else first
    word, mark, role = _VERDICTS.get(verdict.verdict, ("", "", "text2")) if verdict is not None else ("", "", "text2")
    second = [word, own_words(verdict)] if verdict is not None and word and word != "Allowed" else []
    if result is not None:
        second += ["failed" if result.failed else "", _first(result.text)[0] or "no output"]
    elif word == "Allowed":
        second = [word]
    if result is not None and result.failed and role != "danger":
        icon, role = "alert", "danger"
    elif role != "text2":
        icon = mark
    return _make(icon, role, tool or "Call", main, _join(*second) or rest, mono=True, second_role=role, foreign=bool(tool))


def _said(row: ActivityRow) -> Lines:
    first, rest = _first(row.text)
    if row.kind == "thinking":
        return _make("eye", "text3", "Thinks", first, rest, main_role="text2")
    if row.who.startswith("user"):
        return _make("user", "accent", "User", first, rest)
    return _make("fleet", "text2", _who(row.who), first, rest, foreign=_who(row.who) == row.who != "")


def _operator(row: ActivityRow) -> Lines:
    """What a person did, as they would say it; the record's own words stand in the detail."""
    who = person(row.who)
    kind, _, rest = row.text.partition(": ")
    if kind == "agent.message":
        return _make("user", "accent", who, *_first(f"wrote: {rest.partition(': ')[2]}"))
    if kind == "agent.interrupt":
        return _make("user", "accent", who, "interrupted its turn")
    return _make("user", "accent", who, *_first(own_words(row)))


def _who(who: str) -> str:
    return {"assistant": "Agent", "agent": "Agent", "watchfloor": "Watchfloor", "program": "Program", "network": "Network"}.get(
        who, who
    ) or "Note"


def _first(text: str) -> tuple[str, str]:
    """(the first line that says something, what follows)."""
    lines = [line for line in text[:600].split("\n") if line.strip()]
    return (lines[0], "  ".join(lines[1:])) if lines else ("", "")


def _join(*parts: str) -> str:
    return " · ".join(part for part in parts if part)


def _make(
    icon: str,
    icon_role: str,
    title: str,
    main: str,
    second: str = "",
    *,
    main_role: str = "text",
    mono: bool = False,
    second_role: str = "text2",
    foreign: bool = False,
) -> Lines:
    return Lines(icon, icon_role, safe_text(title, 60), foreign, safe_text(main, 300), main_role, mono, safe_text(second, 300), second_role)
