"""The strip in the foot while what is shown is from some time ago: since when, and that the stop works all the same."""

from __future__ import annotations

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from console.gui.models.switch import Switch
from console.gui.theme import fonts
from console.gui.theme.tokens import STATUS_BAR, ink
from console.gui.widgets.marks import draw_text
from console.gui.widgets.safe_text import tooltip
from console.gui.widgets.words import clock, long_span
from console.panic.marks import draw_mark

_THEN = "Panic still works. Agents may have changed since. If it has ended, start it: watchfloor supervisor"


def old_words(switch: Switch, now: float) -> str:
    """Since when what is shown is old and why; empty while it is live, and before anything was ever heard."""
    heard, deaf = switch.heard_at, switch.deaf_since
    if heard is not None and switch.is_silent(now):
        return f"Stale since {clock(heard)}: the supervisor has not answered for {long_span(now - heard)}."
    if deaf is not None and switch.is_deaf(now):
        return f"Stale since {clock(deaf)}: no changes were heard for {long_span(now - deaf)}."
    return ""


class OldStrip(QWidget):
    """Amber, with a triangle; it cannot be dismissed and goes by itself once the news is fresh."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._words = ""
        self.setFixedHeight(STATUS_BAR)
        self.hide()

    def say(self, words: str) -> None:
        """``old_words`` now; empty: nothing is old."""
        if words == self._words:
            return
        self._words = words
        self.setAccessibleName(f"{words} {_THEN}" if words else "")
        self.setToolTip(tooltip(f"{words} {_THEN}") if words else "")
        self.setVisible(bool(words))
        self.update()

    def least_width(self) -> int:
        """What the words before the colon need, which it shows where a notice beside it needs the room: since when."""
        return int(fonts.metrics(fonts.ui(13, fonts.SEMIBOLD)).horizontalAdvance(self._words.partition(": ")[0])) + 58

    def words_width(self) -> int:
        """What its words need."""
        face, then = fonts.ui(13, fonts.SEMIBOLD), fonts.ui(12)
        return int(fonts.metrics(face).horizontalAdvance(self._words) + fonts.metrics(then).horizontalAdvance(_THEN)) + 76

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(colours.warnbg))
        painter.fillRect(QRectF(0, 0, self.width(), 1), QColor(colours.warn))
        draw_mark(painter, "triangle", QRectF(18, 11, 10, 10), colours.warn)
        face = fonts.ui(13, fonts.SEMIBOLD)
        room = self.width() - 54.0
        words = self._words if fonts.metrics(face).horizontalAdvance(self._words) <= room else self._words.partition(": ")[0]
        width = min(fonts.metrics(face).horizontalAdvance(words) + 4.0, room)
        draw_text(painter, QRectF(38, 0, width, STATUS_BAR), words, face, colours.warn)
        if room - width > 120:
            draw_text(painter, QRectF(46 + width, 0, room - width - 8, STATUS_BAR), _THEN, fonts.ui(12), colours.text)
        painter.end()
