"""The allowlist as a table: how one entry is painted, what its cells say, and which entries a filter keeps."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor

from console.api.messages import AllowlistEntryView, MarkView
from console.gui.kit.table import Cell, matches
from console.gui.pages.network.draft import TLS_PORT
from console.gui.theme import fonts
from console.gui.widgets.facts import ChipSpec
from console.gui.widgets.marks import chip_width, draw_chip, draw_text
from console.gui.widgets.rows import Canvas
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.words import age, count, span

LEVELS = {"PUBLIC": "Public", "INTERNAL": "Internal", "CONFIDENTIAL": "Confidential", "SECRET": "Secret"}

SHORT = {
    "kill_file": "Kill file",
    "multi_tenant": "Multi-tenant host",
    "publishing": "Publishing host",
    "wide": "Too wide",
    "lookalike": "Look-alike name",
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


def _paths_in_full(row: EntryRow) -> str:
    view = row.view
    if view.port == TLS_PORT and view.paths:
        return f"HTTPS is not decrypted, so only host and port are checked. Noted: {' '.join(view.paths)}"
    return paths_words(view)


def _reason_in_full(row: EntryRow) -> str:
    view = row.view
    extra = f" · private: {', '.join(view.private_networks)}" if view.private_networks else ""
    due = f" · review by {view.review_by}" if view.review_by else ""
    marks = f"{mark_words(view.marks)} · " if view.marks else ""
    return f"{marks}{view.reason}{extra}{due}"


def _used_words(row: EntryRow) -> str:
    return "never" if row.view.last_used is None else span(time.time() - (row.view.last_used or 0))


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


def _paint_pips(canvas: Canvas, row: EntryRow) -> None:
    cell, level = canvas.cells["may"], row.view.may_receive
    filled = list(LEVELS).index(level) + 1 if level in LEVELS else 4
    for at in range(4):
        colour = canvas.ink.text2 if at < filled else canvas.ink.track
        canvas.painter.fillRect(QRectF(cell.x() + at * 4, cell.center().y() - 4, 3, 9), QColor(colour))
    box = cell.adjusted(21, 0, 8, 0)
    draw_text(canvas.painter, box, safe_text(LEVELS.get(level, level)), fonts.ui(12), canvas.ink.text2)


def _paint_reason(canvas: Canvas, row: EntryRow) -> None:
    cell, left = canvas.cells["reason"], 0.0
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


_RISING = list(LEVELS)
COLUMNS: tuple[Cell[EntryRow], ...] = (
    Cell(
        "host",
        "Host",
        share=8,
        words=lambda row: f"{row.view.host}:{row.view.port} (entry {row.view.entry_id})",
        text=lambda row: row.view.host,
        mono=True,
        size=13,
        sort="words",
    ),
    Cell("port", "Port", 52, words=lambda row: str(row.view.port), role="text2", mono=True, sort=lambda row: row.view.port),
    Cell("methods", "Methods", 86, hide_below=760, words=lambda row: methods_words(row.view), role="text2", mono=True, sort="words"),
    Cell(
        "paths",
        "Paths",
        share=4,
        words=_paths_in_full,
        text=lambda row: paths_words(row.view),
        role=lambda row: "text3" if row.view.port == TLS_PORT else "text2",
        mono=lambda row: row.view.port != TLS_PORT,
        sort="words",
    ),
    Cell(
        "may",
        "Data allowed",
        108,
        hide_below=620,
        words=lambda row: f"Most sensitive data allowed: {LEVELS.get(row.view.may_receive, row.view.may_receive)}",
        paint=_paint_pips,
        sort=lambda row: _RISING.index(row.view.may_receive) if row.view.may_receive in LEVELS else None,
    ),
    Cell("owner", "Owner", 84, hide_below=760, words=lambda row: row.view.owner, role="text2", sort="words"),
    Cell("reason", "Reason and warnings", share=7, words=_reason_in_full, paint=_paint_reason, sort="words"),
    Cell(
        "used",
        "Used",
        66,
        right=True,
        hide_below=520,
        words=lambda row: f"Last used {age(row.view.last_used, time.time())}",
        text=_used_words,
        role=lambda row: "text3" if row.view.last_used is None else "text",
        sort=lambda row: row.view.last_used,
    ),
    Cell(
        "hits",
        "Hits 7 d",
        66,
        right=True,
        hide_below=480,
        words=lambda row: f"{row.view.hits_7d:,} requests in 7 days",
        text=lambda row: count(row.view.hits_7d),
        role=lambda row: "text" if row.view.hits_7d else "text3",
        weight=fonts.MEDIUM,
        sort=lambda row: row.view.hits_7d,
    ),
)
