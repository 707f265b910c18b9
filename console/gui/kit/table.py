"""Tables whose columns are declared whole: what a cell says, how it is painted, and what it is sorted by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtWidgets import QWidget

from console.gui.theme import fonts
from console.gui.theme.icons import icon_pixmap
from console.gui.widgets.marks import draw_text
from console.gui.widgets.rows import Canvas, Column, RowModel, RowPainter, RowView, Sorts, by_words
from console.gui.widgets.safe_text import safe_text
from console.panic.marks import draw_mark

R = TypeVar("R")
V = TypeVar("V", bound=RowView)
Shape = tuple[str, str, str]
"""(word, shape, colour): state is never colour alone."""
LOUD = ("warn", "danger")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell(Column, Generic[R]):
    """One column of a table, for rows of type ``R``. Sorted by nothing unless it says by what."""

    words: Callable[[R], str]
    """What a cell says to a tooltip, a screen reader and the clipboard."""
    text: Callable[[R], str] | None = None
    """What is painted, where that is other than ``words``."""
    role: str | Callable[[R], str] = "text"
    """The colour of the text."""
    mono: bool | Callable[[R], bool] = False
    size: int = 12
    weight: int | Callable[[R], int] = fonts.REGULAR
    shape: Callable[[R], Shape] | None = None
    """A mark and a word, in place of the text."""
    quiet: str = ""
    """The colour of such a word that is no warning, where it is other than the mark's."""
    paint: Callable[[Canvas, R], None] | None = None
    """Paints the cell by hand, in place of the text."""
    sort: Callable[[R], Any] | Literal["words"] | None = None
    """What rows are sorted by; None of it comes last."""

    def draw(self, canvas: Canvas, row: R) -> None:
        """Paints the cell of one row."""
        if self.paint is not None:
            self.paint(canvas, row)
        elif self.shape is not None:
            paint_shape(canvas, self.key, self.shape(row), self.quiet)
        else:
            role = self.role if isinstance(self.role, str) else self.role(row)
            mono = self.mono if isinstance(self.mono, bool) else self.mono(row)
            weight = self.weight if isinstance(self.weight, int) else self.weight(row)
            canvas.text(self.key, (self.text or self.words)(row), role, size=self.size, weight=weight, mono=mono, right=self.right)


def words_of(cells: Sequence[Cell[Any]]) -> Callable[[Any, str], str]:
    """What a cell says, by the key of its column."""
    found = {cell.key: cell.words for cell in cells}
    return lambda row, key: found[key](row)


def sorts_of(cells: Sequence[Cell[Any]]) -> Sorts:
    """What the columns that sort are sorted by."""
    worded = by_words(words_of(cells), *(cell.key for cell in cells if cell.sort == "words"))
    return {**worded, **{cell.key: cell.sort for cell in cells if callable(cell.sort)}}


def painter_of(cells: Sequence[Cell[Any]]) -> RowPainter:
    """Paints a row, cell by cell; a column that is hidden costs nothing."""

    def paint(canvas: Canvas, row: Any) -> None:
        for cell in cells:
            if cell.key in canvas.cells:
                cell.draw(canvas, row)

    return paint


def listing(
    name: str,
    cells: Sequence[Cell[Any]],
    key: Callable[[Any], str],
    parent: QWidget,
    view: Callable[..., V],
    **more: Any,
) -> V:
    """A list of such rows; ``name`` is for screen readers, ``key`` is what a row is known by, ``view`` RowView or ManyRowView."""
    made = view(RowModel(cells, words_of(cells), parent), painter_of(cells), key, parent, sorts=sorts_of(cells), **more)
    made.setAccessibleName(name)
    return made


def matches(text: str, *parts: str) -> bool:
    """Whether all typed words occur in some part, in whatever case; without words everything matches."""
    words = text.lower().split()
    haystack = "\0".join(parts).lower() if words else ""
    return all(word in haystack for word in words)


def is_in(view: RowView, key: str, at: QPointF) -> bool:
    """Whether a point of the view lies in that column."""
    number = next(number for number, column in enumerate(view.row_model.columns) if column.key == key)
    left = view.columnViewportPosition(number)
    return not view.isColumnHidden(number) and left <= at.x() <= left + view.columnWidth(number)


def paint_shape(canvas: Canvas, key: str, shape: Shape, quiet: str = "", weight: int | None = None) -> None:
    """Mark and word in a cell; ``quiet`` as a Cell has it."""
    cell = canvas.cells.get(key)
    if cell is None:
        return
    word, mark, role = shape
    loud = role in LOUD
    if mark:
        draw_mark(canvas.painter, mark, QRectF(cell.x() + 1, cell.center().y() - 4, 9, 9), getattr(canvas.ink, role))
    face = fonts.ui(12, weight or (fonts.SEMIBOLD if loud else fonts.REGULAR))
    colour = getattr(canvas.ink, role if loud or not quiet else quiet)
    draw_text(canvas.painter, cell.adjusted(17, 0, 8, 0), safe_text(word, 200), face, colour)


def paint_icon(canvas: Canvas, key: str, icon: str, words: str, role: str, *, icon_role: str = "", weight: int = fonts.REGULAR) -> None:
    """An icon and words in a cell."""
    cell = canvas.cells.get(key)
    if cell is None:
        return
    picture = icon_pixmap(icon, getattr(canvas.ink, icon_role or role), 12)
    canvas.painter.drawPixmap(QPointF(cell.x(), cell.center().y() - 6), picture)
    draw_text(canvas.painter, cell.adjusted(18, 0, 0, 0), safe_text(words), fonts.ui(12, weight), getattr(canvas.ink, role))
