"""Paragraphs of a pane, each with its shape: as many as there is something to say, the rest behind one button."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtWidgets import QVBoxLayout, QWidget

from console.gui.theme import fonts
from console.gui.widgets.buttons import Button
from console.gui.widgets.text import Text

MOST = 200
"""Paragraphs ever made; what is beyond is counted."""


@dataclass(frozen=True, slots=True)
class Line:
    """One paragraph: words, shape (empty: none), colour. ``quiet`` ones are folded away first."""

    words: str
    mark: str = ""
    role: str = "text2"
    mono: bool = False
    quiet: bool = False


class Lines(QWidget):
    """What is loud is always shown; quiet lines beyond ``shown`` wait behind a button that says how many there are."""

    def __init__(self, shown: int = 0, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shown, self._open = shown, False
        self.lines: tuple[Line, ...] = ()
        self._texts: list[Text] = []
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        self._column = QVBoxLayout()
        self._column.setSpacing(4)
        column.addLayout(self._column)
        self.more = Button("", small=True, parent=self)
        self.more.clicked.connect(self._turn)
        self.more.hide()
        column.addWidget(self.more)
        column.addStretch(1)  # in a place that is higher than they are, lines stand together

    def say(self, lines: Sequence[Line]) -> None:
        """Other lines; the same ones again cost nothing."""
        if tuple(lines) != self.lines:
            self.lines = tuple(lines)
            self._lay()

    def fold(self) -> None:
        """Something else is looked at: its quiet lines are folded again."""
        if self._open:
            self._open = False
            self._lay()

    def _turn(self) -> None:
        self._open = not self._open
        self._lay()

    def _lay(self) -> None:
        quiet = [line for line in self.lines if line.quiet]
        kept = set(map(id, quiet if self._open else quiet[: self._shown]))
        shown = [line for line in self.lines if not line.quiet or id(line) in kept][:MOST]
        for text in self._texts:
            self._column.removeWidget(text)
            text.deleteLater()
        self._texts = []
        for line in shown:
            text = Text(line.words, 11 if line.mono else 12, fonts.REGULAR, line.role, mono=line.mono, wrap=True, mark=line.mark)
            self._column.addWidget(text)
            text.show()  # at once: a dialog is made as high as what it shows, and Qt would show it only later
            self._texts.append(text)
        hidden = len(self.lines) - len(shown)
        self.more.setVisible(bool(hidden) or self._open)
        self.more.set_face("Show less" if self._open and not hidden else f"Show {hidden:,} more", "")
        self.more.allow(f"No more than {MOST} are shown." if self._open and hidden else "")
        self.updateGeometry()
