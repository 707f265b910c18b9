"""The armed light, in words with its age: grey and a dot when all is well, amber with a triangle on doubt, never green during a kill."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from console.gui.theme import fonts
from console.gui.theme.tokens import ink
from console.gui.widgets.marks import draw_text
from console.gui.widgets.safe_text import safe_text, tooltip
from console.panic.marks import draw_mark

_MARKS = {
    "armed": ("dot", "ok"),
    "in_doubt": ("triangle", "warn"),
    "unknown": ("triangle", "warn"),
    "killing": ("triangle", "warn"),
    "killed": ("cross", "text2"),
}
_STEP = 16
"""Its width grows by so much at a time."""


class ArmedLight(QWidget):
    """Two lines: the state in words; how fresh that is and how fast the panic path answers."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state, self._words, self._fine = "unknown", "Not known yet", ""
        self._reserved = 0
        """Width that it had in this state: seconds that count up and down move nothing beside it."""
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(64)
        self.show_light("unknown", "Not known yet", "")

    def show_light(self, state: str, words: str, fine: str) -> None:
        """state: armed, in_doubt, unknown, killing or killed."""
        new = (state, safe_text(words), safe_text(fine))
        if new != (self._state, self._words, self._fine):
            before = self.sizeHint() if new[0] == self._state else None
            self._reserved = before.width() if before is not None else 0
            self._state, self._words, self._fine = new
            self.setAccessibleName(f"{self._words}. {self._fine}")
            self.setToolTip(tooltip(f"{self._words}. {self._fine}"))
            if self.sizeHint() != before:
                self.updateGeometry()
            self.update()

    def sizeHint(self) -> QSize:
        first = fonts.metrics(fonts.ui(13, fonts.MEDIUM)).horizontalAdvance(self._words)
        second = fonts.metrics(fonts.ui(11)).horizontalAdvance(self._fine)
        return QSize(max(-(-(max(first, second) + 18) // _STEP) * _STEP, self._reserved), 36)

    def lines(self) -> tuple[str, str]:
        """In a narrow window the age of the test stands in the second line, so that both are read to their end."""
        head, dot, rest = self._words.partition(" · ")
        if dot and fonts.metrics(fonts.ui(13, fonts.MEDIUM)).horizontalAdvance(self._words) > self.width() - 15:
            return head, f"{rest} · {self._fine[:1].lower()}{self._fine[1:]}"
        return self._words, self._fine

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        mark, role = _MARKS.get(self._state, _MARKS["unknown"])
        painter = QPainter(self)
        draw_mark(painter, mark, QRectF(1, 5, 8, 8), getattr(colours, role))
        first, second = self.lines()
        text = colours.warn if role == "warn" else colours.text
        draw_text(painter, QRectF(15, 0, self.width() - 15, 18), first, fonts.ui(13, fonts.MEDIUM), text)
        draw_text(painter, QRectF(15, 18, self.width() - 15, 16), second, fonts.ui(11), colours.text2)
        painter.end()
