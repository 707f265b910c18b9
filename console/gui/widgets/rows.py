"""Tables of any length: a plain list behind one model, one paint call per visible row, one viewport update per tick.

The stock delegate asks eight roles per cell; one Python call per row is ten times cheaper, so rows are painted whole. A view that knows
when two rows look the same repaints only those that changed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from PySide6.QtCore import (
    QEvent,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPoint,
    QPointF,
    QRect,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QAction,
    QGuiApplication,
    QHelpEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QRegion,
    QResizeEvent,
    QStandardItemModel,
)
from PySide6.QtWidgets import QAbstractItemView, QStyle, QStyleOptionViewItem, QToolTip, QTreeView, QWidget

from console.gui.theme.tokens import ROW, ink
from console.gui.widgets.canvas import Brush, Canvas, Look, Places, RowPainter
from console.gui.widgets.columns import Column, RowHeader, lead
from console.gui.widgets.safe_text import safe_text, tooltip

__all__ = ["Canvas", "Column", "ManyRowView", "Order", "RowHeader", "RowModel", "RowPainter", "RowView", "Sorts", "by_words"]

Index = QModelIndex | QPersistentModelIndex
Sorts = Mapping[str, Callable[[Any], Any] | None]
"""Column -> what its rows are sorted by (None: not known, comes last); without a function the list arranges itself."""

PLACES = 4096
"""Places of the list of which a view remembers what they showed."""


class RowModel(QStandardItemModel):
    """Adapts a plain list; ``words(row, key)`` is what a cell says to a screen reader, a tooltip and the clipboard.

    It holds no items: Qt's own model only counts rows, so that laying out 100,000 of them asks Python nothing.
    """

    def __init__(self, columns: Sequence[Column], words: Callable[[Any, str], str], parent: QWidget | None = None) -> None:
        super().__init__(0, len(columns), parent)
        self.columns = tuple(columns)
        self.rows: list[Any] = []
        self.row_height = ROW
        self._words = words

    def replace(self, rows: list[Any]) -> None:
        """Swaps the list. As many rows as before need no layout, only a repaint; a kept row is found again by its key."""
        self.rows = rows
        if self.rowCount() != len(rows):
            self.setRowCount(len(rows))

    def words(self, row: int, column: int) -> str:
        """The cell's text, safe to show."""
        return safe_text(self._words(self.rows[row], self.columns[column].key), 1000)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= len(self.rows):
            return None
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return self.words(index.row(), index.column())
        if role == Qt.ItemDataRole.SizeHintRole:
            return QSize(10, self.row_height)
        if role == Qt.ItemDataRole.ToolTipRole:
            return tooltip(self.words(index.row(), index.column()))
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is Qt.Orientation.Horizontal and role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return self.columns[section].title
        return None


def _offer_copy(view: RowView, model: RowModel, ident: Callable[[Any], str] | None) -> None:
    """A right click, or Ctrl C, copies the selected rows as they are shown, cells parted by tabs; their ids by Ctrl Shift C."""

    def shown(number: int) -> str:
        return "\t".join(model.words(number, column) for column in range(len(model.columns)))

    def offer(title: str, keys: QKeySequence, words: Callable[[int], str]) -> None:
        action = QAction(title, view)
        action.setToolTip(tooltip(f"{title}: of each selected row, as it is shown."))
        action.setShortcut(keys)
        action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        action.triggered.connect(lambda: QGuiApplication.clipboard().setText("\n".join(words(number) for number in view.picked())))
        view.addAction(action)

    offer("Copy", QKeySequence(QKeySequence.StandardKey.Copy), shown)
    if ident is not None:
        offer("Copy the id", QKeySequence("Ctrl+Shift+C"), lambda number: safe_text(ident(model.rows[number]), 200))
    view.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)


