"""The list of the Budgets page: trees with those that end before them, projects and sessions, or days; arranged, painted, in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor

from console.api.budgets import BudgetRow, BudgetsView, TreeBudget
from console.gui.pages.budgets.words import bar_share, burn_words, ends_words, is_unpriced, spent_words, unpriced_words, whole_usd
from console.gui.theme import fonts
from console.gui.theme.icons import icon_pixmap
from console.gui.widgets.marks import chip_width, draw_chip, draw_gauge, draw_sparkline, draw_text, share_colours
from console.gui.widgets.rows import Canvas, Column, Sorts
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.words import cap_usd, plural, share_words, usd
from console.panic.marks import draw_mark
from console.wording.limits import label

Order = Literal["time", "spend", "project", "day"]
ORDERS: dict[str, str] = {"time": "By time left", "spend": "By spend", "project": "By project", "day": "By day"}
TITLES = {"time": "Tree", "spend": "Tree", "project": "Project or session", "day": "Day"}
COLUMNS = (
    Column("who", "Tree", least=150),
    Column("ends", "Ends in", 153, least=153),
    Column("first", "First limit", 101, hide_below=760),
    Column("spent", "Spent", 222, least=222),
    Column("burn", "Burn", 72, right=True, hide_below=640),
    Column("hour", "Burn 60 min", 120, hide_below=860, least=106),
)
_UNPRICED = "unpriced"


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the list: a node, a caption between groups, or how many more there are. ``row`` None: words alone."""

    row: BudgetRow | None
    words: str = ""
    below: bool = False
    """An agent that ends before the tree above it."""
    folds: bool = False
    is_open: bool = True
    parent: str = ""

    @property
    def key(self) -> str:
        return f"{self.row.scope}:{self.row.key}" if self.row is not None else f"words:{self.parent}:{self.words}"

    @property
    def name(self) -> str:
        row = self.row
        return self.words if row is None else row.name or row.key


def arrange(view: BudgetsView, order: str, text: str, closed: set[str]) -> list[Line]:
    """The lines of an order that hold all typed words. Trees come sorted; a folded one keeps its head."""
    words = text.lower().split()
    if order == "project":
        projects = [Line(r) for r in view.projects if _holds(r, words)]
        sessions = [Line(r) for r in view.sessions if _holds(r, words)]
        return [*_captioned("Projects", projects), *_captioned("Sessions", sessions)]
    if order == "day":
        return [Line(r) for r in view.days if _holds(r, words)]
    lines: list[Line] = []
    for tree in view.trees:
        lines.extend(_tree_lines(tree, words, closed))
    if view.more_trees:
        more = plural(view.more_trees, "more tree")
        lines.append(Line(None, f"{more}, not searched" if words else f"{more} that {_end(view.more_trees)} later or spent less"))
    return lines


def _end(number: int) -> str:
    return "ends" if number == 1 else "end"


def _captioned(title: str, lines: list[Line]) -> list[Line]:
    return [Line(None, title, parent="caption"), *lines] if lines else []


def _tree_lines(tree: TreeBudget, words: list[str], closed: set[str]) -> list[Line]:
    whole = _holds(tree.tree, words)
    first = [r for r in tree.first if whole or _holds(r, words)]
    if not whole and not first:
        return []
    is_open = bool(words) or tree.tree.key not in closed
    lines = [Line(tree.tree, folds=bool(tree.first), is_open=is_open)]
    if is_open:
        lines.extend(Line(r, below=True, parent=tree.tree.key) for r in first)
        if tree.more and whole:
            more = f"{plural(tree.more, 'more agent')} that {_end(tree.more)} before it"
            lines.append(Line(None, more, below=True, parent=tree.tree.key))
    return lines


def _holds(row: BudgetRow, words: list[str]) -> bool:
    if not words:
        return True
    more = unpriced_words(row)
    hay = f"{row.name}\0{row.key}\0{label(row.first_limit)}\0{row.state}\0{ends_words(row)[0]}\0{row.note}\0{row.metered}\0{more}".lower()
    return all(word in hay for word in words)


