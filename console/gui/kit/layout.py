"""Columns and rows of widgets, said as the list of their parts."""

from __future__ import annotations

from typing import TypeVar

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFocusEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QLayout, QScrollArea, QVBoxLayout, QWidget

from console.gui.theme.tokens import FILTER_BAR, ink

L = TypeVar("L", bound=QBoxLayout)
Placed = QWidget | QLayout
Part = Placed | int | tuple[Placed, int]
"""What stands there: a widget or layout, alone or with its share of the room that is left; a number: so many pixels of room."""
Margins = tuple[int, int, int, int]
"""Pixels at the left, above, at the right and below."""
STRETCH = -1
"""A part that takes what is left."""
NONE: Margins = (0, 0, 0, 0)
PANE: Margins = (19, 12, 20, 12)
"""Inside a pane, and around the buttons at its foot."""


def column(*parts: Part, margins: Margins = NONE, spacing: int = 0, on: QWidget | None = None) -> QVBoxLayout:
    """One part below the other. ``on``: the widget that has this layout; without one it is put into another layout."""
    return _filled(QVBoxLayout(), parts, margins, spacing, on)


def row(*parts: Part, margins: Margins = NONE, spacing: int = 0, on: QWidget | None = None) -> QHBoxLayout:
    """One part beside the other, from the left."""
    return _filled(QHBoxLayout(), parts, margins, spacing, on)


def bar(parent: QWidget, *parts: Part, spacing: int = 10) -> QWidget:
    """A bar as high as a list's filter bar."""
    made = QWidget(parent)
    fill_bar(made, *parts, spacing=spacing)
    return made


def fill_bar(widget: QWidget, *parts: Part, spacing: int = 10) -> None:
    """Makes ``widget`` such a bar."""
    widget.setFixedHeight(FILTER_BAR)
    row(*parts, margins=(16, 0, 16, 0), spacing=spacing, on=widget)


class ScrollArea(QScrollArea):
    """Tab leads to it while there is more than it shows, and then the arrows scroll. A click takes the focus from no list."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName("The arrows scroll this part")
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.verticalScrollBar().rangeChanged.connect(self._can_scroll)

    def _can_scroll(self, least: int, most: int) -> None:
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus if most > least else Qt.FocusPolicy.NoFocus)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.viewport().update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.hasFocus():
            painter = QPainter(self.viewport())
            painter.setPen(QPen(QColor(ink().accent), 2))
            painter.drawRect(self.viewport().rect().adjusted(1, 1, -1, -1))
            painter.end()


def scrolled(parent: QWidget, *parts: Part, margins: Margins = NONE, spacing: int = 0, fills: bool = False) -> QScrollArea:
    """A column that scrolls up and down; ``fills``: its parts take the whole height."""
    area = ScrollArea(parent)
    inner = QWidget(area)
    column(*parts, *(() if fills else (STRETCH,)), margins=margins, spacing=spacing, on=inner)
    area.setWidget(inner)
    return area


def fill(layout: QBoxLayout, *parts: Part) -> None:
    """Adds parts to a layout."""
    for part in parts:
        placed, share = part if isinstance(part, tuple) else (part, 0)
        if placed == STRETCH:
            layout.addStretch(1)
        elif isinstance(placed, int):
            layout.addSpacing(placed)
        elif isinstance(placed, QLayout):
            layout.addLayout(placed, share)
        else:
            layout.addWidget(placed, share)


def _filled(layout: L, parts: tuple[Part, ...], margins: Margins, spacing: int, on: QWidget | None) -> L:
    layout.setContentsMargins(*margins)
    layout.setSpacing(spacing)
    fill(layout, *parts)
    if on is not None:
        on.setLayout(layout)
    return layout
