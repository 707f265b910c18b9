"""The head of the policy page: rules by verdict, whether the newest file is in force, what was judged."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

from console.api.policy.rules import DAYS, PolicyView
from console.gui.kit.head import PageHead, paint_count, paint_figure, paint_state
from console.gui.theme import fonts
from console.gui.theme.tokens import Ink
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


class PolicyHeader(PageHead):
    """Counts stay quiet; what is not in force is red, with a diamond and the words."""

    title = "Policy"

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.facts = HeadFacts()

    def take(self, facts: HeadFacts) -> None:
        """Newer numbers."""
        if facts == self.facts and self.accessibleName():
            return
        self.facts = facts
        counts = ", ".join(f"{word} {number}" for (_, word, _), number in zip(_LISTS, facts.counts, strict=True))
        rest = f"{facts.unused} never used, {facts.asleep} not in force; {facts.recorded} calls checked in {DAYS} days"
        known = f"{counts}; {rest}" if facts.read else "not read"
        self.setAccessibleName(f"Rules: {known}; {facts.state[0]}: {safe_text(facts.line, 400)}")
        self.setToolTip(tooltip(facts.line))
        self.update()

    def paint_parts(self, painter: QPainter, colours: Ink) -> None:
        facts, x = self.facts, 16.0
        for (_, word, shape), number in zip(_LISTS, facts.counts, strict=True):
            x = paint_count(painter, x, word, f"{number:,}" if facts.read else "?", (shape, "text2", "text"))
        right = min(300.0, self.width() * 0.36)
        room = self.width() - right - (168 if self.width() >= 700 else 12) - x
        if facts.unused and room >= 60:
            draw_text(painter, QRectF(x, 58, room, 20), f"{facts.unused:,} never used", fonts.ui(12), colours.text2)
        if self.width() >= 700:
            self._paint_judged(painter, colours, self.width() - right - 156)
        if self.width() >= 420:
            paint_state(painter, self.width() - right, right - 12, "Rules", facts.state, facts.line)

    def _paint_judged(self, painter: QPainter, colours: Ink, x: float) -> None:
        facts = self.facts
        paint_figure(painter, x, 150, f"Calls checked, {DAYS} d", f"{facts.recorded:,}" if facts.read else "?")
        if facts.asleep:
            draw_mark(painter, "diamond", QRectF(x + 1, 66, 9, 9), colours.danger)
            draw_text(painter, QRectF(x + 17, 60, 132, 20), f"{facts.asleep:,} not in force", fonts.ui(12, fonts.MEDIUM), colours.danger)
