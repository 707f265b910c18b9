"""The list of settings: a heading for each group, one row for each setting, and the words of its cells."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from PySide6.QtCore import QPointF, QRectF

from console.api.settings import SettingRow
from console.gui.kit.table import matches
from console.gui.theme import fonts
from console.gui.theme.icons import icon_pixmap
from console.gui.widgets.marks import draw_text
from console.gui.widgets.rows import Canvas, Column
from console.gui.widgets.safe_text import safe_text

COLUMNS = (
    Column("key", "Setting", share=5),
    Column("value", "Value", share=4),
    Column("origin", "From", share=4, hide_below=560),
    Column("state", "", 112),
)
LAYERS = {
    "default": "Built-in default",
    "administrator": "Administrator",
    "account": "This account",
    "environment": "Environment",
    "last": "Last good settings",
}


@dataclass(frozen=True, slots=True)
class Heading:
    """A group of settings."""

    group: str
    words: str

    @property
    def key(self) -> str:
        return f"g:{self.group}"


@dataclass(frozen=True, slots=True)
class Item:
    """One setting."""

    row: SettingRow

    @property
    def key(self) -> str:
        return f"s:{self.row.key}"


Line = Heading | Item


def arrange(rows: Iterable[SettingRow], text: str) -> list[Line]:
    """Headings with the settings that hold each typed word in name, description, value, origin or state."""
    lines: list[Line] = []
    group: str | None = None
    for row in rows:
        parts = (row.key, row.words, row.group_words, value_words(row), row.origin, LAYERS.get(row.layer, ""), state_words(row))
        if not matches(text, *parts):
            continue
        if row.group != group:
            group = row.group
            lines.append(Heading(group, row.group_words))
        lines.append(Item(row))
    return lines


def value_words(row: SettingRow) -> str:
    """What is in force, with its unit, and what comes after it: the origin is that of the value to come."""
    now = shown(row.value, row.unit)
    return f"{now} → {shown(row.next_value, row.unit)}" if row.is_waiting else now


def shown(value: Any, unit: str = "") -> str:
    """``3 s``, ``true``, ``not set``."""
    if value in ("", [], {}, None):
        return "not set"
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"{json.dumps(value, ensure_ascii=False)}{f' {unit}' if unit else ''}"


def origin_words(row: SettingRow) -> str:
    """Whose value it is, and the name of the file."""
    whose = LAYERS.get(row.layer, row.layer)
    return f"{whose} · {PurePath(row.origin).name}" if row.layer == "administrator" else whose


def state_words(row: SettingRow) -> str:
    """``Locked``, ``At next start``, or nothing."""
    return "Locked" if row.locked_by else "At next start" if row.is_waiting else ""


def cell_words(line: Line, key: str) -> str:
    """What a cell says to a tooltip, a screen reader and the clipboard."""
    if isinstance(line, Heading):
        return line.words if key == "key" else ""
    row = line.row
    match key:
        case "key":
            return row.key
        case "value":
            return value_words(row)
        case "origin":
            return row.origin
    return f"Locked by {row.locked_by}" if row.locked_by else state_words(row)


def paint(canvas: Canvas, line: Line) -> None:
    """One row of the list."""
    if isinstance(line, Heading):
        box = canvas.box.adjusted(14, 0, -14, 0)
        draw_text(canvas.painter, box, safe_text(line.words), fonts.ui(12, fonts.SEMIBOLD), canvas.ink.text2)
        return
    row = line.row
    is_set = row.layer != "default"
    canvas.text("key", row.key, mono=True, weight=fonts.MEDIUM if is_set else fonts.REGULAR)
    canvas.text("value", value_words(row), "text" if is_set else "text2", mono=row.kind in ("list", "table"))
    canvas.text("origin", origin_words(row), "text2" if is_set else "text3")
    cell, words = canvas.cells.get("state"), state_words(row)
    if cell is None or not words:
        return
    icon, role = ("lock", "text2") if row.locked_by else ("clock", "warn")
    colour = getattr(canvas.ink, role)
    canvas.painter.drawPixmap(QPointF(cell.x(), cell.center().y() - 6), icon_pixmap(icon, colour, 12))
    draw_text(canvas.painter, QRectF(cell).adjusted(18, 0, 0, 0), words, fonts.ui(12), colour)
