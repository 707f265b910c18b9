"""How one row of the fleet is painted and what its cells say."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from time import time

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor

from console.api.messages import AgentView
from console.gui.models.modes import is_open, network_chip
from console.gui.models.operators import person
from console.gui.models.row import OVER, Row, is_exposed, view_mode
from console.gui.pages.budgets.reasons import plain_reason
from console.gui.pages.fleet.words import ALIVE, NO_LIMIT, has_limit, is_unmeasured, state_words
from console.gui.theme import fonts
from console.gui.theme.icons import icon_pixmap
from console.gui.widgets.facts import ChipSpec
from console.gui.widgets.marks import (
    chip_width,
    draw_chip,
    draw_gauge,
    draw_sparkline,
    draw_text,
    faint,
    pen_colour,
    share_colours,
)
from console.gui.widgets.rows import Canvas, Column
from console.gui.widgets.words import share_words, span, usd
from console.panic.marks import draw_mark

COLUMNS = (
    Column("agent", "Agent", share=4, least=150),
    Column("state", "State", 112),
    Column("depth", "Depth", 50, hide_below=700, least=50),
    Column("network", "Network", 104, least=72),
    Column("budget", "Budget", 168, least=168),
    Column("burn", "Burn 5 min", 82, hide_below=860),
    Column("runtime", "Runtime", 88, hide_below=800),
    Column("action", "Last action", share=3),
)
INDENT = 18
_BESIDE_LEAST = 40.0
"""Pixels below which the name stands alone."""
MAX_INDENT = 6
"""Deeper rows are drawn at this level, so that a hostile depth cannot push the name away."""


@dataclass(frozen=True, slots=True)
class Mood:
    """What holds for every row: a kill is latched (what still lives is amber), or the news is old (nothing is green)."""

    killed: bool = False
    stale: bool = False


def cell_words(row: Row, key: str) -> str:
    """What a cell says to a tooltip, a screen reader and the clipboard."""
    view = row.view
    match key:
        case "agent":
            more = (f"child of {row.child_of}" if row.child_of else "", rules_note(row))
            return ", ".join(filter(None, (f"{row.name} ({view.id})", view.control_level, *more)))
        case "state":
            return f"{state_words(view)[0]}. {plain_reason(view.state_reason)}" if view.state_reason else state_words(view)[0]
        case "depth":
            return f"Depth {view.depth} of 3"
        case "network":
            cut = f" by {person(view.isolated)}" if view.isolated else ""
            return f"{network_chip(view, long=True).text}{cut}. {view.network_note}".strip(" .")
        case "budget":
            near = f"{_percent(view)} of the nearest limit" if has_limit(view) else NO_LIMIT
            return f"{near}, {usd(view.cost_usd)}"
        case "burn":
            return "unknown" if view.cost_usd is None and not view.burn_usd_per_h else f"{usd(view.burn_usd_per_h)}/h"
        case "runtime":
            return runtime(row)
    if is_exposed(view):
        return f"{exposed_words(view)}. Last action: {plain_reason(row.action)}"
    return f"isolated by {person(view.isolated)}. Last action: {plain_reason(row.action)}" if view.isolated else plain_reason(row.action)


def exposed_words(view: AgentView) -> str:
    """``SECRET data, network FULL``: the alarm that stands on the row."""
    return f"{view.sensitivity} data, network {'not enforced' if is_open(view) else 'FULL'}"


def runtime(row: Row) -> str:
    """Since its start, or from start to end."""
    return span((row.view.ended_at or time()) - row.view.started_at)


def chevron_box(row: Row, y: float) -> QRectF:
    """Where a click folds or unfolds."""
    return QRectF(10 + INDENT * min(row.indent, MAX_INDENT), y, 20, 30)


def row_sign(row: Row, mood: Mood = Mood()) -> Hashable:
    """Everything ``paint_row`` reads, as a value: a row is painted again when it differs."""
    view = row.view
    return (
        row.name, row.indent, row.child_of, row.kids, row.is_open, row.is_live, row.action, view.state, state_words(view), view.depth,
        network_chip(view), is_exposed(view), rules_note(row), view.isolated, view.budget_share, has_limit(view), view.cost_usd,
        tuple(view.burn), runtime(row), mood,
    )  # fmt: skip


def paint_row(canvas: Canvas, row: Row, mood: Mood = Mood()) -> None:
    """The whole row."""
    quiet = row.view.state in OVER and row.view.state != "failed"  # how it ended is still read
    unconfirmed = row.view.state == "alive_after_kill"
    alive = unconfirmed or (mood.killed and row.is_live)
    words = ALIVE if alive and not unconfirmed else state_words(row.view)
    chip, depth, lasted = network_chip(row.view), row.view.depth, runtime(row)
    cells = canvas.cells
    _paint_name(canvas, row, quiet, alive)
    canvas.shared(
        cells["state"].adjusted(0, 0, 8, 0), ("state", words, quiet, mood.stale), lambda on: _paint_state(on, quiet, words, mood.stale)
    )
    if "depth" in cells:
        canvas.shared(cells["depth"].adjusted(0, 0, 6, 0), ("depth", depth), lambda on: _paint_depth(on, depth))
    gone = not row.is_live  # it reaches nothing any more; the mode that it had stays, in grey
    canvas.shared(cells["network"], ("network", chip, gone), lambda on: _paint_network(on, chip, gone))
    _paint_budget(canvas, row, quiet)
    if "burn" in canvas.cells:
        box = canvas.cells["burn"].adjusted(0, 8, -8, -8)
        line = canvas.ink.danger if row.view.state == "over_budget" else canvas.ink.bar
        draw_sparkline(canvas.painter, box, row.view.burn, line, faint(line))
    if "runtime" in cells:
        role = "text3" if quiet else "text"
        canvas.shared(cells["runtime"], ("runtime", lasted, role), lambda on: on.text("runtime", lasted, role))
    if row.view.isolated and row.is_live:
        cut = view_mode(row.view) != "FULL"
        canvas.text("action", f"{'' if cut else 'NOT cut: '}by {person(row.view.isolated)}", "accent" if cut else "warn")
    elif is_exposed(row.view):
        canvas.text("action", exposed_words(row.view), "warn")
    else:
        canvas.text("action", plain_reason(row.action), "warn" if row.view.state == "needs_ok" else "text2")


def _paint_name(canvas: Canvas, row: Row, quiet: bool, alive: bool) -> None:
    cell = canvas.cells["agent"]
    level = min(row.indent, MAX_INDENT)
    painter = canvas.painter
    if level:
        painter.setPen(pen_colour(canvas.ink.line2))
    for at in range(level):
        x = cell.x() + 8.5 + INDENT * at
        painter.drawLine(QPointF(x, canvas.box.y()), QPointF(x, canvas.box.bottom() - 1))
    left = cell.x() + INDENT * level
    if row.kids:
        name = "down" if row.is_open else "right"
        painter.drawPixmap(QPointF(left, cell.y() + 9), icon_pixmap(name, canvas.ink.text2, 12))
    role = "text3" if quiet and not canvas.selected else "text2" if quiet else "text"
    weight = fonts.SEMIBOLD if alive else fonts.MEDIUM if not level else fonts.REGULAR
    box = QRectF(left + 18, cell.y(), max(0, cell.right() - left - 18), cell.height())
    font = fonts.ui(12, weight)
    draw_text(painter, box, row.name, font, getattr(canvas.ink, role))
    if beside := beside_name(row):
        box.setLeft(box.left() + fonts.metrics(font).horizontalAdvance(row.name) + 8)
        if box.width() > _BESIDE_LEAST:
            draw_text(painter, box, beside, fonts.ui(11), canvas.ink.warn if rules_note(row) else canvas.ink.text3)


def rules_note(row: Row) -> str:
    """That its rules are all that bounds a living agent, or that they block nothing; amber."""
    return row.view.profile_note if row.is_live else ""


def beside_name(row: Row) -> str:
    """What stands beside a name: whose child it is where it does not stand below it, that it was not started here, and its rules' note."""
    child = f"child of {row.child_of}" if row.child_of else ""
    return " · ".join(filter(None, (child, "observed" if row.view.control_level == "observed" else "", rules_note(row))))


