"""What a row of a table is painted with, and the pictures kept of it: what the screen showed a moment ago is put down again as it is.

A picture is known by everything that was painted into it, as a value; what may differ unseen must not be kept. A row that is seen
for the first time is painted where it stands: most of what a hand on the scroll bar passes is never asked for again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPixmap

from console.gui.theme import fonts
from console.gui.theme.tokens import Ink
from console.gui.widgets.marks import draw_text, pen_colour
from console.gui.widgets.safe_text import safe_text

ROWS_KEPT = 128
PARTS_KEPT = 768
Places = tuple[tuple[str, int, int], ...]
"""(key, left, width) of the cells that are shown."""


class Cells(dict[str, QRectF]):
    """Cells by column key. A painter need not ask for a hidden one: it is absent, and its box lies where no row is."""

    def __missing__(self, key: str) -> QRectF:
        return QRectF(-10_000, 0, 0, 0)


class Pictures:
    """Keep pictures by key, each with the value from which it was painted. The one unused for longest goes first.

    A new picture reuses the memory of a dropped one of its size: fresh memory costs more than the painting.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._kept: dict[Hashable, tuple[Hashable, QPixmap]] = {}

    def find(self, key: Hashable, sign: Hashable) -> QPixmap | None:
        """Return the picture of that key when it was painted from ``sign``."""
        kept = self._kept.get(key)
        if kept is None or kept[0] != sign:
            return None
        self._kept[key] = self._kept.pop(key)
        return kept[1]

    def blank(self, key: Hashable, width: int, height: int, ratio: float) -> QPixmap:
        """One to paint the new look of ``key`` on (logical pixels), to be kept when that is done; what is on it is rubbish."""
        found = self._kept.pop(key, None)
        if found is None and len(self._kept) >= self._room:
            found = self._kept.pop(next(iter(self._kept)))
        size = (round(width * ratio), round(height * ratio))
        if found is not None and (found[1].width(), found[1].height(), found[1].devicePixelRatio()) == (*size, ratio):
            return found[1]
        picture = QPixmap(*size)
        picture.setDevicePixelRatio(ratio)
        return picture

    def keep(self, key: Hashable, sign: Hashable, picture: QPixmap) -> None:
        """It is painted."""
        self._kept[key] = (sign, picture)


@dataclass(frozen=True, slots=True)
class Look:
    """What holds for every row of one frame; ``height`` of a row, ``ratio`` of device pixels to logical ones."""

    width: int
    height: int
    ratio: float
    ink: Ink
    ground: str
    """The colour behind the rows."""
    places: Places

    @property
    def sign(self) -> Hashable:
        """The same as a value that is soon compared."""
        return (self.width, self.height, self.ratio, self.ink.name, self.ground, self.places)


@dataclass(frozen=True, slots=True)
class Canvas:
    """What a row painter gets: cells by column key, the whole box, the colours, whether it is selected."""

    painter: QPainter
    box: QRectF
    cells: Cells
    ink: Ink
    selected: bool
    look: Look | None = None
    parts: Pictures | None = None
    """Where ``shared`` keeps what it painted; None: it keeps nothing."""

    def text(
        self,
        key: str,
        words: str,
        role: str = "text",
        *,
        size: int = 12,
        weight: int = fonts.REGULAR,
        mono: bool = False,
        right: bool = False,
    ) -> None:
        """One elided line in a cell; ``words`` goes through safe_text. text3 becomes text2 on a selected row (contrast)."""
        cell = self.cells.get(key)
        if cell is None:
            return
        role = "text2" if self.selected and role == "text3" else role
        face = fonts.mono(size - 1, min(weight, fonts.MEDIUM)) if mono else fonts.ui(size, weight)
        draw_text(self.painter, cell, safe_text(words), face, getattr(self.ink, role), right=right)

    def shared(self, box: QRectF, sign: Hashable, paint: Callable[[Canvas], None]) -> None:
        """Paint a part that looks alike in many rows once, then draw it as a picture. ``sign`` holds everything that ``paint`` reads.

        ``box`` is in whole pixels and covers what was painted there before. Its last line is left out, because on a dense screen the line
        under the row reaches into it. All that ``paint`` paints lies within ``box``.
        """
        look, box = self.look, box.adjusted(0, 0, 0, -1)
        if self.parts is None or look is None or self.selected or box.isEmpty():
            paint(self)
            return
        if (box.x() * look.ratio) % 1 or (box.width() * look.ratio) % 1 or (box.height() * look.ratio) % 1:
            paint(self)  # between device pixels a picture would be blurred
            return
        key = (sign, box.width(), box.height(), look.ratio, look.ink.name, look.ground)
        picture = self.parts.find(key, None)
        if picture is None:
            picture = self.parts.blank(key, round(box.width()), round(box.height()), look.ratio)
            picture.fill(QColor(look.ground))
            inside = QPainter(picture)
            inside.translate(-box.x(), -box.y())
            paint(replace(self, painter=inside))
            inside.end()
            self.parts.keep(key, None, picture)
        self.painter.drawPixmap(box.topLeft(), picture)


