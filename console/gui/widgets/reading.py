"""Things to read only: the words of an empty list, and plain text in the mono face that can be selected but never acts."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import wrap

from PySide6.QtCore import Qt
from PySide6.QtGui import QTextOption
from PySide6.QtWidgets import QPlainTextEdit, QVBoxLayout, QWidget

from console.gui.theme import fonts
from console.gui.widgets.rows import RowView
from console.gui.widgets.safe_text import safe_lines, safe_text
from console.gui.widgets.text import Text

LONGEST = 1_000_000
"""Characters shown of one text."""
_WRAP = 62
"""Characters of a line that names a target; the view has room for a few more."""
_TARGETS_HEIGHT = 132
_TARGET = 5_000
"""Characters of one target; what is beyond ends with an ellipsis."""


def empty_note(view: RowView, words: str) -> Text:
    """What will appear in ``view`` and why nothing is there yet; show it while the list is empty."""
    note = Text(words, 13, fonts.REGULAR, "text2", wrap=True)
    note.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
    column = QVBoxLayout(view.viewport())
    column.setContentsMargins(16, 14, 16, 8)
    column.addWidget(note)
    column.addStretch(1)
    note.hide()
    return note


def say_empty(note: Text, view: RowView, words: str, loaded: bool, problem: str) -> None:
    """Shows why ``view`` is empty: ``words``; where it was never read, its ``problem``, which is no claim that there is nothing."""
    note.setText(words if loaded else f"Not known: {problem}")
    note.setVisible(not view.row_model.rows and (loaded or bool(problem)))


class PlainView(QPlainTextEdit):
    """Read-only text of several lines, hidden characters visible. What is copied is what is seen."""

    def __init__(self, name: str, *, wrap: bool = True, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setReadOnly(True)
        self.setFont(fonts.mono(11))
        self.setAccessibleName(name)
        self.setTabChangesFocus(True)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAnywhere if wrap else QTextOption.WrapMode.NoWrap)

    def say(self, text: str) -> None:
        """Shows ``text``; the place where one was reading is kept when nothing changed."""
        shown = safe_lines(text, LONGEST)
        if len(text) > LONGEST:
            shown += f"\n… {len(text) - LONGEST:,} characters more"
        if shown != self.toPlainText():
            self.setPlainText(shown)


class TargetsView(PlainView):
    """Each of several targets of one question in full, numbered; the list can be scrolled."""

    def __init__(self, targets: Iterable[tuple[str, str]], parent: QWidget) -> None:
        """``targets``: (what it is called, all that tells it from others) of each."""
        super().__init__("Targets", wrap=False, parent=parent)  # wide letters lengthen a line, and begin none
        self.show_targets(targets)
        self.setFixedHeight(_TARGETS_HEIGHT)

    def show_targets(self, targets: Iterable[tuple[str, str]]) -> None:
        """The same targets, of which more is known."""
        lines = [_laid(name, f"{number}. ") + "\n" + _laid(words, "   ") for number, (name, words) in enumerate(targets, 1)]
        self.say("\n".join(lines))


def _laid(words: str, indent: str) -> str:
    """One line, or several that stand below its beginning: what an agent named itself begins no line that looks like one of ours."""
    return "\n".join(wrap(safe_text(words, _TARGET), _WRAP, initial_indent=indent, subsequent_indent=" " * 7, break_on_hyphens=False))
