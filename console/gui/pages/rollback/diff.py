"""Side by side: what a restore puts back at the left, what is on disk now at the right. Only what is in sight is painted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractScrollArea, QWidget

from console.api.records import DiffLine
from console.gui.theme import fonts
from console.gui.theme.tokens import Ink, ink
from console.gui.widgets.marks import draw_text
from console.gui.widgets.safe_text import safe_text

LINE = 20
_NUMBER = 36
_TEXT = 58
_LONGEST = 2000


@dataclass(frozen=True, slots=True)
class Half:
    """One line of one side as it is painted; ``number`` None: the line exists on the other side only."""

    number: int | None
    sign: str
    text: str
    mark: tuple[int, int] = (0, 0)
    """The changed part, as a range of characters."""


def halves(line: DiffLine) -> tuple[Half, Half]:
    """(before, now). On the wire left is the file now and right what is put back; here before stands at the left, as it came first."""
    before, now = _shown(line.right), _shown(line.left)
    match line.sign:
        case "-":
            return Half(None, "", ""), Half(line.left_no, "+", now, (0, 0))
        case "+":
            return Half(line.right_no, "−", before, (0, 0)), Half(None, "", "")
        case "~":
            old, new = changed_part(before, now)
            return Half(line.right_no, "−", before, old), Half(line.left_no, "+", now, new)
    return Half(line.right_no, "", before), Half(line.left_no, "", now)


def _shown(text: str) -> str:
    return safe_text(text.replace("\t", "    "), _LONGEST)


def changed_part(old: str, new: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """The ranges between what both lines begin and end with: linear, whatever the lines hold."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return (head, len(old) - tail), (head, len(new) - tail)


def counts(lines: Sequence[DiffLine]) -> tuple[int, int, int]:
    """Lines the agent (added, removed, changed)."""
    signs = [line.sign for line in lines]
    return signs.count("-"), signs.count("+"), signs.count("~")


class DiffView(QAbstractScrollArea):
    """``say`` swaps the lines; both halves scroll together."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._lines: list[DiffLine] = []
        self._halves: dict[int, tuple[Half, Half]] = {}
        self._note = ""
        self.setFrameShape(QAbstractScrollArea.Shape.NoFrame)
        self.setAccessibleName("Differences")
        self.setMinimumHeight(6 * LINE)
        self.verticalScrollBar().setSingleStep(LINE)
        self.horizontalScrollBar().setSingleStep(24)

    def say(self, lines: Sequence[DiffLine], note: str) -> None:
        """``note`` stands there when there are no lines. An unchanged diff keeps its place."""
        if list(lines) == self._lines and note == self._note:
            return
        self._lines, self._halves, self._note = list(lines), {}, safe_text(note, 400)
        added, removed, changed = counts(self._lines)
        self.setAccessibleDescription(f"{added} lines added, {removed} removed, {changed} changed. {self._note}")
        self.verticalScrollBar().setValue(self._first_change())
        self._lay()
        self.verticalScrollBar().setValue(self._first_change())
        self.viewport().update()

    def shown(self, number: int) -> tuple[Half, Half]:
        """The halves of a line, made when first asked for."""
        made = self._halves.get(number)
        if made is None:
            made = self._halves[number] = halves(self._lines[number])
        return made

    def _first_change(self) -> int:
        first = next((n for n, line in enumerate(self._lines) if line.sign), 0)
        return max(0, first - 3) * LINE

    def _lay(self) -> None:
        page = self.viewport().height()
        bar = self.verticalScrollBar()
        bar.setRange(0, max(0, len(self._lines) * LINE - page))
        bar.setPageStep(page)
        longest = max((min(_LONGEST, max(len(x.left), len(x.right))) for x in self._lines), default=0)
        wide = fonts.metrics(fonts.mono(11)).horizontalAdvance("0") * (longest + 2) + _TEXT
        side = self.horizontalScrollBar()
        side.setRange(0, max(0, wide - self.viewport().width() // 2))
        side.setPageStep(self.viewport().width() // 2)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay()

    def sizeHint(self) -> QSize:
        return QSize(600, 16 * LINE)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self.viewport())
        area: QRect = self.viewport().rect()
        painter.fillRect(area, QColor(colours.bg2))
        if not self._lines:
            draw_text(painter, QRectF(16, 12, area.width() - 32, 20), self._note, fonts.ui(12), colours.text2)
            painter.end()
            return
        top = self.verticalScrollBar().value()
        half = area.width() / 2
        for number in range(top // LINE, min(len(self._lines), (top + area.height()) // LINE + 1)):
            y = number * LINE - top
            left, right = self.shown(number)
            self._paint_half(painter, QRectF(0, y, half, LINE), left, right, colours, old=True)
            self._paint_half(painter, QRectF(half, y, area.width() - half, LINE), right, left, colours, old=False)
        painter.fillRect(QRectF(half - 0.5, 0, 1, area.height()), QColor(colours.line2))
        painter.end()

    def _paint_half(self, painter: QPainter, box: QRectF, half: Half, other: Half, colours: Ink, *, old: bool) -> None:
        painter.save()
        painter.setClipRect(box)
        if half.number is None and other.number is not None:
            painter.fillRect(box, QBrush(QColor(colours.line2), Qt.BrushStyle.BDiagPattern))
        else:
            colour = QColor(colours.danger if old else colours.ok)
            if half.sign:
                colour.setAlphaF(0.16 if colours.is_dark else 0.12)
                painter.fillRect(box, colour)
            number = "" if half.number is None else str(half.number)
            draw_text(painter, QRectF(box.x(), box.y(), _NUMBER, LINE), number, fonts.mono(10), colours.text3, right=True)
            draw_text(painter, QRectF(box.x() + _NUMBER + 6, box.y(), 14, LINE), half.sign, fonts.mono(11), colours.text)
            self._paint_text(painter, box.adjusted(_TEXT, 0, 0, 0), half, colours, old=old)
        painter.restore()

    def _paint_text(self, painter: QPainter, box: QRectF, half: Half, colours: Ink, *, old: bool) -> None:
        painter.setClipRect(box, Qt.ClipOperation.IntersectClip)
        face = fonts.mono(11)
        seen = fonts.metrics(face)
        x = box.x() - self.horizontalScrollBar().value()
        start, end = half.mark
        if end > start:
            colour = QColor(colours.danger if old else colours.ok)
            colour.setAlphaF(0.34 if colours.is_dark else 0.28)
            left = seen.horizontalAdvance(half.text[:start])
            wide = seen.horizontalAdvance(half.text[:end]) - left
            painter.fillRect(QRectF(x + left - 1, box.y() + 2, wide + 2, LINE - 4), colour)
        painter.setFont(face)
        painter.setPen(QColor(colours.text))
        flags = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine | Qt.TextFlag.TextDontClip)
        painter.drawText(QRectF(x, box.y(), 10, LINE), flags, half.text)
