"""What both charts share: an axis of money from zero, with three steps of a round size."""

from __future__ import annotations

import math
from collections.abc import Iterable

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter

from console.gui.pages.budgets.words import whole_usd
from console.gui.theme import fonts
from console.gui.theme.tokens import Ink
from console.gui.widgets.marks import draw_text
from console.gui.widgets.safe_text import safe_text

STEPS = 3
_ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)


def finite(values: Iterable[float]) -> list[float]:
    """No negative number, NaN or infinity reaches a chart."""
    return [v if math.isfinite(v) and v > 0 else 0.0 for v in values]


def round_step(top: float) -> float:
    """The smallest round step of which three reach ``top``; a cent at least."""
    want = max(0.01, top / STEPS)
    power = float(10.0 ** math.floor(math.log10(want)))
    return next((step * power for step in _ROUND if step * power >= want * 0.9999), 10.0 * power)


_WRAP = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap)


def draw_note(painter: QPainter, left: float, width: float, words: str, ink: Ink) -> float:
    """Why something is missing, above the chart, which begins lower by the height that is returned: nothing drawn is covered."""
    if not words:
        return 0.0
    room = QRectF(left, 29, width, 48)
    shown = safe_text(words)
    painter.setFont(fonts.ui(11))
    painter.setPen(QColor(ink.text2))
    painter.drawText(room, _WRAP, shown)
    return min(room.height(), fonts.metrics(fonts.ui(11)).boundingRect(room.toRect(), _WRAP, shown).height() + 2.0)


def draw_axis(painter: QPainter, box: QRectF, step: float, ink: Ink) -> None:
    """Lines across ``box`` and their figures at its left; the topmost carries the dollar sign."""
    for number in range(STEPS + 1):
        y = round(box.bottom() - number * box.height() / STEPS)
        painter.fillRect(QRectF(box.x(), y, box.width(), 1), QColor(ink.line2 if number == 0 else ink.line))
        words = "0" if number == 0 else f"{'$' if number == STEPS else ''}{whole_usd(round(step * number, 6))}"
        draw_text(painter, QRectF(0, y - 8, box.x() - 7, 16), words, fonts.ui(10), ink.text2, right=True)