def _paint_state(canvas: Canvas, quiet: bool, words: tuple[str, str, str], stale: bool) -> None:
    word, shape, role = words
    if stale and role == "ok":
        shape, role = "ring", "text3"
    cell = canvas.cells["state"]
    draw_mark(canvas.painter, shape, QRectF(cell.x() + 2, cell.center().y() - 4, 9, 9), getattr(canvas.ink, role))
    strong = role in ("warn", "danger")
    colour = getattr(canvas.ink, role) if strong else canvas.ink.text2 if quiet else canvas.ink.text
    draw_text(canvas.painter, cell.adjusted(19, 0, 8, 0), word, fonts.ui(12, fonts.SEMIBOLD if strong else fonts.REGULAR), colour)


def _paint_depth(canvas: Canvas, depth: int) -> None:
    cell = canvas.cells["depth"]
    for at in range(3):
        colour = canvas.ink.text2 if at < depth else canvas.ink.track
        canvas.painter.fillRect(QRectF(cell.x() + 2 + at * 6, cell.center().y() - 4, 4, 9), QColor(colour))
    draw_text(canvas.painter, cell.adjusted(27, 0, 6, 0), str(depth), fonts.ui(12), canvas.ink.text2)


def _paint_network(canvas: Canvas, chip: ChipSpec, quiet: bool) -> None:
    cell = canvas.cells["network"]
    if chip.text == "None" or quiet:
        colour = canvas.ink.text3 if quiet else canvas.ink.text2
        canvas.painter.drawPixmap(QPointF(cell.x() + 7, cell.y() + 8), icon_pixmap(chip.icon, colour, 12))
        draw_text(canvas.painter, cell.adjusted(23, 0, 0, 0), chip.text, fonts.ui(11, fonts.MEDIUM), colour)
        return
    width = min(chip_width(chip.text, True), cell.width())
    draw_chip(canvas.painter, QRectF(cell.x(), cell.y() + 4.5, width, 20), chip.text, chip.icon, chip.kind, canvas.ink)


