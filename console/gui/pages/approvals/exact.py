"""The exact request as plain text: line numbers, chips for hostile characters; what is selected and copied is what is seen."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from PySide6.QtCore import QEvent, QMimeData, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPaintEvent, QPen, QResizeEvent, QTextBlock, QTextCharFormat, QTextLayout, QTextOption
from PySide6.QtWidgets import QPlainTextEdit, QSizePolicy, QWidget

from console.gui.pages.approvals.hostile import Chip, Shown, ShownLine
from console.gui.theme import fonts
from console.gui.theme.tokens import ink
from console.gui.widgets.marks import draw_text

MARGIN = 40
LINE = 24
HIGHEST = 312
PIECE = 1_000
"""Characters laid out at once."""
MORE = -1
"""The number of a piece that goes on with the line before."""
CHIPS_MAX = 1_500
"""Chips that are drawn as such; the others stay readable as <U+202E>."""


class _Numbers(QWidget):
    """The margin: numbers of the request's own lines."""

    def __init__(self, view: ExactView) -> None:
        super().__init__(view)
        self._view = view

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        for block, top, height in self._view.visible_blocks():
            line = self._view.line(block.blockNumber())
            if line is not None and line.number > 0:
                box = QRectF(0, top + self._view.viewport().y() - self.y(), MARGIN - 14, min(height, LINE))
                draw_text(painter, box, str(line.number), fonts.mono(11), ink().text3, right=True)
        painter.end()


