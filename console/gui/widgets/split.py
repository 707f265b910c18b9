"""Two parts of a page with a line between them that a person drags; where it was put is kept for the next start."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLayout, QSplitter, QWidget

_NARROWEST = 240
"""A pane keeps its buttons and the beginning of each line, and a list its first columns."""
_STEP = 40
_REST = 100_000
"""More than any screen has: the first part takes what the pane leaves."""


class Split(QSplitter):
    """``beside`` or ``above``; a part may be hidden, and comes back as wide as it was."""

    def __init__(self, orientation: Qt.Orientation, first: QWidget | QLayout, second: QWidget, parent: QWidget) -> None:
        super().__init__(orientation, parent)
        self.setChildrenCollapsible(False)
        self.first = first if isinstance(first, QWidget) else _holding(first, self)
        for part in (self.first, second):
            self.addWidget(part)

        self._set: list[int] = []
        """Both sizes, as a person made them. A part that is hidden has none, so that they are noted when the line is moved."""
        self.splitterMoved.connect(lambda _at, _line: self._note())

    def _note(self) -> None:
        self._set = self.sizes()

    def move_line(self, by: int) -> None:
        """By so many steps to the right, or down."""
        first, second = self.sizes()
        self.setSizes([max(0, first + by * _STEP), max(0, second - by * _STEP)])
        self._note()

    def remembered(self) -> dict[str, Any]:
        """Where a person moved the line; empty when it was never moved."""
        return {"sizes": self._set} if self._set else {}

    def recall(self, kept: dict[str, Any]) -> None:
        """Takes back what ``remembered`` gave. Qt's own state would also bring direction and handle from a file."""
        sizes = kept.get("sizes")
        if isinstance(sizes, list) and len(sizes) == 2 and all(type(size) is int and 0 < size < _REST for size in sizes):
            self._set = sizes
            self.setSizes(sizes)


def beside(first: QWidget | QLayout, pane: QWidget, parent: QWidget, width: int = 0) -> Split:
    """A list, and the pane of what is selected in it: ``width`` pixels wide, or 0: two thirds of the room.

    The line itself has no width, so that it covers nothing; Qt lets it be taken hold of a few pixels beside it.
    """
    split = Split(Qt.Orientation.Horizontal, first, pane, parent)
    split.setHandleWidth(0)
    for part in (split.first, pane):
        part.setMinimumWidth(_NARROWEST)
    split.setStretchFactor(0, 1)
    split.setStretchFactor(1, 0 if width else 2)
    split.setSizes([_REST, width] if width else [_REST, 2 * _REST])
    return split


def above(first: QWidget, second: QWidget, parent: QWidget, heights: tuple[int, int]) -> Split:
    """Two lists, one above the other."""
    split = Split(Qt.Orientation.Vertical, first, second, parent)
    split.setHandleWidth(3)
    split.setSizes(heights)
    return split


def split_in_front(page: QWidget) -> Split | None:
    """The first line between two parts that are both shown; None where there is none."""
    splits = (one for one in page.findChildren(Split) if one.isVisible())
    return next((one for one in splits if all((part := one.widget(at)) is not None and part.isVisible() for at in range(2))), None)


def _holding(layout: QLayout, parent: QWidget) -> QWidget:
    holder = QWidget(parent)
    layout.setContentsMargins(0, 0, 0, 0)
    holder.setLayout(layout)
    return holder