class Order(QObject):
    """The order that a person gave a list by a click on a title, over the list's own. The arrow of the title shows it.

    A title that sorts has a hand as its pointer. A list whose order means something declares nothing: its titles are words.
    """

    changed = Signal()

    def __init__(self, view: RowView, sorts: Sorts) -> None:
        super().__init__(view)
        self._view, self._sorts, self._titles = view, sorts, view.titles
        self.by: tuple[str, bool] = ("", False)
        """The column, and whether the greatest comes first; no column: the list's own order."""
        self.given: list[Any] = []
        """The rows in the list's own order, as they were shown last."""
        self.depth: Callable[[Any], int] = lambda _row: 0
        """How deep a row lies: one that lies deeper than the row before it belongs to it and goes where it goes."""
        self.meaning = ""
        """Why this list keeps its order."""
        self._titles.viewport().installEventFilter(self)
        view.sort_asked.connect(self._turn)

    def keep(self, key: str, meaning: str, *, descending: bool = False) -> None:
        """No click changes the order, which the arrow and the tooltip tell."""
        self.meaning = meaning
        self._titles.show_sorted(key, descending)

    def arrange(self, rows: list[Any]) -> list[Any]:
        """The rows in the order that was asked for; without one the same list."""
        value = self._sorts.get(self.by[0])
        return _arranged(rows, value, self.by[1], self.depth) if value is not None else rows

    def remembered(self) -> dict[str, Any]:
        """What a person asked for; empty when nothing."""
        return {"by": list(self.by)} if self.by[0] else {}

    def recall(self, kept: dict[str, Any]) -> None:
        """Takes back what ``remembered`` gave; a column that sorts no longer is ignored."""
        match kept.get("by"):
            case [str() as key, bool() as descending] if key in self._sorts:
                self._set(key, descending)

    def _turn(self, key: str) -> None:
        """Words from A, figures from the greatest; then the other way round; then the list's own order again."""
        value = self._sorts.get(key)
        first = next((found for row in self.given if value and (found := value(row)) is not None), 0)
        down = not isinstance(first, str)
        if self.by[0] != key:
            self._set(key, down)
        elif self.by[1] == down:
            self._set(key, not down)
        else:
            self._set("", False)

    def _set(self, key: str, descending: bool) -> None:
        self.by = (key, descending)
        self._titles.show_sorted(key, descending)
        self._view.show_rows(self.given)
        self.changed.emit()

    def _title_at(self, at: QPoint) -> Column | None:
        """The title under the pointer that sorts; None on an edge that is dragged."""
        edge = self._titles.style().pixelMetric(QStyle.PixelMetric.PM_HeaderGripMargin, None, self._titles)
        number = self._titles.logicalIndexAt(at)
        if number < 0 or any(self._titles.logicalIndexAt(at + QPoint(by, 0)) != number for by in (-edge, edge)):
            return None
        column = self._titles.columns[number]
        return column if column.key in self._sorts else None

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QMouseEvent) and event.type() is QEvent.Type.MouseMove:
            viewport = self._titles.viewport()
            if self._title_at(event.position().toPoint()) is not None and not event.buttons():
                viewport.setCursor(Qt.CursorShape.PointingHandCursor)
            else:
                viewport.unsetCursor()
        elif isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            column = self._title_at(event.pos())
            QToolTip.showText(event.globalPos(), tooltip(f"Sort by {column.title}" if column else self.meaning), self._titles)
            return True
        return super().eventFilter(watched, event)


def by_words(words: Callable[[Any, str], str], *keys: str) -> Sorts:
    """Columns that are sorted by what their cells say; an empty cell comes last."""
    return {key: lambda row, key=key: words(row, key).lower() or None for key in keys}  # type: ignore[misc]


def _arranged(rows: list[Any], value: Callable[[Any], Any], descending: bool, depth: Callable[[Any], int]) -> list[Any]:
    """Sorts rows that lie equally deep under the same row; what has no value comes last in either direction."""
    blocks: list[list[Any]] = []
    for row in rows:
        if blocks and depth(row) > depth(blocks[-1][0]):
            blocks[-1].append(row)
        else:
            blocks.append([row])
    keyed = [(value(block[0]), block) for block in blocks]
    known = sorted((one for one in keyed if one[0] is not None), key=lambda one: one[0], reverse=descending)
    out: list[Any] = []
    for _key, block in [*known, *(one for one in keyed if one[0] is None)]:
        out += [block[0], *_arranged(block[1:], value, descending, depth)] if len(block) > 1 else block
    return out


_ALONE = QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows


