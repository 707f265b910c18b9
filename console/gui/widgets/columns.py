"""The columns of a list, and the header in which a person drags their widths and their order, hides them, and sorts by a click.

Until then columns follow the room: some are so many pixels wide, the others share what is left, and a narrow list hides the least needed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QContextMenuEvent, QPainter, QPolygonF
from PySide6.QtWidgets import QHeaderView, QMenu, QWidget

from console.gui.theme import fonts
from console.gui.theme.tokens import ROW, ink
from console.gui.widgets.marks import draw_text

_NARROWEST = 56
_STEP = 24
"""Pixels by which the menu makes a column wider or narrower."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column; ``width`` 0 takes its ``share`` of what is left, ``hide_below`` hides it in a view narrower than that."""

    key: str
    title: str
    width: int = 0
    right: bool = False
    hide_below: int = 0
    share: int = 1
    least: int = 0
    """No person makes it narrower than what is drawn in it; 0: texts, which are elided."""

    @property
    def narrowest(self) -> int:
        """Pixels; a column without a title holds a button, which keeps its room."""
        return self.least or (min(self.width or _NARROWEST, _NARROWEST) if self.title else self.width)


def lead(column: int) -> int:
    """Pixels before the words of a column: the first stands off the edge."""
    return 14 if column == 0 else 0


