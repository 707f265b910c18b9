"""The head of the policy page: rules by verdict, whether the newest file is in force, what was judged."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from console.api.policy.rules import DAYS, PolicyView
from console.gui.theme import fonts
from console.gui.theme.tokens import PAGE_HEADER, ink
from console.gui.widgets.marks import draw_text
from console.gui.widgets.safe_text import safe_text, tooltip
from console.panic.marks import draw_mark

NOT_KNOWN = ("Not known", "triangle", "warn")
_LISTS = (("deny", "Deny", "ban"), ("ask", "Ask", "triangle"), ("allow", "Allow", "check"))


@dataclass(frozen=True, slots=True)
class HeadFacts:
    """What the head shows."""

    counts: tuple[int, int, int] = (0, 0, 0)
    unused: int = 0
    asleep: int = 0
    state: tuple[str, str, str] = NOT_KNOWN
    """(word, shape, colour)."""
    line: str = ""
    recorded: int = 0
    read: bool = False


def head_facts(view: PolicyView | None, problem: str, stale: bool) -> HeadFacts:
    """``problem``: why the rules cannot be read; ``stale``: the news is old, so nothing is green."""
    if view is None:
        return HeadFacts(line=problem or "being read…")
    counts = [sum(row.list == name for row in view.rules) for name, _, _ in _LISTS]
    unused = sum(not row.hits for row in view.rules) if view.recorded else 0
    asleep = sum(not row.in_force for row in view.rules)
    whence = "the product's own rules" if view.is_default else view.file.rpartition("/")[2] or "policy.json"
    if problem:
        state, line = NOT_KNOWN, problem
    elif view.problem and not view.rules:
        state, line = ("Everything is denied", "diamond", "danger"), view.problem
    elif view.problem:
        state, line = ("Newest file NOT in force", "diamond", "danger"), f"the last good one is: {view.problem}"
    elif stale:
        state, line = NOT_KNOWN, "the supervisor has not been heard of lately"
    else:
        state, line = ("In force", "dot", "ok"), f"{whence}, {view.sha256[:12]}"
    return HeadFacts((counts[0], counts[1], counts[2]), unused, asleep, state, line, view.recorded, read=True)


class PolicyHeader(QWidget):
    """Counts stay quiet; what is not in force is red, with a diamond and the words."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(PAGE_HEADER)
        self.facts = HeadFacts()

    def take(self, facts: HeadFacts) -> None:
        """Newer numbers."""
        if facts == self.facts and self.accessibleName():
            return
        self.facts = facts
        counts = ", ".join(f"{word} {number}" for (_, word, _), number in zip(_LISTS, facts.counts, strict=True))
        judged = f"{facts.recorded} calls checked in {DAYS} days" if facts.read else "not read"
        rest = f"{facts.unused} never used, {facts.asleep} not in force"
        self.setAccessibleName(f"Rules: {counts}; {rest}; {judged}; {facts.state[0]}: {safe_text(facts.line, 400)}")
        self.setToolTip(tooltip(facts.line))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours, facts = ink(), self.facts
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(colours.bg0))
        painter.fillRect(QRectF(0, self.height() - 1, self.width(), 1), QColor(colours.line))
        draw_text(painter, QRectF(16, 12, 300, 24), "Policy", fonts.ui(17, fonts.SEMIBOLD), colours.text)
        x = 16.0
        for (_, word, shape), number in zip(_LISTS, facts.counts, strict=True):
            x = self._paint_count(painter, x, word, shape, f"{number:,}" if facts.read else "?")
        right = min(300.0, self.width() * 0.36)
        room = self.width() - right - (168 if self.width() >= 700 else 12) - x
        if facts.unused and room >= 60:
            draw_text(painter, QRectF(x, 58, room, 20), f"{facts.unused:,} never used", fonts.ui(12), colours.text2)
        if self.width() >= 700:
            self._paint_judged(painter, self.width() - right - 156)
        if self.width() >= 420:
            self._paint_state(painter, self.width() - right, right - 12)
        painter.end()

    def _paint_count(self, painter: QPainter, x: float, word: str, shape: str, figure: str) -> float:
        colours = ink()
        words = fonts.metrics(fonts.ui(12, fonts.MEDIUM)).horizontalAdvance(word)
        wide = fonts.metrics(fonts.ui(18, fonts.MEDIUM)).horizontalAdvance(figure)
        draw_mark(painter, shape, QRectF(x + 1, 64, 9, 9), colours.text2)
        draw_text(painter, QRectF(x + 17, 58, words + 2, 20), word, fonts.ui(12, fonts.MEDIUM), colours.text)
        draw_text(painter, QRectF(x + 25 + words, 56, wide + 4, 24), figure, fonts.ui(18, fonts.MEDIUM), colours.text)
        return x + words + wide + 49

    def _paint_judged(self, painter: QPainter, x: float) -> None:
        colours, facts = ink(), self.facts
        draw_text(painter, QRectF(x, 14, 150, 18), f"Calls checked, {DAYS} d", fonts.ui(12), colours.text2)
        figure = f"{facts.recorded:,}" if facts.read else "?"
        draw_text(painter, QRectF(x, 33, 150, 24), figure, fonts.ui(18, fonts.SEMIBOLD), colours.text)
        if facts.asleep:
            draw_mark(painter, "diamond", QRectF(x + 1, 66, 9, 9), colours.danger)
            draw_text(painter, QRectF(x + 17, 60, 132, 20), f"{facts.asleep:,} not in force", fonts.ui(12, fonts.MEDIUM), colours.danger)

    def _paint_state(self, painter: QPainter, x: float, width: float) -> None:
        colours = ink()
        word, shape, role = self.facts.state
        draw_text(painter, QRectF(x, 14, width, 18), "Rules", fonts.ui(12), colours.text2)
        draw_mark(painter, shape, QRectF(x + 1, 41, 9, 9), getattr(colours, role))
        colour = getattr(colours, role) if role in ("warn", "danger") else colours.text
        draw_text(painter, QRectF(x + 18, 34, width - 18, 24), word, fonts.ui(13, fonts.MEDIUM), colour)
        draw_text(painter, QRectF(x, 58, width, 18), safe_text(self.facts.line, 300), fonts.ui(11), colours.text2)
