"""The two lists: earlier kills, and other hosts' answers."""

from __future__ import annotations

from PySide6.QtCore import QRectF

from console.api.messages import HostView, KillSwitchView, ReceiptRow
from console.domain.errors import ExitCode
from console.gui.models.operators import person
from console.gui.pages.kill_switch.words import PATH_STATES, result_words
from console.gui.theme import fonts
from console.gui.widgets.marks import draw_text
from console.gui.widgets.rows import Canvas, Column, Sorts, by_words
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.words import clock, day_clock, took
from console.panic.marks import draw_mark

RECEIPTS = (
    Column("when", "When", 112),
    Column("scope", "Scope", share=3),
    Column("result", "Result", share=4),
    Column("took", "Confirmed after", 104, right=True),
    Column("by", "By", 84, hide_below=480),
)
HOSTS = (
    Column("host", "Host", share=3),
    Column("answer", "Acknowledged", share=4),
    Column("zero", "Result", share=4),
    Column("at", "At", 84),
)


def receipt_words(row: ReceiptRow, key: str) -> str:
    """What a cell of the receipts says."""
    match key:
        case "when":
            return day_clock(row.pressed_at)
        case "scope":
            return scope_words(row.scope)
        case "result":
            return result_words(row)[0]
        case "took":
            return confirmed_after(row)
    return person(row.by)


RECEIPT_SORTS: Sorts = {
    **by_words(receipt_words, "scope", "result", "by"),
    "when": lambda row: row.pressed_at,
    "took": lambda row: row.proven_ms,
}


def confirmed_after(row: ReceiptRow) -> str:
    """The time of the headline: until the last of its agents was confirmed dead."""
    return "—" if row.proven_ms is None else took(row.proven_ms)


def scope_words(scope: str) -> str:
    """``everything``, one agent, or the first of a tree and how many more."""
    if scope == "all":
        return "everything"
    first, *rest = scope.split(",")
    return f"{first} and {len(rest)} more" if rest else first


def paint_receipt(canvas: Canvas, row: ReceiptRow) -> None:
    """One earlier kill."""
    words, shape, role = result_words(row)
    canvas.text("when", day_clock(row.pressed_at), "text2", mono=True)
    canvas.text("scope", scope_words(row.scope))
    marked(canvas, "result", words, shape, role)
    canvas.text("took", confirmed_after(row), weight=fonts.MEDIUM, right=True)
    canvas.text("by", person(row.by), "text2")


def host_words(row: HostView, key: str) -> str:
    """What a cell of the hosts says."""
    match key:
        case "host":
            return row.host
        case "answer":
            return "acknowledged" if row.acknowledged else row.detail or "silent"
        case "zero":
            return _host_result(row)[0]
    return clock(row.at) if row.at else "never"


HOST_SORTS: Sorts = {**by_words(host_words, "host", "answer", "zero"), "at": lambda row: row.at}


def _host_result(row: HostView) -> tuple[str, str, str]:
    if row.exit_code is None:
        return "unknown", "triangle", "warn"
    return row.short, *(("check", "text2") if row.exit_code == ExitCode.DONE else ("triangle", "warn"))


def hosts_note(view: KillSwitchView) -> tuple[str, str, str]:
    """(words, colour, shape) in place of an empty list: hosts only answer an order, so none is listed before one was given."""
    path = next((path for path in view.paths if path.name == "remote"), None)
    if path is None or path.state == "not_configured":
        return "No remote kill is configured: this console speaks for this host alone.", "text2", ""
    word = PATH_STATES[path.state][0].lower()
    why = f" ({path.detail})" if path.detail else ""
    words = f"No host has an order to answer. This host's own remote path: {word}{why}. After an order every host answers here."
    return (words, "text2", "") if path.state == "proven" else (words, "warn", "triangle")


def paint_host(canvas: Canvas, row: HostView) -> None:
    """One host."""
    canvas.text("host", row.host, mono=True)
    answer = ("acknowledged", "check", "text2") if row.acknowledged else (row.detail or "silent", "triangle", "warn")
    marked(canvas, "answer", *answer)
    marked(canvas, "zero", *_host_result(row))
    canvas.text("at", clock(row.at) if row.at else "never", "text2", mono=True)


def marked(canvas: Canvas, key: str, words: str, shape: str, role: str) -> None:
    """A cell with a shape before its words; amber ones are heavier."""
    cell = canvas.cells.get(key)
    if cell is None:
        return
    colour = getattr(canvas.ink, role)
    draw_mark(canvas.painter, shape, QRectF(cell.x() + 1, cell.center().y() - 4.5, 9, 9), colour)
    strong = role in ("warn", "danger")
    text = colour if strong else canvas.ink.text
    draw_text(canvas.painter, cell.adjusted(18, 0, 4, 0), safe_text(words), fonts.ui(12, fonts.MEDIUM if strong else fonts.REGULAR), text)
