"""The question before a tree is stopped: what will happen, counted by how firmly each agent is held."""

from __future__ import annotations

from PySide6.QtWidgets import QLineEdit, QWidget

from console.gui.models.fleet import Row
from console.gui.pages.fleet.detail import tree_sentence
from console.gui.theme import fonts
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.facts import Fact, Facts
from console.gui.widgets.text import Text
from console.gui.widgets.words import plural

_PROMISES = {
    "contained": ("zero, proven", ""),
    "managed": ("zero, proven", ""),
    "adopted": ("zero, proven", ""),
    "observed": ("best effort, never proven", "warn"),
}


_BEST_EFFORT = "best effort"


def promise_lines(rows: list[Row]) -> list[Fact]:
    """One line for each control level among the live rows; a level this console does not know promises nothing."""
    counted: dict[str, int] = {}
    for row in rows:
        if row.is_live:
            doubtful = row.view.best_effort and row.view.control_level != "observed"
            level = f"{row.view.control_level}, {_BEST_EFFORT}" if doubtful else row.view.control_level
            counted[level] = counted.get(level, 0) + 1
    lines = []
    for level in [*_PROMISES, *(sorted(set(counted) - set(_PROMISES)))]:
        if counted.get(level):
            words, role = _PROMISES["observed"] if level.endswith(_BEST_EFFORT) else _PROMISES.get(level, ("not known", "warn"))
            mark = ("triangle", "warn") if role else ("check", "text2")
            lines.append(Fact(f"{plural(counted[level], 'agent')}, {level}", words, *mark, left_role="text", right_role=role or "text2"))
    return lines


class StopDialog(Dialog):
    """``reason`` holds what the person typed; the main button is the caller's."""

    def __init__(self, rows: list[Row], parent: QWidget) -> None:
        live = [row for row in rows if row.is_live]
        single = len(rows) == 1
        super().__init__(f"Stop {tree_sentence(rows)}?", "Stop it" if single else f"Stop {plural(len(live), 'agent')}", "danger", parent)
        self.paragraph(
            "SIGKILL at once, then the proof. There is no way back: what an agent had not written is lost. Its workspace and records stay."
        )
        facts = Facts(26, ruled=True)
        facts.say(promise_lines(rows))
        self.body.addWidget(facts)
        if len(live) < len(rows):
            self.paragraph(f"{plural(len(rows) - len(live), 'agent')} of this tree ended before.", "text3")
        self.body.addWidget(Text("Reason, for the record", 11, fonts.MEDIUM, "text2"))
        self.reason = QLineEdit(self)
        self.reason.setMaxLength(500)
        self.reason.setPlaceholderText("optional")
        self.reason.setAccessibleName("Reason")
        self.body.addWidget(self.reason)
