"""The grounds of a page's parts, and the pane beside its list: a line at its left and one above its foot."""

from __future__ import annotations

from typing import ClassVar

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from console.gui.theme.tokens import DETAIL_FOOT, ink


class Ground(QWidget):
    """A part of a page that paints its own ground, and lines at some of its edges."""

    ground: ClassVar[str] = "bg0"
    edges: ClassVar[tuple[str, ...]] = ()
    """left, top, foot: above the buttons of a pane."""

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(getattr(colours, self.ground)))
        boxes = {
            "left": QRectF(0, 0, 1, self.height()),
            "top": QRectF(0, 0, self.width(), 1),
            "foot": QRectF(0, self.height() - DETAIL_FOOT, self.width(), 1),
        }
        for edge in self.edges:
            painter.fillRect(boxes[edge], QColor(colours.line))
        painter.end()


class Foot(Ground):
    """A bar below something, with a line above it."""

    ground = "bg1"
    edges = ("top",)


class SidePane(Ground):
    """The ground of what stands beside a list; what is on it is whose it is."""

    ground = "bg1"
    edges = ("left", "foot")