def counted(view: BudgetsView, order: str, lines: Iterable[Line]) -> str:
    """``7 trees · 3 agents that end first``."""
    if order == "project":
        return f"{plural(len(view.projects), 'project')} · {plural(len(view.sessions), 'session')}"
    if order == "day":
        return plural(len(view.days), "day")
    shown = [line for line in lines if line.row is not None]
    below = sum(line.below for line in shown)
    trees = len(shown) - below
    words = plural(trees + view.more_trees, "tree")
    return f"{words} · {plural(below, 'agent')} that {_end(below)} first" if below and not view.more_trees else words


def has_limits(view: BudgetsView) -> bool:
    """Whether anything that is shown has a limit at all."""
    if view.totals.day_cap_usd is not None:
        return True
    rows = [*view.projects, *view.sessions, *view.days, *(r for t in view.trees for r in (t.tree, *t.first))]
    return any(r.first_limit for r in rows)


def cell_words(line: Line, key: str) -> str:
    """What a cell says to a tooltip, a screen reader and the clipboard."""
    row = line.row
    if row is None:
        return line.words if key == "who" else ""
    if key == "who":
        return ", ".join(p for p in (line.name, row.key if row.key != line.name else "", unpriced_words(row), row.note) if p)
    if key == "ends":
        return f"{ends_words(row)[0]}{', ' + row.why if row.why else ''}"
    if key == "first":
        return label(row.first_limit) if row.first_limit else "—"
    if key == "spent":
        cap = f" of {cap_usd(row.cap_usd)}" if row.cap_usd is not None else ", no limit on cost"
        more = ", and what has no price" if is_unpriced(row) else ""
        return f"{share_words(row.share)} of the nearest limit; {spent_words(row)}{cap}{more}"
    if key == "burn":
        return burn_words(row) if row.burn_usd_per_h is not None else "not known"
    return f"highest minute {usd(max(row.burn_60))}" if row.burn_60 else "nothing in the last hour"


def _figure(of: Callable[[BudgetRow], Any]) -> Callable[[Line], Any]:
    """A figure of a node; captions and what is not known have none."""
    return lambda line: None if line.row is None else of(line.row)


SORTS: Sorts = {
    "who": lambda line: None if line.row is None else line.name.lower(),
    "ends": _figure(lambda row: None if row.done else row.ends_in_s),
    "first": _figure(lambda row: label(row.first_limit) if row.first_limit else None),
    "spent": _figure(lambda row: row.spent_usd),
    "burn": _figure(lambda row: row.burn_usd_per_h),
    "hour": _figure(lambda row: sum(row.burn_60)),
}


def depth(line: Line) -> int:
    """Under a caption, or under a tree."""
    return 0 if line.parent == "caption" else 2 if line.below else 1


def paint_line(canvas: Canvas, line: Line) -> None:
    """One row."""
    if line.row is None:
        _paint_words(canvas, line)
        return
    row = line.row
    _paint_who(canvas, line, row)
    _paint_ends(canvas, row)
    quiet = "text3" if row.done else "text2"
    canvas.text("first", label(row.first_limit) if row.first_limit and not row.done else "—", quiet)
    _paint_spent(canvas, row)
    burn = burn_words(row)
    canvas.text("burn", burn, "text3" if burn == "—" else "text2", right=True)
    _paint_hour(canvas, row)


def _paint_words(canvas: Canvas, line: Line) -> None:
    ink, box = canvas.ink, canvas.box
    caption = line.parent == "caption"
    face = fonts.ui(11, fonts.SEMIBOLD if caption else fonts.REGULAR)
    left = 50.0 if line.below else 16.0
    draw_text(canvas.painter, QRectF(left, 0, box.width() - left - 16, box.height()), safe_text(line.words), face, ink.text2)


def _paint_who(canvas: Canvas, line: Line, row: BudgetRow) -> None:
    painter, ink = canvas.painter, canvas.ink
    cell = canvas.cells["who"]
    if line.folds:
        painter.drawPixmap(QPointF(16, canvas.box.center().y() - 6.5), icon_pixmap("down" if line.is_open else "right", ink.text2, 12))
    if line.below:
        painter.fillRect(QRectF(22, 0, 1, canvas.box.height()), QColor(ink.line2))
    left = 50.0 if line.below else 33.0
    chip = chip_width(_UNPRICED, True) if is_unpriced(row) else 0
    name = safe_text(line.name)
    face = fonts.ui(12, fonts.REGULAR if row.done else fonts.MEDIUM)
    room = max(20.0, cell.right() - left - (chip + 10 if chip else 0))
    draw_text(painter, QRectF(left, cell.y(), room, cell.height()), name, face, _quiet(canvas) if row.done else ink.text)
    if chip:
        at = left + min(room, fonts.metrics(face).horizontalAdvance(name)) + 10
        draw_chip(painter, QRectF(at, cell.center().y() - 10, chip, 20), _UNPRICED, "alert", "warn", ink)


