"""The ways this host can be stopped, two lines each: what it is and how it was proven, with the word at the right."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QRectF
from PySide6.QtGui import QColor, QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from console.api.armed import PathView
from console.gui.theme import fonts
from console.gui.theme.tokens import ink
from console.gui.widgets.marks import draw_text
from console.gui.widgets.safe_text import safe_text, tooltip
from console.gui.widgets.words import age
from console.panic.marks import draw_mark

ROW = 46
PATH_TITLES = {"local": "Local kill", "engine": "Docker engine", "remote": "Remote file", "secrets": "Secrets"}
PATH_STATES = {
    "proven": ("Ready", "check", "ok"),
    "in_doubt": ("Not ready", "triangle", "warn"),
    "not_configured": ("Not configured", "ring", "text2"),
    "unavailable": ("Not on this host", "ring", "text2"),
}
NOT_KNOWN = ("Not known", "triangle", "warn")
_RIGHT = 92


def path_words(path: PathView, now: float, *, known: bool = True) -> tuple[str, str, str, str, str]:
    """(title, second line, word, shape, colour); old news proves nothing. ``now`` in seconds since the epoch."""
    word, shape, role = PATH_STATES.get(path.state, NOT_KNOWN) if known else NOT_KNOWN
    looked = age(path.checked_at, now) if path.checked_at else ""
    fine = ", ".join(part for part in (path.detail, looked) if part)
    return safe_text(PATH_TITLES.get(path.name, path.name), 40), safe_text(fine), word, shape, role


class PathLines(QWidget):
    """Rows of 46."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows: list[tuple[str, str, str, str, str]] = []
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(0)

    def say(self, paths: Sequence[PathView], now: float, *, known: bool = True) -> None:
        """Shows them; not ``known``: they are stale, and nothing is ticked."""
        rows = [path_words(path, now, known=known) for path in paths]
        if rows != self._rows:
            self._rows = rows
            self.setFixedHeight(ROW * len(rows))
            self.setAccessibleName("; ".join(f"{title}: {word}. {fine}" for title, fine, word, _, _ in rows))
            self.update()

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            number = event.pos().y() // ROW
            row = self._rows[number] if 0 <= number < len(self._rows) else None
            QToolTip.showText(event.globalPos(), tooltip(f"{row[0]}: {row[2]}. {row[1]}") if row else "", self)
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        for number, (title, fine, word, shape, role) in enumerate(self._rows):
            y = number * ROW
            painter.fillRect(QRectF(0, y, self.width(), 1), QColor(colours.line))
            draw_mark(painter, shape, QRectF(1, y + ROW / 2 - 5, 10, 10), getattr(colours, role))
            room = self.width() - 24 - _RIGHT
            draw_text(painter, QRectF(23, y + 5, room, 18), title, fonts.ui(12, fonts.MEDIUM), colours.text)
            draw_text(painter, QRectF(23, y + 23, room, 16), fine, fonts.ui(11), colours.text2)
            box = QRectF(self.width() - _RIGHT, y, _RIGHT, ROW)
            draw_text(painter, box, word, fonts.ui(12, fonts.MEDIUM), getattr(colours, role), right=True)
        painter.end()
