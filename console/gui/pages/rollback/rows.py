"""Records grouped by the agent that made them: arranging, painting, words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter

from console.api.records import RollbackRow
from console.gui.kit.table import matches
from console.gui.models.operators import person
from console.gui.theme import fonts
from console.gui.theme.icons import icon_pixmap
from console.gui.widgets.marks import draw_text
from console.gui.widgets.rows import Canvas, Column, Sorts
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.words import day_clock, plural, recent_clock
from console.panic.marks import draw_mark

COLUMNS = (Column("time", "Time", 86), Column("change", "Change"), Column("state", "State", 116))
STATES = {
    "can_restore": ("Can restore", "rollback", "text2"),
    "conflict": ("Conflict", "triangle", "warn"),
    "newer_exists": ("Superseded", "down", "text3"),
    "restored": ("Restored", "check", "text3"),
    "unknown": ("Unknown", "triangle", "warn"),
}
"""state -> (word, shape or icon, colour); a state this console does not know is amber."""
KINDS = {"file_write": ("Edit", "edit"), "file_delete": ("Delete", "minus")}


@dataclass(slots=True)
class Group:
    """One agent's records."""

    agent_id: str
    name: str
    records: list[RollbackRow] = field(default_factory=list)
    is_open: bool = True

    @property
    def key(self) -> str:
        return f"g:{self.agent_id}"

    @property
    def words(self) -> str:
        return plural(len(self.records), "record")


@dataclass(slots=True)
class Item:
    """One record; ``marked`` by Space."""

    view: RollbackRow
    marked: bool = False

    @property
    def key(self) -> str:
        return f"r:{self.view.record_id}"


Line = Group | Item


def arrange(records: Iterable[RollbackRow], text: str, closed: set[str], marked: set[str]) -> list[Line]:
    """Groups in the order of their newest record, records newest first; folded groups keep their head."""
    groups: dict[str, Group] = {}
    for record in records:
        if matches(text, record.path, record.agent_name, record.agent_id, record.record_id, state_words(record)[0]):
            group = groups.setdefault(record.agent_id, Group(record.agent_id, record.agent_name or record.agent_id))
            group.records.append(record)
    out: list[Line] = []
    for group in groups.values():
        group.is_open = group.agent_id not in closed or bool(text.strip())
        out.append(group)
        if group.is_open:
            out.extend(Item(r, r.record_id in marked) for r in group.records)
    return out


def state_words(record: RollbackRow) -> tuple[str, str, str]:
    """(word, shape or icon, colour). What the record does not stand behind is in doubt, whatever the row says of itself."""
    if record.doubt:
        return "In doubt", "triangle", "warn"
    return STATES.get(record.state, ("Unknown", "triangle", "warn"))


def kind_words(record: RollbackRow) -> tuple[str, str]:
    """(word, icon)."""
    return KINDS.get(record.kind, ("Change", "file"))


def cell_words(line: Line, key: str) -> str:
    """What a cell says to a tooltip, a screen reader and the clipboard."""
    if isinstance(line, Group):
        return f"{line.name}, {line.words}" if key == "change" else ""
    record = line.view
    match key:
        case "time":
            return day_clock(record.created_at)
        case "change":
            return f"{kind_words(record)[0]} {record.path} ({record.record_id}){', selected' if line.marked else ''}"
    put_back = f" by {person(record.restored_by)} at {day_clock(record.restored_at)}" if record.restored_at else ""
    doubt = f": {safe_text(record.doubt)}" if record.doubt else ""
    return f"{state_words(record)[0]}{put_back}{doubt}"


SORTS: Sorts = {
    "time": lambda line: max((one.created_at for one in line.records), default=None) if isinstance(line, Group) else line.view.created_at,
    "change": lambda line: line.name.lower() if isinstance(line, Group) else line.view.path.lower(),
    "state": lambda line: None if isinstance(line, Group) else state_words(line.view)[0],
}


def painter_of(clock_now: Callable[[], float]) -> Callable[[Canvas, Line], None]:
    """The row painter; ages are judged by ``clock_now``."""

    def paint(canvas: Canvas, line: Line) -> None:
        if isinstance(line, Group):
            _paint_group(canvas, line)
        else:
            _paint_item(canvas, line, clock_now())

    return paint


def _paint_group(canvas: Canvas, group: Group) -> None:
    painter, ink, box = canvas.painter, canvas.ink, canvas.box
    painter.drawPixmap(QPointF(box.x() + 14, box.center().y() - 6.5), icon_pixmap("down" if group.is_open else "right", ink.text2, 12))
    count = fonts.metrics(fonts.ui(11)).horizontalAdvance(group.words) + 4
    right = box.right() - 16
    draw_text(painter, QRectF(right - count, box.y(), count, box.height()), group.words, fonts.ui(11), ink.text2, right=True)
    name = QRectF(box.x() + 31, box.y(), right - count - box.x() - 40, box.height())
    draw_text(painter, name, safe_text(group.name), fonts.ui(12, fonts.SEMIBOLD), ink.text)


def _paint_item(canvas: Canvas, item: Item, now: float) -> None:
    record, ink, painter = item.view, canvas.ink, canvas.painter
    quiet = record.state in ("restored", "newer_exists")
    canvas.text("time", recent_clock(record.created_at, now), "text3", mono=True)
    cell = canvas.cells["change"]
    icon = "check" if item.marked else kind_words(record)[1]
    colour = ink.accent if item.marked else ink.text2
    painter.drawPixmap(QPointF(cell.x(), cell.center().y() - 6), icon_pixmap(icon, colour, 12))
    words = QRectF(cell.x() + 19, cell.y(), cell.width() - 19, cell.height())
    face = fonts.mono(11, fonts.MEDIUM if item.marked else fonts.REGULAR)
    draw_text(painter, words, safe_text(record.path), face, ink.text2 if quiet else ink.text)
    word, shape, role = state_words(record)
    role = "text2" if canvas.selected and role == "text3" else role
    cell = canvas.cells["state"]
    draw_state(painter, cell, shape, getattr(ink, role))
    loud = role == "warn"
    face = fonts.ui(12, fonts.SEMIBOLD if loud else fonts.REGULAR)
    draw_text(painter, cell.adjusted(17, 0, 8, 0), word, face, getattr(ink, role))


def draw_state(painter: QPainter, cell: QRectF, shape: str, colour: str) -> None:
    """The shape or icon of a state at the left of ``cell``."""
    if shape in ("rollback", "down"):
        painter.drawPixmap(QPointF(cell.x(), cell.center().y() - 6), icon_pixmap(shape, colour, 12))
    else:
        draw_mark(painter, shape, QRectF(cell.x() + 1, cell.center().y() - 5, 9, 9), colour)