def _quiet(canvas: Canvas) -> str:
    return canvas.ink.text2 if canvas.selected else canvas.ink.text3


def _paint_ends(canvas: Canvas, row: BudgetRow) -> None:
    cell = canvas.cells["ends"]
    painter, ink = canvas.painter, canvas.ink
    words, shape, role = ends_words(row)
    colour = _quiet(canvas) if role == "text3" else getattr(ink, role)
    if shape:
        draw_mark(painter, shape, QRectF(cell.x() + 1, cell.center().y() - 4.5, 9, 9), colour)
    loud = role in ("danger", "warn")
    timed = not row.done and row.ends_in_s is not None and row.ends_in_s > 0
    room = 77.0 if timed else cell.width() - 17
    draw_text(
        painter, QRectF(cell.x() + 17, cell.y(), room, cell.height()), words, fonts.ui(12, fonts.SEMIBOLD if loud else fonts.MEDIUM), colour
    )
    if timed and row.ends_in_s is not None:
        track = QRectF(cell.x() + 95, cell.center().y() - 1.5, 44, 3)
        painter.fillRect(track, QColor(ink.track))
        fill = {"danger": ink.dangerfill, "warn": ink.warnfill}.get(role, ink.bar)
        painter.fillRect(QRectF(track.x(), track.y(), track.width() * bar_share(row.ends_in_s), 3), QColor(fill))


def _paint_spent(canvas: Canvas, row: BudgetRow) -> None:
    cell = canvas.cells["spent"]
    painter, ink = canvas.painter, canvas.ink
    quiet = row.done and row.level != "over"
    x, y, height = cell.x(), cell.y(), cell.height()
    if row.first_limit or row.share > 0:
        bar = QRectF(x, cell.center().y() - 3, 54, 6)
        if quiet:
            _paint_plain_bar(canvas, bar, row.share)
        else:
            draw_gauge(painter, bar, row.share, ink)
        colour = _quiet(canvas) if quiet else share_colours(row.share, ink)[1]
        face = fonts.ui(12, fonts.SEMIBOLD if row.share >= 0.75 and not quiet else fonts.REGULAR)
        draw_text(painter, QRectF(x + 57, y, 45, height), share_words(row.share), face, colour, right=True)
    money = _quiet(canvas) if quiet else ink.text
    draw_text(painter, QRectF(x + 103, y, 62, height), spent_words(row), fonts.ui(12, fonts.MEDIUM), money, right=True)
    if row.cap_usd is not None:
        words = f"of {whole_usd(row.cap_usd)}"
        draw_text(painter, QRectF(x + 169, y, 50, height), words, fonts.ui(12), _quiet(canvas) if quiet else ink.text2)


def _paint_plain_bar(canvas: Canvas, bar: QRectF, share: float) -> None:
    """What is over is quiet: no colour, no hatching."""
    painter = canvas.painter
    used = min(1.0, max(0.0, share)) if math.isfinite(share) else 1.0
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(canvas.ink.track))
    painter.drawRoundedRect(bar, 3, 3)
    if used > 0:
        painter.setBrush(QColor(canvas.ink.bar))
        painter.drawRoundedRect(QRectF(bar.x(), bar.y(), max(6.0, bar.width() * used), bar.height()), 3, 3)


def _paint_hour(canvas: Canvas, row: BudgetRow) -> None:
    cell = canvas.cells.get("hour")
    if cell is None:
        return
    ink = canvas.ink
    urgent = not row.done and (row.level == "over" or (row.ends_in_s is not None and row.ends_in_s < 300))
    line, fill = (ink.danger, ink.dangerbg) if urgent else (ink.bar, ink.track)
    if any(v > 0 for v in row.burn_60):
        draw_sparkline(canvas.painter, QRectF(cell.x() + 4, cell.y() + 8, 88, cell.height() - 16), row.burn_60, line, fill)