class ExactView(QPlainTextEdit):
    """Read-only, never rendered as anything; as high as its lines, up to HIGHEST, then it scrolls."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("exact")
        self.setReadOnly(True)
        self.setTabChangesFocus(True)
        self.setFont(fonts.mono(12))
        self.setAccessibleName("Exact request")
        self.setWordWrapMode(QTextOption.WrapMode.WrapAnywhere)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setViewportMargins(MARGIN, 6, 6, 6)
        self._lines: list[ShownLine] = []
        self._chips: dict[int, tuple[Chip, ...]] = {}
        self._numbers = _Numbers(self)
        self.updateRequest.connect(lambda _box, _dy: self._numbers.update())

    def say(self, shown: Shown) -> None:
        """Another text; the same one again changes nothing (a selection stays)."""
        lines = [piece for line in shown.lines for piece in pieces(line)]
        if lines == self._lines:
            return
        self._lines = lines
        self._chips, left = {}, CHIPS_MAX
        for number, line in enumerate(lines):
            if line.chips and left > 0:
                self._chips[number] = line.chips[:left]
                left -= len(line.chips)
        self.setPlainText("\n".join(line.text for line in lines))
        self._paint_letters()
        self._fit()

    def _paint_letters(self) -> None:
        """Chips and headings in their own letters; only the blocks that have some are touched, however many there are."""
        for number, line in enumerate(self._lines):
            chips = self.chips(number)
            if chips or line.number == 0:
                block = self.document().findBlockByNumber(number)
                block.layout().setFormats(_letters(line, chips))
                self.document().markContentsDirty(block.position(), block.length())

    def line(self, number: int) -> ShownLine | None:
        """What stands in a block."""
        return self._lines[number] if 0 <= number < len(self._lines) else None

    def chips(self, number: int) -> tuple[Chip, ...]:
        """The chips of a block."""
        return self._chips.get(number, ())

    def visible_blocks(self) -> list[tuple[QTextBlock, float, float]]:
        """(block, top, height) of what is on the screen."""
        out = []
        block, top = self.firstVisibleBlock(), self.contentOffset().y()
        top += self.blockBoundingGeometry(block).y()
        while block.isValid() and top <= self.viewport().height():
            height = self.blockBoundingRect(block).height()
            out.append((block, top, height))
            block, top = block.next(), top + height
        return out

    def _fit(self) -> None:
        room = max(1, self.viewport().width())
        letter = max(1, fonts.metrics(fonts.mono(12)).horizontalAdvance("m"))
        rows = 0
        for line in self._lines[:40]:
            rows += 1 + len(line.text) * letter // room
        height = min(HIGHEST, round(rows * fonts.metrics(fonts.mono(12)).lineSpacing()) + 34)
        if height != self.height():
            self.setFixedHeight(height)

    def createMimeDataFromSelection(self) -> QMimeData:
        """Plain text alone: with its rich form the look of a chip could be pasted away."""
        data = QMimeData()
        cursor = self.textCursor()
        first = self.document().findBlock(cursor.selectionStart()).blockNumber()
        out = []
        for number, text in enumerate(cursor.selectedText().split("\u2029"), first):
            line = self.line(number)
            out.append(text if number == first or (line is not None and line.number == MORE) else f"\n{text}")
        data.setText("".join(out))
        return data

    def sizeHint(self) -> QSize:
        return QSize(400, self.height())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() is QEvent.Type.PaletteChange and hasattr(self, "_chips"):
            self._paint_letters()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._numbers.setGeometry(1, 1, MARGIN - 2, self.height() - 2)
        self._fit()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self.viewport())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(colours.warn), 1))
        painter.setBrush(QColor(colours.warnbg))
        for block, top, _height in self.visible_blocks():
            for box in _boxes(block, self.chips(block.blockNumber()), -top, self.viewport().height() - top):
                painter.drawRoundedRect(box.translated(self.contentOffset().x(), top), 3, 3)
        painter.end()
        super().paintEvent(event)


def _letters(line: ShownLine, chips: tuple[Chip, ...]) -> list[QTextLayout.FormatRange]:
    """The brackets of a chip are its padding: not seen, but copied."""
    colours = ink()
    if line.number == 0:
        return [_range(0, len(line.text), fonts.ui(11, fonts.MEDIUM), QColor(colours.text2))]
    out = []
    for chip in chips:
        face = fonts.mono(10, fonts.MEDIUM)
        out.append(_range(chip.at + 1, chip.length - 2, face, QColor(colours.warn)))
        out.append(_range(chip.at, 1, face, QColor(0, 0, 0, 0)))
        out.append(_range(chip.at + chip.length - 1, 1, face, QColor(0, 0, 0, 0)))
    return out


def _range(start: int, length: int, face: QFont, colour: QColor) -> QTextLayout.FormatRange:
    found = QTextLayout.FormatRange()
    letters = QTextCharFormat()
    letters.setFont(face)
    letters.setForeground(colour)
    found.start, found.length, found.format = start, length, letters
    return found


def pieces(line: ShownLine) -> list[ShownLine]:
    """A long line in pieces that Qt lays out only when they are seen; no chip is cut, and nothing is between them when they are copied."""
    out: list[ShownLine] = []
    text, chips, at = line.text, line.chips, 0
    number = line.number
    while len(text) - at > PIECE:
        cut = at + PIECE
        nearest = bisect_right(chips, cut, key=_at) - 1
        if nearest >= 0 and at < chips[nearest].at < cut < chips[nearest].at + chips[nearest].length:
            cut = chips[nearest].at
        out.append(_piece(line, number, at, cut))
        at, number = cut, MORE
    return [*out, _piece(line, number, at, len(text))] if out else [line]


def _piece(line: ShownLine, number: int, begin: int, end: int) -> ShownLine:
    chips = line.chips[bisect_left(line.chips, begin, key=_at) : bisect_left(line.chips, end, key=_at)]
    return ShownLine(number, line.text[begin:end], tuple(Chip(chip.at - begin, chip.length) for chip in chips))


def _boxes(block: QTextBlock, chips: tuple[Chip, ...], above: float, below: float) -> list[QRectF]:
    """Where chips are on the lines that are seen, one box for each line a chip wraps over."""
    out: list[QRectF] = []
    layout = block.layout()
    if not chips or not layout.lineCount():
        return out
    height = max(1.0, layout.lineAt(0).height())
    for number in range(max(0, int(above / height) - 1), min(layout.lineCount(), int(below / height) + 2)):
        line = layout.lineAt(number)
        begin, end = line.textStart(), line.textStart() + line.textLength()
        for chip in chips[max(0, bisect_right(chips, begin, key=_at) - 1) : bisect_right(chips, end, key=_at)]:
            first, last = max(begin, chip.at), min(end, chip.at + chip.length)
            if first < last:
                left, right = _x(line.cursorToX(first)), _x(line.cursorToX(last))
                out.append(QRectF(left + 2.5, line.y() + 1.5, right - left - 5, line.height() - 3))
    return out


def _at(chip: Chip) -> int:
    return chip.at


def _x(found: object) -> float:
    """PySide gives the position too."""
    return float(found[0] if isinstance(found, tuple) else found)  # type: ignore[arg-type]
