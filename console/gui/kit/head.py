"""The head of a page: its title, counts below it, and at the right a figure or a state. All painted: nothing in it is pressed."""

from __future__ import annotations

from typing import ClassVar

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from console.gui.kit.table import LOUD, Shape
from console.gui.theme import fonts
from console.gui.theme.tokens import PAGE_HEADER, Ink, ink
from console.gui.widgets.marks import draw_text
from console.gui.widgets.safe_text import safe_text
from console.panic.marks import draw_mark


class PageHead(QWidget):
    """A subclass says its ``title`` and paints the rest in ``paint_parts``."""

    title: ClassVar[str]

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(PAGE_HEADER)

    def paint_parts(self, painter: QPainter, colours: Ink) -> None:
        """Everything but ground, line and title."""
        raise NotImplementedError

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(colours.bg0))
        painter.fillRect(QRectF(0, self.height() - 1, self.width(), 1), QColor(colours.line))
        draw_text(painter, QRectF(16, 12, 300, 24), self.title, fonts.ui(17, fonts.SEMIBOLD), colours.text)
        self.paint_parts(painter, colours)
        painter.end()


def paint_count(painter: QPainter, x: float, word: str, figure: str, look: tuple[str, str, str], weight: int = fonts.MEDIUM) -> float:
    """A mark, a word and how many; ``look``: the shape, its colour and the text's. Returns where the next one begins."""
    colours, (shape, mark_role, role) = ink(), look
    words = fonts.metrics(fonts.ui(12, weight)).horizontalAdvance(word)
    wide = fonts.metrics(fonts.ui(18, fonts.MEDIUM)).horizontalAdvance(figure)
    draw_mark(painter, shape, QRectF(x + 1, 64, 9, 9), getattr(colours, mark_role))
    of_word = getattr(colours, role) if weight != fonts.REGULAR else colours.text
    draw_text(painter, QRectF(x + 17, 58, words + 2, 20), word, fonts.ui(12, weight), of_word)
    draw_text(painter, QRectF(x + 25 + words, 56, wide + 4, 24), figure, fonts.ui(18, fonts.MEDIUM), getattr(colours, role))
    return x + words + wide + 49


def paint_figure(painter: QPainter, x: float, width: float, caption: str, figure: str) -> float:
    """A large number under its caption. Returns where the number ends."""
    colours, face = ink(), fonts.ui(18, fonts.SEMIBOLD)
    draw_text(painter, QRectF(x, 14, width, 18), caption, fonts.ui(12), colours.text2)
    draw_text(painter, QRectF(x, 33, width, 24), figure, face, colours.text)
    return x + fonts.metrics(face).horizontalAdvance(figure)


def paint_state(painter: QPainter, x: float, width: float, caption: str, state: Shape, line: str) -> None:
    """A state in words with its mark under a caption, and one line of detail below."""
    colours = ink()
    word, shape, role = state
    draw_text(painter, QRectF(x, 14, width, 18), caption, fonts.ui(12), colours.text2)
    draw_mark(painter, shape, QRectF(x + 1, 41, 9, 9), getattr(colours, role))
    colour = getattr(colours, role) if role in LOUD else colours.text
    draw_text(painter, QRectF(x + 18, 34, width - 18, 24), word, fonts.ui(13, fonts.MEDIUM), colour)
    draw_text(painter, QRectF(x, 58, width, 18), safe_text(line, 300), fonts.ui(11), colours.text2)
