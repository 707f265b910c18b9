"""Lines of the three lists: what waits (74 high), what was decided (30), what sessions were given (74)."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter

from console.api.policy.approvals import ApprovalRow, GrantRow
from console.gui.models.operators import person
from console.gui.pages.approvals.book import Item
from console.gui.pages.approvals.words import call_line, clock_words, end_words, is_late
from console.gui.theme import fonts
from console.gui.theme.icons import icon_pixmap
from console.gui.theme.tokens import Ink
from console.gui.widgets.marks import chip_width, draw_chip, draw_text
from console.gui.widgets.rows import Canvas, Column, Sorts, by_words
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.words import clock, day_clock, usd
from console.panic.marks import draw_mark

ITEM = 74
ITEM_COLUMNS = (Column("item", "Request"),)
DECIDED_COLUMNS = (Column("time", "Time", 86), Column("call", "Request"), Column("end", "Decision", 88))
_BAR = 58


def item_words(item: Item, _key: str) -> str:
    """An item to a tooltip, a screen reader and the clipboard."""
    row = item.first.row
    many = f", {len(item.entries)} {item.alike}" if item.is_group else ""
    end = item.first.gone or f"denied automatically at {clock(row.asked_at + row.ttl_s)}"
    return f"{_agent(row)}{many}: {call_line(row)}; {_context(row)}; {end}"


def decided_words(row: ApprovalRow, key: str) -> str:
    """A cell of what was decided."""
    if key == "time":
        return day_clock(row.decided_at or row.asked_at)
    return f"{_agent(row)}: {call_line(row)}" if key == "call" else f"{end_words(row)[0]} {person(row.decided_by)} {row.words}"


DECIDED_SORTS: Sorts = {**by_words(decided_words, "call", "end"), "time": lambda row: row.decided_at or row.asked_at}


def grant_words(row: GrantRow, _key: str) -> str:
    """A line of what a session was given."""
    return f"session {row.session}: {call_line(row)}, by {person(row.by)}, {day_clock(row.at)}"


def item_painter(now: Callable[[], float]) -> Callable[[Canvas, Item], None]:
    """``now``: the clock the book counts by."""

    def paint(canvas: Canvas, item: Item) -> None:
        _paint_item(canvas, item, now())

    return paint


def _agent(row: ApprovalRow) -> str:
    return row.agent_name or row.agent_id


def _context(row: ApprovalRow) -> str:
    parts = [row.root_name if row.root_id != row.agent_id else "", row.sensitivity.capitalize(), usd(row.cost_usd) if row.cost_usd else ""]
    return " · ".join(part for part in parts if part)


def _paint_item(canvas: Canvas, item: Item, at: float) -> None:
    painter, colours, box = canvas.painter, canvas.ink, canvas.box
    entry = min(item.live, key=lambda one: one.ends_at) if item.live else item.first
    row, gone = entry.row, not item.live
    x = box.x() + (34 if item.within else 14)
    quiet = colours.text2 if canvas.selected else colours.text3
    if item.within:
        painter.fillRect(QRectF(box.x() + 19, box.y(), 1, box.height()), QColor(colours.line2))
    mark, loud = (end_words(row)[1], quiet) if gone else ("diamond", colours.danger) if row.danger else ("triangle", colours.warn)
    draw_mark(painter, mark, QRectF(x, 14, 10, 10), loud)
    right = box.right() - 16
    left = entry.left(at)
    late = not gone and is_late(left, row.ttl_s)
    words = item.first.gone.split(" ", 1)[0].rstrip(":") if gone else entry.held or f"{clock_words(left)} left"
    face = fonts.ui(12, fonts.MEDIUM)
    room = min(fonts.metrics(face).horizontalAdvance(safe_text(words, 30)) + 4, 130)
    colour = quiet if gone else colours.warn if late else colours.text2
    draw_text(painter, QRectF(right - room, 9, room, 20), safe_text(words, 30), face, colour, right=True)
    _paint_name(canvas, item, QRectF(x + 19, 9, right - room - x - 27, 20), gone)
    called = QRectF(x + 19, 29, right - x - 19, 18)
    draw_text(painter, called, call_line(row), fonts.mono(12), quiet if gone else colours.text)
    draw_text(
        painter, QRectF(x + 19, 48, right - _BAR - x - 31, 16), safe_text(_context(row)), fonts.ui(11), quiet if gone else colours.text2
    )
    if not gone:
        _paint_time(painter, QRectF(right - _BAR, 55, _BAR, 3), left / max(1.0, row.ttl_s), late, colours)


def _paint_name(canvas: Canvas, item: Item, box: QRectF, gone: bool) -> None:
    painter, colours = canvas.painter, canvas.ink
    words = f"{len(item.entries)} {item.alike}" if item.is_group else ""
    wide = chip_width(words, True) if words else 0
    name, face = safe_text(_agent(item.first.row)), fonts.ui(13, fonts.MEDIUM)
    room = min(fonts.metrics(face).horizontalAdvance(name) + 3, box.width() - wide - 10)
    quiet = colours.text2 if canvas.selected else colours.text3
    draw_text(painter, QRectF(box.x(), box.y(), room, box.height()), name, face, quiet if gone else colours.text)
    if words:
        icon, kind = "down" if item.is_open else "list", "plain" if gone else "warn"
        draw_chip(painter, QRectF(box.x() + room + 8, box.y(), wide, 20), words, icon, kind, colours)


def _paint_time(painter: QPainter, box: QRectF, share: float, late: bool, colours: Ink) -> None:
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(colours.track))
    painter.drawRoundedRect(box, 1.5, 1.5)
    painter.setBrush(QColor(colours.warnfill if late else colours.bar))
    painter.drawRoundedRect(QRectF(box.x(), box.y(), max(3.0, box.width() * min(1.0, max(0.0, share))), box.height()), 1.5, 1.5)


def paint_decided(canvas: Canvas, row: ApprovalRow) -> None:
    """A line of what was decided."""
    canvas.text("time", clock(row.decided_at or row.asked_at), "text2", mono=True)
    canvas.text("call", call_line(row), "text", mono=True)
    word, shape, role = end_words(row)
    cell = canvas.cells.get("end")
    if cell is not None:
        draw_mark(canvas.painter, shape, QRectF(cell.x(), cell.center().y() - 5, 9, 9), getattr(canvas.ink, role))
        draw_text(canvas.painter, cell.adjusted(16, 0, 8, 0), word, fonts.ui(12), getattr(canvas.ink, role))


def paint_grant(canvas: Canvas, row: GrantRow) -> None:
    """A line of what a session was given."""
    painter, colours, box = canvas.painter, canvas.ink, canvas.box
    quiet = colours.text2 if canvas.selected else colours.text3
    painter.drawPixmap(QPointF(box.x() + 14, 13), icon_pixmap("check", colours.text2, 12))
    width = box.width() - 49
    draw_text(painter, QRectF(33, 9, width - 70, 20), safe_text(f"session {row.session}"), fonts.ui(13, fonts.MEDIUM), colours.text)
    draw_text(painter, QRectF(box.right() - 96, 9, 80, 20), clock(row.at), fonts.mono(11), colours.text2, right=True)
    draw_text(painter, QRectF(33, 29, width, 18), call_line(row), fonts.mono(12), colours.text)
    draw_text(painter, QRectF(33, 48, width, 16), safe_text(f"by {person(row.by)}, until it is taken back"), fonts.ui(11), quiet)