RowPainter = Callable[[Canvas, Any], None]


class Brush:
    """Paints rows; with ``sign``, only those that look other than their picture."""

    def __init__(self, paint: RowPainter, key: Callable[[Any], str], sign: Callable[[Any], Hashable] | None) -> None:
        self._paint, self._key, self._sign = paint, key, sign
        self._rows = Pictures(ROWS_KEPT)
        self._met: dict[str, Hashable] = {}
        """What each row looked like when it was painted last without a picture, the newest last."""
        self._cells: tuple[Places, int, Cells] = ((), 0, Cells())
        self._parts = Pictures(PARTS_KEPT) if sign is not None else None

    @property
    def keeps(self) -> bool:
        """Whether it knows when two rows look the same."""
        return self._sign is not None

    def sign(self, row: Any, selected: bool, look: Look) -> Hashable:
        """Everything that ``draw`` would paint."""
        return (self._key(row), self._sign(row) if self._sign is not None else None, selected, look.sign)

    def draw(self, painter: QPainter, y: int, row: Any, selected: bool, look: Look, sign: Hashable) -> None:
        """The row at ``y``; ``sign`` as ``sign`` gave it."""
        key = "" if self._sign is None else self._key(row)
        picture = None if self._sign is None else self._rows.find(key, sign)
        if self._sign is None or (picture is None and self._is_new(key, sign)):
            painter.translate(0, y)
            self._draw(painter, row, selected, look)
            painter.translate(0, -y)
            return
        if picture is None:
            picture = self._rows.blank(key, look.width, look.height, look.ratio)
            picture.fill(QColor(look.ground))
            inside = QPainter(picture)
            self._draw(inside, row, selected, look)
            inside.end()
            self._rows.keep(key, sign, picture)
        painter.drawPixmap(0, y, picture)

    def _is_new(self, key: str, sign: Hashable) -> bool:
        """Whether this look of that row is met for the first time."""
        if self._met.pop(key, None) == sign:
            return False
        self._met[key] = sign
        if len(self._met) > ROWS_KEPT:
            del self._met[next(iter(self._met))]
        return True

    def _boxes(self, look: Look) -> Cells:
        """Return the cells of any row of that look. Callers must not change them."""
        places, height, boxes = self._cells
        if places != look.places or height != look.height:
            boxes = Cells((key, QRectF(left, 0, width, look.height - 1)) for key, left, width in look.places)
            self._cells = (look.places, look.height, boxes)
        return boxes

    def _draw(self, painter: QPainter, row: Any, selected: bool, look: Look) -> None:
        """One row at the origin of the painter."""
        colours = look.ink
        box = QRectF(0, 0, look.width, look.height)
        if selected:
            painter.fillRect(box, QColor(colours.sel))
        painter.setPen(pen_colour(colours.line))
        painter.drawLine(0, look.height - 1, look.width, look.height - 1)
        self._paint(Canvas(painter, box, self._boxes(look), colours, selected, look, self._parts), row)
        if selected:
            painter.setPen(QPen(QColor(colours.accent), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(box.adjusted(0, 0, -1, -1.5))
            painter.fillRect(QRectF(0, 0, 3, box.height() - 1), QColor(colours.accent))