class RowHeader(QHeaderView):
    """Column titles, 11 medium, with a small triangle on the sorted one. The first column names the row: it stays, and stays first.

    What a person set is kept by the columns' keys. Qt's own ``saveState`` holds every width in pixels, also of columns that share
    what is left, and is void once a column is added.
    """

    laid = Signal()
    """The columns stand elsewhere, or are as wide as they were not."""
    sort_asked = Signal(str)
    """A title was clicked, or chosen in the menu: its key."""

    def __init__(self, columns: tuple[Column, ...], sorts: Collection[str], parent: QWidget) -> None:
        """``sorts``: keys of columns by which the list can be sorted; of the others the order means nothing."""
        super().__init__(Qt.Orientation.Horizontal, parent)
        self.columns = columns
        self._sorts = frozenset(sorts)
        self.sorted_by: tuple[str, bool] = ("", False)
        self.ground = "bg1"
        self._room = 0
        self._is_laying = False
        self._set: dict[str, int] = {}
        """Widths that a person dragged. Those that share what is left go on sharing it, in this proportion."""
        self._wanted: dict[str, bool] = {}
        """Columns that a person hid or showed, whatever the room."""
        self.setSectionsMovable(True)
        self.setFirstSectionMovable(False)
        self.setMinimumSectionSize(10)
        self.setFixedHeight(ROW)
        self.sectionClicked.connect(lambda number: self._sort(self.columns[number].key))
        self.sectionResized.connect(self._resized)
        self.sectionMoved.connect(lambda *_numbers: self.lay(self._room))

    def lay(self, room: int) -> None:
        """Gives each column its place in so many pixels. There is no scrolling sideways: what was dragged too wide gives room back."""
        self._room = room
        shown = [n for n, one in enumerate(self.columns) if self._wanted.get(one.key, not one.hide_below or room >= one.hide_below)]
        fixed = {n: self._set.get(self.columns[n].key, self.columns[n].width) for n in shown if self.columns[n].width}
        shares = self._shares([n for n in shown if n not in fixed])
        over = sum(fixed.values()) + sum(self.columns[n].narrowest for n in shares) - room
        for number in sorted(fixed, key=lambda n: self.columns[n].width - fixed[n]):
            given = max(0, min(over, fixed[number] - self.columns[number].width))
            fixed[number], over = fixed[number] - given, over - given
        left, whole = room - sum(fixed.values()), sum(shares.values()) or 1
        floor = {n: 40 if n else self.columns[0].narrowest for n in shares}  # the name stays to be read; what is last leaves the view
        shared = {n: max(floor[n], int(left * share / whole)) for n, share in shares.items()}
        if shared and (over := sum(shared.values()) - left) > 0:
            widest = max(shared, key=lambda n: shared[n])
            shared[widest] = max(floor[widest], shared[widest] - over)
        with self._laying():
            for number in range(len(self.columns)):
                self.setSectionHidden(number, number not in shown)
            for number, size in {**fixed, **shared}.items():
                self.resizeSection(number, size)

    def _shares(self, numbers: Sequence[int]) -> dict[int, float]:
        """How those without a width share what is left; one that was hidden while a person dragged is taken as it was declared."""
        dragged = [n for n in numbers if self.columns[n].key in self._set]
        unit = sum(self._set[self.columns[n].key] for n in dragged) / (sum(self.columns[n].share for n in dragged) or 1) or 1.0
        return {n: self._set.get(self.columns[n].key, self.columns[n].share * unit) for n in numbers}

    @contextmanager
    def _laying(self) -> Iterator[None]:
        self._is_laying = True
        try:
            yield
        finally:
            self._is_laying = False
        self.laid.emit()

    def _resized(self, number: int, _before: int, size: int) -> None:
        """A person drags the right edge of a column: those before it stay, and what follows gives or takes the room."""
        if self._is_laying:
            return
        order = [n for n in map(self.logicalIndex, range(self.count())) if not self.isSectionHidden(n)]
        after = order[order.index(number) + 1 :]
        takers = [n for n in after if not self.columns[n].width] or after[:1]
        room = self._room - sum(self.sectionSize(n) for n in order if n != number and n not in takers)
        least = sum(self.columns[n].narrowest for n in takers)
        size = max(min(size, room - least), self.columns[number].narrowest) if takers else room
        whole = sum(self.sectionSize(n) for n in takers) or 1
        sizes = {n: max(self.columns[n].narrowest, (room - size) * self.sectionSize(n) // whole) for n in takers}
        with self._laying():
            for one, wide in {number: size, **sizes}.items():
                self.resizeSection(one, wide)
            self._set |= {self.columns[n].key: self.sectionSize(n) for n in order}

    def show_sorted(self, key: str, descending: bool) -> None:
        """Marks the sorted column."""
        self.sorted_by = (key, descending)
        self.viewport().update()

    # --- by the menu, and for the next start ------------------------------------------------------------------------

    def menu(self) -> QMenu:
        """Everything that can be done with the columns, for the keyboard too."""
        menu = QMenu(self)
        menu.aboutToHide.connect(menu.deleteLater)
        titled = [(number, column) for number, column in enumerate(self.columns) if column.title]
        for number, column in titled[1:]:
            entry = menu.addAction(column.title)
            entry.setCheckable(True)
            entry.setChecked(not self.isSectionHidden(number))
            entry.toggled.connect(lambda on, key=column.key: self._wanted.update({key: on}))
            entry.toggled.connect(lambda _on: self.lay(self._room))
        menu.addSeparator()
        for number, column in titled:
            if not self.isSectionHidden(number):
                self._add_part(menu.addMenu(column.title), number)
        menu.addAction("Default columns").triggered.connect(lambda: self.recall({}))
        return menu

    def _add_part(self, menu: QMenu, number: int) -> None:
        acts: dict[str, Callable[[], object]] = {
            "Wider": lambda: self.resizeSection(number, self.sectionSize(number) + _STEP),
            "Narrower": lambda: self.resizeSection(number, self.sectionSize(number) - _STEP),
            "Move left": lambda: self._move(number, -1),
            "Move right": lambda: self._move(number, 1),
        }
        if not number:
            del acts["Move left"], acts["Move right"]
        if self.columns[number].key in self._sorts:
            acts["Sort, or turn the order"] = lambda: self._sort(self.columns[number].key)
        for words, act in acts.items():
            menu.addAction(words).triggered.connect(lambda _on=False, act=act: act())

    def _sort(self, key: str) -> None:
        if key in self._sorts:
            self.sort_asked.emit(key)

    def _move(self, number: int, by: int) -> None:
        """Past the next column that is shown; the first stays first."""
        at = self.visualIndex(number)
        to = at + by
        while 0 < to < self.count() and self.isSectionHidden(self.logicalIndex(to)):
            to += by
        if 0 < to < self.count():
            self.moveSection(at, to)

    def remembered(self) -> dict[str, Any]:
        """What a person set; empty when nothing."""
        order = [self.columns[n].key for n in map(self.logicalIndex, range(self.count()))]
        moved = order if order != [column.key for column in self.columns] else []
        kept = {"widths": self._set, "shown": self._wanted, "order": moved}
        return {name: value for name, value in kept.items() if value}

    def recall(self, kept: dict[str, Any]) -> None:
        """Takes back what ``remembered`` gave; what does not fit is ignored, and a column that is new keeps its place."""
        keys = [column.key for column in self.columns]
        least = {column.key: column.narrowest for column in self.columns}
        widths, shown, order = kept.get("widths"), kept.get("shown"), kept.get("order")
        self._set = {k: max(v, least[k]) for k, v in _items(widths) if k in least and type(v) is int and 0 < v < 10_000}
        self._wanted = {k: v for k, v in _items(shown) if k in keys[1:] and isinstance(v, bool)}
        named = [key for key in order if key in keys] if isinstance(order, list) else []
        rest = iter(dict.fromkeys(named))
        wanted = [next(rest, key) if key in named else key for key in keys]
        if len(set(wanted)) == len(keys) and wanted[0] == keys[0]:
            with self._laying():
                for place, key in enumerate(wanted):
                    self.moveSection(self.visualIndex(keys.index(key)), place)
        self.lay(self._room)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.menu().popup(event.globalPos())

    def paintSection(self, painter: QPainter, rect: QRect, logicalIndex: int) -> None:
        colours = ink()
        column = self.columns[logicalIndex]
        painter.fillRect(rect, QColor(getattr(colours, self.ground)))
        painter.setPen(QColor(colours.line2))
        painter.drawLine(rect.bottomLeft(), rect.bottomRight())
        box = QRectF(rect).adjusted(lead(logicalIndex), 0, -10, 0)
        key, descending = self.sorted_by
        draw_text(
            painter, box, column.title, fonts.ui(11, fonts.MEDIUM), colours.text if key == column.key else colours.text2, right=column.right
        )
        if key == column.key:
            width = fonts.metrics(fonts.ui(11, fonts.MEDIUM)).horizontalAdvance(column.title)
            x = box.right() - width - 10 if column.right else box.x() + width + 5
            y, turn = rect.center().y(), 1 if descending else -1
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(colours.text2))
            painter.drawPolygon(QPolygonF([QPointF(x, y - 2 * turn), QPointF(x + 6, y - 2 * turn), QPointF(x + 3, y + 2 * turn)]))

    def sizeHint(self) -> QSize:
        return QSize(100, ROW)


def titles_in_front(page: QWidget) -> RowHeader | None:
    """The titles of the list that has the focus, else of the first on the page; None where no list has titles."""
    seen = [header for header in page.findChildren(RowHeader) if header.isVisible()]
    focused = page.window().focusWidget()
    return next((one for one in seen if one.parentWidget() is focused), seen[0] if seen else None)


def _items(kept: Any) -> list[tuple[str, Any]]:
    return [(str(key), value) for key, value in kept.items()] if isinstance(kept, dict) else []
