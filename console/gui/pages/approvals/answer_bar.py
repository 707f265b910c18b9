"""The line below the requests: the answer that is held, or the second key that is missing. Its room is reserved, so nothing moves."""

from __future__ import annotations

import math

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from console.gui.kit.layout import STRETCH, column, row
from console.gui.pages.approvals.answers import HOLD_S, Answer
from console.gui.theme import fonts
from console.gui.theme.tokens import ANSWER_BAR
from console.gui.widgets.buttons import Button
from console.gui.widgets.side_pane import Foot
from console.gui.widgets.text import Text

IDLE = f"An answer is held for {HOLD_S:.0f} s before the agent gets it."
KEYS = {"approvals.once": "A", "approvals.session": "S", "approvals.deny": "D", "approvals.reason": "N", "approvals.confirm": "Y"}
"""Of an answer that is held: the key that gave it, and sends it at once."""


class AnswerBar(Foot):
    """``sent`` and ``taken_back`` with the answer that stands here."""

    sent = Signal(object)
    confirmed = Signal()
    taken_back = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(ANSWER_BAR)
        self.answer: Answer | None = None
        self.words = Text(IDLE, 12, fonts.MEDIUM, "text2")
        self.hint = Text("", 11, fonts.REGULAR, "text2")
        self.now = Button("Send now", keys="A", small=True, parent=self)
        self.second = Button("Approve", kind="danger", keys="Y", small=True, parent=self)
        self.back = Button("Take back", keys="Z", small=True, parent=self)
        self.rule = Button("Make a rule…", keys="X", small=True, parent=self)
        self.now.clicked.connect(lambda: self.sent.emit(self.answer))
        self.second.clicked.connect(self.confirmed)
        self.back.clicked.connect(lambda: self.taken_back.emit(self.answer))
        lines = column(STRETCH, self.words, self.hint, STRETCH)
        row((lines, 1), self.now, self.second, self.back, self.rule, margins=(16, 1, 16, 0), spacing=8, on=self)
        self.say(None, 0, 0.0)

    def say(self, answer: Answer | None, more: int, at: float, *, is_meant: bool = True) -> None:
        """``more``: how many other answers are held. ``at``: monotonic seconds. ``is_meant``: its key means what is selected."""
        self.answer = answer
        asks = answer is not None and math.isinf(answer.sends_at)
        self.rule.hide()
        for button, is_shown in ((self.now, answer is not None and not asks), (self.second, asks), (self.back, answer is not None)):
            button.setVisible(is_shown)
        self.hint.setVisible(answer is not None)
        if answer is None:
            self.words.say(IDLE, "text2", "")
            return
        key = KEYS[answer.action]
        if asks:
            scope = "for the session" if answer.scope == "session" else "once"
            self.words.say(f"This {answer.danger}. Press Y to approve {scope}: {answer.case.title}", "danger", "diamond")
            self.hint.say("Nothing is approved yet. A second, different key is needed.")
            return
        left = max(1, math.ceil(answer.sends_at - at))
        what = "Deny" if answer.verdict == "deny" else "Approve for the session" if answer.scope == "session" else "Approve once"
        self.now.set_keys(key if is_meant else "")
        mark = "cross" if answer.verdict == "deny" else "check"
        self.words.say(f"{what}, sent in {left} s: {answer.case.title}", "text", mark)
        others = f"{more} more held. " if more else ""
        sends = f"{key} sends it now" if is_meant else "The button sends it now"
        self.hint.say(f"{others}{sends}, Z takes it back. Closing the window sends nothing.")

    def offer(self, *, rule: bool, several: int) -> None:
        """Nothing is held. ``rule``: an approved request is looked at, and a rule could answer its like. ``several`` are selected."""
        self.rule.setVisible(rule)
        if several:
            self.words.say(f"{several:,} requests are selected. D denies them together, after one question.", "text", "ring")
        elif rule:
            self.words.say("Approved. X makes a rule for exactly this call in its workspace, for 30 days.", "text2", "check")
