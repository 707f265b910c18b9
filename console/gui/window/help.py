"""The documents inside the window (F1): the page that belongs to the page in front, and all others. Read from disk, as plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QShowEvent, QTextBlockFormat, QTextCharFormat, QTextCursor, QTextDocument
from PySide6.QtWidgets import QDialog, QTextEdit, QWidget

from console.domain.errors import ConsoleError
from console.domain.process.assets import documents
from console.gui.kit.layout import column, row
from console.gui.theme import fonts
from console.gui.theme.tokens import ink
from console.gui.widgets.buttons import Button, SearchField
from console.gui.widgets.choice import Choice

START = "tutorial/first-fleet.md"


@dataclass(frozen=True, slots=True)
class Block:
    """One paragraph of a document. kind: title, heading, code, table, item or text."""

    kind: str
    text: str


_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_RULE = re.compile(r"\|[\s:|-]+\|?")
_STARS = re.compile(r"(\*\*|\*)(?=\S)(.+?)(?<=\S)\1")
_ITEM = re.compile(r"\s*([*-]|\d+\.) ")


def blocks(markdown: str) -> Iterator[Block]:
    """The paragraphs of a page. Lines of a paragraph are joined; code keeps its lines; a row of a table is ``first: rest``."""
    kind, lines, is_code = "", list[str](), False
    for line in markdown.splitlines():
        fence = line.startswith("```")
        now = "code" if fence or is_code else _kind(line, kind)
        if lines and (fence or now != kind or _ITEM.match(line) and not is_code or now in ("title", "heading", "table")):
            yield _block(kind, lines)
            lines = []
        is_code, kind = is_code != fence, now
        if now and not fence and not (now == "table" and _RULE.fullmatch(line.strip())):
            lines.append(line if now == "code" else _plain(line, now))
    if lines:
        yield _block(kind, lines)


def _block(kind: str, lines: list[str]) -> Block:
    return Block(kind, "\n".join(lines) if kind == "code" else _LINK.sub(r"\1", " ".join(lines)))


def _kind(line: str, before: str) -> str:
    if not line.strip():
        return ""
    if line.startswith("#"):
        return "title" if line.startswith("# ") else "heading"
    if line.startswith("|"):
        return "table"
    return "item" if _ITEM.match(line) or (before == "item" and line.startswith("  ")) else "text"


def _plain(line: str, kind: str) -> str:
    parts = line.strip().split("`")
    words = "".join(part if is_code else _STARS.sub(r"\2", part).replace("**", "") for part, is_code in zip(parts, cycle((False, True))))
    if kind == "table":
        first, *rest = (cell.strip() for cell in words.strip("|").split("|"))
        return f"{first}: {' · '.join(cell for cell in rest if cell)}" if any(rest) else first
    return re.sub(r"^[*-] ", "•  ", words.lstrip("#").strip())


class HelpDialog(QDialog):
    """Not modal: it can stay open beside the page. Text can be selected, copied and searched; no link is followed."""

    def __init__(self, name: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Documents")
        self.resize(min(820, parent.width() - 40), min(720, parent.height() - 40))
        self.files = documents()
        self.choice, self.search = Choice(self), SearchField("Find on this page", "", parent=self)
        self.choice.setAccessibleName("Document")
        self.text = QTextEdit(self)
        self.text.setReadOnly(True)
        self.text.setAcceptRichText(False)
        self.text.setAccessibleName("Text of the document")
        close = Button("Close", keys="Esc", small=True, parent=self)
        head = row((self.choice, 2), (self.search, 1), close, spacing=8)
        column(head, (self.text, 1), margins=(16, 14, 16, 14), spacing=-1, on=self)
        self.choice.addItems(list(self.files))
        self.choice.currentTextChanged.connect(self._show)
        self.search.textChanged.connect(lambda _text: self._search(again=False))
        self.search.left.connect(lambda: self._search(again=True))
        close.clicked.connect(self.close)
        self._heading = ""
        self.open_at(name)

    def open_at(self, name: str) -> None:
        """``how-to/operator.md#Watch``: that page, at that heading."""
        page, _, heading = name.partition("#")
        self.choice.setCurrentText(page if page in self.files else START)
        self._show(self.choice.currentText())
        self._heading = heading
        self._reveal()
        self.text.setFocus()

    def _reveal(self) -> None:
        """Scrolls to the heading that is wanted, as far as the size is known."""
        if heading := self._heading:
            found = self.text.document().find(heading, 0, QTextDocument.FindFlag.FindCaseSensitively)
            while not found.isNull() and found.block().text() != heading:
                found = self.text.document().find(heading, found, QTextDocument.FindFlag.FindCaseSensitively)
            if not found.isNull():
                self.text.moveCursor(QTextCursor.MoveOperation.End)  # so that the heading comes to the top, not into sight at the bottom
                found.clearSelection()
                self.text.setTextCursor(found)

    def _show(self, name: str) -> None:
        file = self.files.get(name)
        try:
            words = file.read_text(encoding="utf-8") if file is not None else ""
        except OSError as error:
            words = f"# The document could not be read\n\n{ConsoleError(str(error), 'Install Watchfloor again.')}"
        self.text.clear()
        cursor = self.text.textCursor()
        cursor.beginEditBlock()
        for number, block in enumerate(blocks(words or "# No documents\n\nNo documents are installed beside this window.")):
            _write(cursor, block, first=number == 0)
        cursor.endEditBlock()
        self.text.moveCursor(QTextCursor.MoveOperation.Start)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._reveal()  # before it is shown the text has another size
        self._heading = ""

    def _search(self, *, again: bool) -> None:
        """The next place that holds the typed words; from the start again after the last one."""
        if not again:
            self.text.moveCursor(QTextCursor.MoveOperation.Start)
        if self.search.text() and not self.text.find(self.search.text()):
            self.text.moveCursor(QTextCursor.MoveOperation.Start)
            self.text.find(self.search.text())


def _write(cursor: QTextCursor, block: Block, *, first: bool) -> None:
    colours, face = ink(), {"title": fonts.ui(19, fonts.SEMIBOLD), "heading": fonts.ui(15, fonts.SEMIBOLD), "code": fonts.mono(12)}
    shape, look = QTextBlockFormat(), QTextCharFormat()
    shape.setTopMargin(0 if first else {"heading": 18, "item": 4, "table": 4}.get(block.kind, 10))
    shape.setLeftMargin(14 if block.kind in ("code", "item", "table") else 0)
    look.setFont(face.get(block.kind, fonts.ui(13)))
    look.setForeground(QColor(colours.text if block.kind in face else colours.text2))
    if not first:
        cursor.insertBlock()
    cursor.setBlockFormat(shape)
    cursor.insertText(block.text.replace("\n", "\u2028"), look)