def _paint_budget(canvas: Canvas, row: Row, quiet: bool) -> None:
    cell = canvas.cells["budget"]
    share = row.view.budget_share
    if not has_limit(row.view):
        canvas.shared(cell.adjusted(0, 0, -67, 0), ("share", NO_LIMIT), lambda on: on.text("budget", NO_LIMIT, "text2"))
        _paint_cost(canvas, row, quiet)
        return
    _, colour = share_colours(share, canvas.ink)
    if share < 0.75:
        colour = canvas.ink.text
    box, words = QRectF(cell.x() + 60, cell.y(), 41, cell.height()), _percent(row.view)
    canvas.shared(box, ("share", words, colour), lambda on: _paint_share(on, box, words, colour))
    if words != "?":
        draw_gauge(canvas.painter, QRectF(cell.x(), cell.center().y() - 3, 54, 6), share, canvas.ink)
    _paint_cost(canvas, row, quiet)


def _paint_cost(canvas: Canvas, row: Row, quiet: bool) -> None:
    cell = canvas.cells["budget"]
    money = canvas.ink.text2 if quiet else canvas.ink.text
    weight = fonts.SEMIBOLD if row.view.state == "alive_after_kill" else fonts.MEDIUM
    draw_text(
        canvas.painter, QRectF(cell.x() + 98, cell.y(), 60, cell.height()), usd(row.view.cost_usd), fonts.ui(12, weight), money, right=True
    )


def _paint_share(canvas: Canvas, box: QRectF, words: str, colour: str) -> None:
    draw_text(canvas.painter, box, words, fonts.ui(12), colour, right=True)


def _percent(view: AgentView) -> str:
    return "?" if is_unmeasured(view) else share_words(view.budget_share)
