"""The allowlist as a table: how one entry is painted, what its cells say, and which entries a filter keeps."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor

from console.api.messages import AllowlistEntryView, MarkView
from console.gui.kit.table import matches
from console.gui.pages.network.draft import TLS_PORT
from console.gui.theme import fonts
from console.gui.widgets.facts import ChipSpec
from console.gui.widgets.marks import chip_width, draw_chip, draw_text
from console.gui.widgets.rows import Canvas, Column, Sorts, by_words
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.words import age, count, span

COLUMNS = (
    Column("host", "Host", share=8),
    Column("port", "Port", 52),
    Column("methods", "Methods", 86, hide_below=760),
    Column("paths", "Paths", share=4),
    Column("may", "Data allowed", 116, hide_below=620),
    Column("owner", "Owner", 84, hide_below=760),
    Column("reason", "Reason and warnings", share=7),
    Column("used", "Used", 58, right=True, hide_below=520),
    Column("hits", "Hits 7 d", 66, right=True, hide_below=480),
)
LEVELS = {"PUBLIC": "Public", "INTERNAL": "Internal", "CONFIDENTIAL": "Confidential", "SECRET": "Secret"}

SHORT = {
    "kill_file": "Kill file",
    "multi_tenant": "Multi-tenant host",
    "publishing": "Publishing host",
    "wide": "Too wide",
    "open_methods": "Any method",
    "overlap": "Superfluous",
    "unused": "Unused",
    "review_due": "Review",
    "private": "Private address",
    "secret": "May get SECRET",
}
"""Kind of a mark -> its word in the table."""


@dataclass(slots=True)
class EntryRow:
    """One entry as the table shows it."""

    view: AllowlistEntryView
    editing: bool = False

    @property
    def id(self) -> str:
        return self.view.entry_id


def methods_words(view: AllowlistEntryView) -> str:
    """``GET POST`` or ``any``."""
    return " ".join(view.methods) or "any"


def paths_words(view: AllowlistEntryView) -> str:
    """The path prefixes; on port 443 TLS is not opened, so no path can be judged."""
    if view.port == TLS_PORT:
        return "not decrypted"
    return " ".join(view.paths) or "any"


def cell_words(row: EntryRow, key: str) -> str:
    """What a cell says to a tooltip, a screen reader and the clipboard."""
    view = row.view
    match key:
        case "host":
            return f"{view.host}:{view.port} (entry {view.entry_id})"
        case "port":
            return str(view.port)
        case "methods":
            return methods_words(view)
        case "paths":
            if view.port == TLS_PORT and view.paths:
                return f"HTTPS is not decrypted, so only host and port are checked. Noted: {' '.join(view.paths)}"
            return paths_words(view)
        case "may":
            return f"Most sensitive data allowed: {LEVELS.get(view.may_receive, view.may_receive)}"
        case "owner":
            return view.owner
        case "used":
            return f"Last used {age(view.last_used, time.time())}"
        case "hits":
            return f"{view.hits_7d:,} requests in 7 days"
    extra = f" · private: {', '.join(view.private_networks)}" if view.private_networks else ""
    due = f" · review by {view.review_by}" if view.review_by else ""
    marks = f"{mark_words(view.marks)} · " if view.marks else ""
    return f"{marks}{view.reason}{extra}{due}"


_RISING = list(LEVELS)
SORTS: Sorts = {
    **by_words(cell_words, "host", "methods", "paths", "owner", "reason"),
    "port": lambda row: row.view.port,
    "may": lambda row: _RISING.index(row.view.may_receive) if row.view.may_receive in LEVELS else None,
    "used": lambda row: row.view.last_used,
    "hits": lambda row: row.view.hits_7d,
}


def chip_of(mark: MarkView) -> ChipSpec:
    """Red for a danger, amber for the rest; a kind this console does not know keeps its own name."""
    words = SHORT.get(mark.kind, mark.kind.replace("_", " "))
    return ChipSpec(words, "alert" if mark.danger else "warning", "danger" if mark.danger else "warn")


def first_chip(view: AllowlistEntryView) -> ChipSpec | None:
    """What the table shows: the worst mark, and how many more there are."""
    if not view.marks:
        return None
    worst = chip_of(sorted(view.marks, key=lambda mark: not mark.danger)[0])
    more = len(view.marks) - 1
    return ChipSpec(f"{worst.text} +{more}" if more else worst.text, worst.icon, worst.kind)


def mark_words(marks: Iterable[MarkView]) -> str:
    """All marks in words, for a tooltip and a screen reader."""
    return "; ".join(f"{'DANGER: ' if mark.danger else ''}{mark.words}" for mark in marks)


def keeps(view: AllowlistEntryView, text: str) -> bool:
    """Whether all typed words occur in the entry."""
    listed = (*view.methods, *view.paths, *view.private_networks)
    return matches(text, view.host, str(view.port), *listed, view.owner, view.reason, view.entry_id, mark_words(view.marks))


def paint_entry(canvas: Canvas, row: EntryRow) -> None:
    """One row."""
    view = row.view
    canvas.text("host", view.host, mono=True, size=13)
    canvas.text("port", str(view.port), "text2", mono=True)
    canvas.text("methods", methods_words(view), "text2", mono=True)
    quiet = view.port == TLS_PORT
    canvas.text("paths", paths_words(view), "text3" if quiet else "text2", mono=not quiet)
    _paint_pips(canvas, view.may_receive)
    canvas.text("owner", view.owner, "text2")
    _paint_reason(canvas, row)
    never = view.last_used is None
    canvas.text("used", "never" if never else span(time.time() - (view.last_used or 0)), "text3" if never else "text", right=True)
    canvas.text("hits", count(view.hits_7d), "text" if view.hits_7d else "text3", weight=fonts.MEDIUM, right=True)


def _paint_pips(canvas: Canvas, level: str) -> None:
    cell = canvas.cells.get("may")
    if cell is None:
        return
    filled = list(LEVELS).index(level) + 1 if level in LEVELS else 4
    for at in range(4):
        colour = canvas.ink.text2 if at < filled else canvas.ink.track
        canvas.painter.fillRect(QRectF(cell.x() + at * 4, cell.center().y() - 4, 3, 9), QColor(colour))
    box = cell.adjusted(21, 0, 8, 0)
    draw_text(canvas.painter, box, safe_text(LEVELS.get(level, level)), fonts.ui(12), canvas.ink.text2)


def _paint_reason(canvas: Canvas, row: EntryRow) -> None:
    cell = canvas.cells.get("reason")
    if cell is None:
        return
    left = 0.0
    if row.editing:
        left = chip_width("Editing", True) + 8
        draw_chip(canvas.painter, QRectF(cell.x(), cell.y() + 4.5, left - 8, 20), "Editing", "pencil", "accent", canvas.ink)
    mark = first_chip(row.view)
    if mark is not None:  # before the reason, which gives way to it
        wide = min(chip_width(safe_text(mark.text, 40), True), cell.width() - left)
        box = QRectF(cell.x() + left, cell.y() + 4.5, max(0.0, wide), 20)
        draw_chip(canvas.painter, box, safe_text(mark.text, 40), mark.icon, mark.kind, canvas.ink)
        left += wide + 8
    words = safe_text(row.view.reason)
    draw_text(canvas.painter, cell.adjusted(left, 0, 0, 0), words, fonts.ui(12), canvas.ink.text)