class RowView(QTreeView):
    """A list of rows with its own painter. Selection and scroll position survive ``show_rows`` (rows are known by ``key``)."""

    chosen = Signal(object)
    """The current row, or None."""
    opened = Signal(object)
    """Enter or double click on a row."""
    sort_asked = Signal(str)
    """A column title was clicked: its key."""
    fold_asked = Signal(object, bool)
    """Left (False) or Right (True) on a row."""
    pressed_at = Signal(object, QPointF)
    """A row was clicked, with the position inside the view."""

    def __init__(
        self,
        model: RowModel,
        paint: RowPainter,
        key: Callable[[Any], str],
        parent: QWidget | None = None,
        *,
        row_height: int = ROW,
        sign: Callable[[Any], Hashable] | None = None,
        sorts: Sorts | None = None,
        ident: Callable[[Any], str] | None = None,
    ) -> None:
        """``sign``: everything ``paint`` would paint of a row, as a value; rows whose sign is the same are not painted again.

        ``sorts``: columns whose title sorts the list. ``ident``: the id of a row, for Ctrl Shift C.
        """
        super().__init__(parent)
        self._brush = Brush(paint, key, sign)
        self._shown: dict[int, Hashable] = {}
        """What each place of the list shows on the screen, or will after the update that was asked for."""
        self._look: Look | None = None
        self._exposed = QRegion()
        self.setObjectName("rows")
        self.row_model, self._key, self._row_height = model, key, row_height
        self._quiet = False
        self._several: frozenset[int] = frozenset()
        """Places of the selected rows, while there are more than one."""
        self._places: Places = ()
        """There is no scrolling sideways."""
        model.row_height = row_height
        self.titles = RowHeader(model.columns, sorts or {}, self)
        self.setHeader(self.titles)
        self.titles.setSectionsClickable(bool(sorts))  # a tree view takes the clicks from its header while Qt's own sorting is off
        self.order = Order(self, sorts or {})
        self.setModel(model)
        self.setRootIsDecorated(False)
        self.setItemsExpandable(False)
        self.setUniformRowHeights(True)
        self.setAllColumnsShowFocus(True)
        self.setIndentation(0)
        self.setFrameShape(QTreeView.Shape.NoFrame)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.titles.sort_asked.connect(self.sort_asked)
        self.titles.laid.connect(self._laid)
        self.doubleClicked.connect(lambda _index: self.opened.emit(self.current()))
        self.verticalScrollBar().setSingleStep(row_height)
        _offer_copy(self, model, ident)

    def current(self) -> Any:
        """The current row's object, or None."""
        index = self.currentIndex()
        return self.row_model.rows[index.row()] if index.isValid() and index.row() < len(self.row_model.rows) else None

    def picked(self) -> list[int]:
        """Places of the selected rows, from the top: the current one, or several."""
        places = sorted(self._several) or [self.currentIndex().row()]
        return [number for number in places if 0 <= number < len(self.row_model.rows)]

    def show_rows(self, rows: list[Any], given: list[Any] | None = None) -> None:
        """Swaps the list; the selected row stays selected while it is in it. ``chosen`` is emitted only when it left or came.

        ``given``: the rows in the list's own order, where ``rows`` are arranged already.
        """
        self.order.given = rows if given is None else given
        rows = self.order.arrange(rows) if given is None else rows
        before = self.current()
        wanted = self._key(before) if before is not None else ""
        place = self.verticalScrollBar().value()
        self._quiet = True
        self.row_model.replace(rows)
        found = self.choose(wanted, scroll=False) if wanted else False
        if before is not None and not found:
            self.setCurrentIndex(QModelIndex())  # Qt keeps the place: whoever stands there now was chosen by nobody
        self.verticalScrollBar().setValue(place)
        self._quiet = False
        self.refresh()  # as many rows as before is no news to Qt
        if before is not None and not found:
            self.chosen.emit(None)

    def choose(self, key: str, *, scroll: bool = True) -> bool:
        """Makes the row of that key current; False when it is not in the list."""
        for number, row in enumerate(self.row_model.rows):
            if self._key(row) == key:
                self.setAutoScroll(scroll)
                self.selectionModel().setCurrentIndex(self.row_model.index(number, 0), _ALONE)
                self.setAutoScroll(True)
                return True
        return False

    def retitle(self, key: str, title: str) -> None:
        """Another title for a column: the list shows something else now."""
        columns = tuple(replace(c, title=title) if c.key == key else c for c in self.row_model.columns)
        self.row_model.columns = self.titles.columns = columns
        self.titles.viewport().update()

    def lie_on(self, ground: str) -> None:
        """The colour of the theme behind the rows: bg1 on a page, bg2 in a card."""
        self.titles.ground = ground
        self.setProperty("ground", ground)

    def refresh(self) -> None:
        """Repaints what is visible and looks other than it did; rows were changed in place."""
        first = self.indexAt(QPoint(0, 0)).row()
        if not self._brush.keeps or first < 0:
            self.viewport().update()
            return
        look, rows, marked = self._frame(), self.row_model.rows, self._several or {self.currentIndex().row()}
        for number in range(first, min(len(rows), first + self.viewport().height() // self._row_height + 2)):
            sign = self._brush.sign(rows[number], number in marked, look)
            if self._shown.get(number) != sign:
                self._shown[number] = sign
                self.viewport().update(0, self.visualRect(self.row_model.index(number, 0)).y(), look.width, look.height)

    def _frame(self) -> Look:
        colours = ink()
        ground = getattr(colours, str(self.property("ground") or "bg1"))
        return Look(self.viewport().width(), self._row_height, self.devicePixelRatioF(), colours, ground, self._places)

    def _laid(self) -> None:
        """The columns stand elsewhere."""
        self._shown.clear()
        self._places = tuple(
            (column.key, self.columnViewportPosition(number) + lead(number), max(0, self.columnWidth(number) - 10 - lead(number)))
            for number, column in enumerate(self.row_model.columns)
            if not self.isColumnHidden(number)
        )
        self.viewport().update()

    def currentChanged(self, current: Index, previous: Index) -> None:
        super().currentChanged(current, previous)
        if not self._quiet:
            self.chosen.emit(self.current())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.current() is not None:
            self.opened.emit(self.current())
            return
        if event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right) and self.current() is not None:
            self.fold_asked.emit(self.current(), event.key() == Qt.Key.Key_Right)
            return
        if event.text().isprintable() and event.text() and not event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            event.ignore()  # letters are the page's keys, not a search in the list
            return
        super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        index = self.indexAt(event.position().toPoint())
        if index.isValid() and event.button() is Qt.MouseButton.LeftButton:
            self.pressed_at.emit(self.row_model.rows[index.row()], event.position())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.titles.lay(self.viewport().width())

    def paintEvent(self, event: QPaintEvent) -> None:
        self._look, self._exposed = self._frame(), event.region()
        if len(self._shown) > PLACES:
            self._shown.clear()
            self.viewport().update()
        super().paintEvent(event)

    def drawRow(self, painter: QPainter, options: QStyleOptionViewItem, index: Index) -> None:
        number = index.row()
        if number >= len(self.row_model.rows):
            return
        look = self._look or self._frame()
        strip: QRect = options.rect
        row, selected = self.row_model.rows[number], number in self._several if self._several else self.currentIndex().row() == number
        sign = self._brush.sign(row, selected, look)
        if self._brush.keeps and self._shown.get(number) != sign:
            if number in self._shown and not QRegion(strip).subtracted(self._exposed).isEmpty():
                self.viewport().update(strip)  # only a part of it is painted now: the rest still shows what was
            self._shown[number] = sign
        self._brush.draw(painter, strip.y(), row, selected, look, sign)


class ManyRowView(RowView):
    """A list in which several rows are selected by Shift or Ctrl with a click or an arrow, or all by Ctrl A."""

    picked_changed = Signal()
    """Other rows are selected, or another number of them."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        for moved in (self.row_model.rowsInserted, self.row_model.rowsRemoved):  # Qt moves the selection with the rows and does not tell
            moved.connect(lambda *_places: self._count())

    def picked_rows(self) -> list[Any]:
        """The selected rows, from the top."""
        return [self.row_model.rows[number] for number in self.picked()]

    def show_rows(self, rows: list[Any], given: list[Any] | None = None) -> None:
        keys = {self._key(row) for row in self.picked_rows()} if self._several else set()
        super().show_rows(rows, given)
        if keys:
            self._pick([number for number, row in enumerate(self.row_model.rows) if self._key(row) in keys])

    def _pick(self, numbers: list[int]) -> None:
        """Selects the rows at these places; when the current one has left, the first of them takes its part."""
        chosen, last = QItemSelection(), len(self.row_model.columns) - 1
        starts = [number for at, number in enumerate(numbers) if not at or numbers[at - 1] != number - 1]
        ends = [number for at, number in enumerate(numbers) if at + 1 == len(numbers) or numbers[at + 1] != number + 1]
        for start, end in zip(starts, ends, strict=True):
            chosen.select(self.row_model.index(start, 0), self.row_model.index(end, last))
        if numbers and self.currentIndex().row() not in numbers:
            self.selectionModel().setCurrentIndex(self.row_model.index(numbers[0], 0), QItemSelectionModel.SelectionFlag.NoUpdate)
        self.selectionModel().select(chosen, _ALONE)

    def _count(self) -> frozenset[int]:
        ranges = self.selectionModel().selection()
        found = frozenset(n for at in range(ranges.size()) for n in range(ranges.at(at).top(), ranges.at(at).bottom() + 1))
        self._several = found if len(found) > 1 else frozenset()
        return found

    def selectionChanged(self, selected: QItemSelection, deselected: QItemSelection) -> None:
        found = self._count()
        super().selectionChanged(selected, deselected)
        if len(found) == 1 and self.currentIndex().row() not in found:
            left = self.row_model.index(next(iter(found)), 0)  # the other of two was taken out by Ctrl and a click: this one is meant now
            self.selectionModel().setCurrentIndex(left, QItemSelectionModel.SelectionFlag.NoUpdate)
        self.refresh()
        self.picked_changed.emit()
