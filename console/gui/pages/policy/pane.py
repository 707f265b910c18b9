"""The pane at the right: one rule, finding, tool or sequence, in words; below a rule the calls that it decided last."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from console.api.policy.page import JudgedRow
from console.gui.theme import fonts
from console.gui.widgets.buttons import Button
from console.gui.widgets.facts import Chips, ChipSpec, Rule
from console.gui.widgets.lines import Line, Lines
from console.gui.widgets.reading import empty_note
from console.gui.widgets.rows import Canvas, Column, ManyRowView, RowModel
from console.gui.widgets.side_pane import SidePane, scrolling
from console.gui.widgets.text import Text
from console.gui.widgets.words import day_clock

WIDTH = 356
CALLS = (Column("at", "When", 120), Column("call", "Call it decided", share=1))
_SHOWN = 12


def call_words(row: JudgedRow, key: str) -> str:
    """What a cell says to a tooltip, a screen reader and the clipboard."""
    return day_clock(row.at) if key == "at" else f"{row.agent_id}: {row.tool} {row.argument}"


def paint_call(canvas: Canvas, row: JudgedRow) -> None:
    """One recorded call."""
    canvas.text("at", day_clock(row.at), "text2", mono=True)
    canvas.text("call", f"{row.tool} {row.argument}", mono=True)


class Pane(SidePane):
    """``asked`` carries an action id, ``call_opened`` a recorded call."""

    asked = Signal(str)
    call_opened = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Detail")
        self.key = ""
        self.crumb = Text("", 11, fonts.REGULAR, "text2")
        self.title = Text("", 15, fonts.MEDIUM, mono=True, wrap=True)
        self.chips = Chips()
        self.lines = Lines(_SHOWN)
        self.calls_model = RowModel(CALLS, call_words, self)
        self.calls = ManyRowView(self.calls_model, paint_call, lambda row: f"{row.at} {row.agent_id} {row.argument}", self)
        self.calls.setAccessibleName("Calls it decided last")
        self.calls.order.keep("at", "The newest call comes first.", descending=True)
        self.no_calls = empty_note(self.calls, "")
        self.calls.opened.connect(self.call_opened)
        column = QVBoxLayout(self)
        column.setContentsMargins(1, 0, 0, 0)
        column.setSpacing(0)
        scroll, body = scrolling(self)
        for part, room in ((self.crumb, 5), (self.title, 8), (self.chips, 0), (Rule(9), 0), (self.lines, 0)):
            body.addWidget(part)
            body.addSpacing(room)
        body.addStretch(1)
        column.addWidget(scroll, 3)
        column.addWidget(self.calls, 2)
        foot = QHBoxLayout()
        foot.setContentsMargins(19, 12, 20, 12)
        foot.setSpacing(8)
        self.explain = Button("Explain a call", keys="E", parent=self)
        self.explain.clicked.connect(lambda: self.asked.emit("policy.explain"))
        self.edit = Button("Change rules…", keys="B", parent=self)
        self.edit.clicked.connect(lambda: self.asked.emit("policy.backtest"))
        self.remove = Button("Remove…", kind="danger", keys="X", parent=self)
        self.remove.clicked.connect(lambda: self.asked.emit("policy.remove"))
        foot.addWidget(self.remove, 1)
        foot.addWidget(self.explain, 1)
        foot.addWidget(self.edit, 1)
        column.addLayout(foot)
        self.show_calls(None)

    def say(self, key: str, crumb: str, title: str, chips: Sequence[ChipSpec], lines: Sequence[Line]) -> None:
        """What is looked at."""
        if key != self.key:
            self.key = key
            self.lines.fold()
        self.crumb.setText(crumb)
        self.title.setText(title)
        self.chips.say(chips)
        self.lines.say(lines)

    def offer_removal(self, is_offered: bool) -> None:
        """Whether what is looked at was made of an approval."""
        self.remove.setVisible(is_offered)
        self.explain.setVisible(not is_offered)

    def show_calls(self, rows: Sequence[JudgedRow] | None, words: str = "") -> None:
        """None: what is looked at decides no calls. ``words``: why there are none."""
        self.calls.setVisible(rows is not None)
        self.calls.show_rows(list(rows or ()))
        self.no_calls.setText(words)
        self.no_calls.setVisible(not rows)
