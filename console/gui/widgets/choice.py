"""A field with a list to choose from: the arrow says that it is no field to type in."""

from __future__ import annotations

from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QComboBox

from console.gui.theme.icons import icon_pixmap
from console.gui.theme.tokens import ink


class Choice(QComboBox):
    """The style sheet takes Fusion's arrow away; this is the theme's own."""

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        colours = ink()
        painter = QPainter(self)
        colour = colours.text2 if self.isEnabled() else colours.text3
        painter.drawPixmap(self.width() - 20, (self.height() - 12) // 2, icon_pixmap("down", colour, 12))
        painter.end()
