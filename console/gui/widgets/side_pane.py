"""What stands beside a page's list: its own ground, a line at its left and one above its foot."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QScrollArea, QVBoxLayout, QWidget

from console.gui.theme.tokens import DETAIL_FOOT, ink


class SidePane(QWidget):
    """The ground of it; what is on it is whose it is."""

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(colours.bg1))
        painter.fillRect(QRectF(0, 0, 1, self.height()), QColor(colours.line))
        painter.fillRect(QRectF(0, self.height() - DETAIL_FOOT, self.width(), 1), QColor(colours.line))
        painter.end()


def scrolling(pane: QWidget) -> tuple[QScrollArea, QVBoxLayout]:
    """(an area that scrolls up and down alone, without the focus; the column in it), with a pane's margins."""
    scroll = QScrollArea(pane)
    scroll.setWidgetResizable(True)
    scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    inner = QWidget(scroll)
    column = QVBoxLayout(inner)
    column.setContentsMargins(19, 13, 20, 12)
    column.setSpacing(0)
    scroll.setWidget(inner)
    return scroll, column
