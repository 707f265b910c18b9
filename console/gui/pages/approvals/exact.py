"""The exact request as plain text: line numbers, chips for hostile characters; what is selected and copied is what is seen."""

from __future__ import annotations

from bisect import bisect_right

from PySide6.QtCore import QEvent, QMimeData, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QResizeEvent, QSyntaxHighlighter, QTextBlock, QTextCharFormat, QTextOption
from PySide6.QtWidgets import QPlainTextEdit, QSizePolicy, QWidget

from console.gui.pages.approvals.hostile import Chip, Shown, ShownLine
from console.gui.theme import fonts
from console.gui.theme.tokens import ink
from console.gui.widgets.marks import draw_text

MARGIN = 40
LINE = 24
HIGHEST = 312
CHIPS_MAX = 1_500
"""Chips that are drawn as such; the others stay readable as <U+202E>."""


class _Ink(QSyntaxHighlighter):
    """The chips' letters; their brackets are the chip's padding."""

    def __init__(self, view: ExactView) -> None:
        super().__init__(view.document())
        self._view = view

    def highlightBlock(self, text: str) -> None:
        line = self._view.line(self.currentBlock().blockNumber())
        colours = ink()
        if line is not None and not line.number:
            heading = QTextCharFormat()
            heading.setForeground(QColor(colours.text2))
            heading.setFont(fonts.ui(11, fonts.MEDIUM))
            self.setFormat(0, len(text), heading)
        for chip in self._view.chips(self.currentBlock().blockNumber()):
            letters, padding = QTextCharFormat(), QTextCharFormat()
            letters.setFont(fonts.mono(10, fonts.MEDIUM))
            letters.setForeground(QColor(colours.warn))
            padding.setFont(fonts.mono(10, fonts.MEDIUM))
            padding.setForeground(QColor(0, 0, 0, 0))
            self.setFormat(chip.at, chip.length, letters)
            self.setFormat(chip.at, 1, padding)
            self.setFormat(chip.at + chip.length - 1, 1, padding)


class _Numbers(QWidget):
    """The margin: numbers of the request's own lines."""

    def __init__(self, view: ExactView) -> None:
        super().__init__(view)
        self._view = view

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        for block, top, height in self._view.visible_blocks():
            line = self._view.line(block.blockNumber())
            if line is not None and line.number:
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
        self._inks = _Ink(self)
        self.updateRequest.connect(lambda _box, _dy: self._numbers.update())

    def say(self, shown: Shown) -> None:
        """Another text; the same one again changes nothing (a selection stays)."""
        if shown.lines == self._lines:
            return
        self._lines = shown.lines
        self._chips, left = {}, CHIPS_MAX
        for number, line in enumerate(shown.lines):
            if line.chips and left > 0:
                self._chips[number] = line.chips[:left]
                left -= len(line.chips)
        self.setPlainText("\n".join(line.text for line in shown.lines))
        self._fit()

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
        """Plain text alone: with its rich form the look of a chip could be pasted away (G4)."""
        data = QMimeData()
        data.setText(self.textCursor().selectedText().replace("\u2029", "\n"))
        return data

    def sizeHint(self) -> QSize:
        return QSize(400, self.height())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() is QEvent.Type.PaletteChange and hasattr(self, "_inks"):
            self._inks.rehighlight()

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
