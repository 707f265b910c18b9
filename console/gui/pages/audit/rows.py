"""One record as a row: who, what, how it was judged."""

from __future__ import annotations

from collections.abc import Callable
from time import time as now

from PySide6.QtCore import QPointF, QRectF

from console.api.records import AuditRow
from console.gui.theme import fonts
from console.gui.theme.icons import icon_pixmap
from console.gui.widgets.marks import draw_text
from console.gui.widgets.rows import Canvas, Column
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.words import clock, day_clock
from console.panic.marks import draw_mark

COLUMNS = (
    Column("seq", "No.", 88),
    Column("time", "Time", 120),
    Column("actor", "Actor", 136, hide_below=520),
    Column("kind", "Kind", 128, hide_below=660),
    Column("what", "What"),
    Column("verdict", "Verdict", 92),
    Column("hash", "Hash", 92, hide_below=740),
)
_GOOD = frozenset(("allow", "ok", "whole", "proven"))
_BAD = frozenset(("deny", "refused", "failed", "halt", "broken", "kill"))


def moment(at: float) -> str:
    """``14:02:19.204``."""
    return f"{clock(at)}.{int(at * 1000) % 1000:03d}"


def row_moment(at: float, now: float) -> str:
    """The same of the last 20 hours; what is older has its day: ``21 Nov 09:00:12``."""
    return moment(at) if 0 <= now - at < 20 * 3600 else f"{day_clock(at)}{clock(at)[5:]}"


def verdict_look(verdict: str) -> tuple[str, str, str]:
    """(word, shape, colour); a verdict this console does not know is amber, none is a dash."""
    word = safe_text(verdict, 30).replace("_", " ")
    if not verdict:
        return "—", "", "text3"
    if verdict in _GOOD:
        return word, "check", "text2"
    return (word, "ban", "danger") if verdict in _BAD else (word, "triangle", "warn")


def actor_look(actor: str) -> tuple[str, str, bool]:
    """(name, icon, whether a person). Actors are ``operator:uid``, ``agent:id`` and parts of the supervisor."""
    kind, _, name = actor.partition(":")
    if kind == "agent":
        return name or actor, "fleet", False
    if kind == "operator":
        return f"operator {name}".strip(), "user", True
    return actor, "shield", False


def short_hash(text: str) -> str:
    """``a17f 90c2``."""
    return f"{text[:4]} {text[4:8]}"


def cell_words(row: AuditRow, key: str) -> str:
    """What a cell says to a tooltip, a screen reader and the clipboard."""
    match key:
        case "seq":
            return f"{row.seq:,}"
        case "time":
            return f"{day_clock(row.at)[:6]} {moment(row.at)}"
        case "actor":
            return row.actor
        case "kind":
            return row.kind
        case "what":
            return row.what
        case "verdict":
            return verdict_look(row.verdict)[0]
    return row.hash


def painter_of(name_of: Callable[[str], str]) -> Callable[[Canvas, AuditRow], None]:
    """The row painter; ``name_of`` gives the name of an agent, or its id again."""
    return lambda canvas, row: _paint_row(canvas, row, name_of)


def _paint_row(canvas: Canvas, row: AuditRow, name_of: Callable[[str], str]) -> None:
    canvas.text("seq", f"{row.seq:,}", "text2", weight=fonts.MEDIUM)
    canvas.text("time", row_moment(row.at, now()), "text3", mono=True)
    _paint_actor(canvas, row.actor, name_of)
    canvas.text("kind", row.kind, "text2")
    canvas.text("what", row.what)
    word, shape, role = verdict_look(row.verdict)
    cell = canvas.cells["verdict"]
    if shape:
        draw_mark(canvas.painter, shape, QRectF(cell.x() + 1, cell.center().y() - 4, 9, 9), getattr(canvas.ink, role))
        face = fonts.ui(12, fonts.SEMIBOLD if role in ("warn", "danger") else fonts.REGULAR)
        draw_text(canvas.painter, cell.adjusted(17, 0, 0, 0), word, face, getattr(canvas.ink, role))
    else:
        draw_text(canvas.painter, cell.adjusted(17, 0, 0, 0), word, fonts.ui(12), canvas.ink.text3)
    canvas.text("hash", short_hash(row.hash), "text3", mono=True)


def _paint_actor(canvas: Canvas, actor: str, name_of: Callable[[str], str]) -> None:
    cell = canvas.cells.get("actor")
    if cell is None:
        return
    name, icon, person = actor_look(actor)
    name = name_of(name) if icon == "fleet" else name
    canvas.painter.drawPixmap(QPointF(cell.x(), cell.center().y() - 6), icon_pixmap(icon, canvas.ink.text2, 12))
    face = fonts.ui(12, fonts.MEDIUM if person else fonts.REGULAR)
    draw_text(canvas.painter, cell.adjusted(18, 0, 0, 0), safe_text(name), face, canvas.ink.text if person else canvas.ink.text2)
