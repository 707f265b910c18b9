"""The side pane of a receipt."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QWidget

from console.domain.kill import Receipt, Step, StepStatus
from console.gui.kit.layout import column, row, scrolled
from console.gui.kit.pane import Offer, Pane
from console.gui.models.operators import person
from console.gui.models.switch import STEP_TITLES
from console.gui.pages.budgets.reasons import plain_reason
from console.gui.pages.receipt.amended import STATES, amended_lines
from console.gui.pages.receipt.outside import connection_lines, daemon_lines, return_lines, suspect_lines
from console.gui.theme import fonts
from console.gui.widgets.buttons import Button
from console.gui.widgets.facts import Fact, Facts, Rule
from console.gui.widgets.text import Text
from console.gui.widgets.words import clock, day_clock, took

WIDTH = 388
_SECTIONS = {
    "amended": "Amended after it was given",
    "survivors": "Survivors",
    "returns": "Ran again after the kill",
    "daemons": "Daemons and shared programs",
    "connections": "Connections to other programs",
    "suspects": "Suspects: may be an agent's work",
    "back": "What could bring an agent back",
    "evidence": "Evidence case",
    "steps": "Steps",
    "press": "The kill",
    "excluded": "Left alone, and why",
}
OFFERS = (Offer("receipt.copy", "Copy as JSON", "copy", "C"), Offer("receipt.rearm", "Rearm…", "lock", "R", "danger"))


class ReceiptSide(Pane):
    """What was said first, what is left, what could come back, the steps, the evidence, what was left alone; and the buttons."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._sections: dict[str, Facts] = {}
        self._boxes: dict[str, QWidget] = {}
        boxes = [self._section(name, title) for name, title in _SECTIONS.items()]
        self.end_suspects = Button("Kill suspects…", "alert", "danger", keys="S", parent=self)
        self.end_suspects.clicked.connect(lambda: self.asked.emit("receipt.suspects"))
        above = row(self.end_suspects, margins=(18, 12, 20, 0), spacing=-1)
        self.lay((scrolled(self, *boxes, margins=(18, 12, 20, 12)), 1), above, offers=OFFERS)

    def _section(self, name: str, title: str) -> QWidget:
        """Title, lines and the rule below them; hidden as a whole while it has no line."""
        box = self._boxes[name] = QWidget(self)
        facts = self._sections[name] = Facts(24)
        column(Text(title, 13, fonts.SEMIBOLD), 4, facts, Rule(9), on=box)
        return box

    def _say(self, name: str, lines: list[Fact]) -> None:
        self._sections[name].say(lines)
        self._boxes[name].setVisible(bool(lines))

    def say(self, receipt: Receipt | None, comes_back: list[Fact], cases: str, seen: Sequence[str] = ()) -> None:
        """``comes_back``: what could bring an agent back; ``cases``: the folder of case folders, or empty.

        ``seen``: names of agents that were only seen and still run.
        """
        self.end_suspects.setVisible(receipt is not None and bool(receipt.suspects))
        if receipt is None:
            for name in self._sections:
                self._say(name, [])
            return
        self._say("amended", amended_lines(receipt))
        self._say("survivors", _survivor_lines(receipt, seen))
        self._say("returns", return_lines(receipt))
        self._say("daemons", daemon_lines(receipt))
        self._say("connections", connection_lines(receipt))
        self._say("suspects", suspect_lines(receipt))
        self._say("back", comes_back)
        self._say("evidence", _evidence_lines(receipt, cases))
        self._say("steps", [line for step in receipt.steps for line in _step_lines(step)])
        press = [
            Fact("When", day_clock(receipt.pressed_at) + clock(receipt.pressed_at)[5:], left_role="text2", right_role="text"),
            Fact("By", person(receipt.by), left_role="text2", right_role="text"),
            Fact("Reason", plain_reason(receipt.reason), left_role="text2", right_role="text"),
            Fact("Scope", "everything" if receipt.scope == "all" else receipt.scope, left_role="text2", right_role="text"),
            Fact("Remote order", receipt.order or "none, a local kill", left_role="text2", right_role="text"),
            Fact("In all, with later steps", took(receipt.ms_total), left_role="text2", right_role="text"),
            Fact(
                "Complete", "yes" if receipt.complete else "not yet", left_role="text2", right_role="text" if receipt.complete else "warn"
            ),
        ]
        self._say("press", press)
        unnamed = seen if receipt.only_seen is None else ()  # else the receipt names them itself
        left = [*(f"{name}: only seen, so it was not signalled" for name in unnamed), *receipt.excluded]
        self._say("excluded", [Fact(words, "", "ring") for words in left[:40]] or [Fact("Nothing", "", "ring")])


def _survivor_lines(receipt: Receipt, seen: Sequence[str]) -> list[Fact]:
    lines = [Fact(name, "only seen, still runs", "triangle", "warn", right_role="warn") for name in seen[:20]]
    for one in receipt.survivors[:20]:
        lines.append(Fact(one.cmdline or one.agent_id, one.agent_id if one.cmdline else "", "triangle", "warn", mono=True))
        state = STATES.get(one.state, one.state)
        lines.append(Fact(f"pid {one.pid} · state {state}", "", left_role="warn", indent=True))
        if one.wchan:
            lines.append(Fact(f"waits in {one.wchan}", "", left_role="warn", indent=True))
        if one.why:
            lines.append(Fact(one.why, "", "", left_role="text2", indent=True))
    if len(receipt.survivors) > 20:
        lines.append(Fact(f"and {len(receipt.survivors) - 20} more", "", left_role="warn", indent=True))
    return lines or [Fact("None known", "", "check" if receipt.complete else "ring")]


def _evidence_lines(receipt: Receipt, cases: str) -> list[Fact]:
    step = receipt.evidence
    if step.status is StepStatus.PENDING:
        return [Fact("Not collected yet", "", "ring")]
    good = step.status is StepStatus.OK
    lines = [Fact("Collected" if good else step.status.value, "", "check" if good else "triangle", "text2" if good else "warn")]
    if cases and good:
        lines.append(Fact(f"{cases}/{receipt.kill_id}", "", left_role="text", mono=True, indent=True))
    return [*lines, *(Fact(part, "", left_role="text2" if good else "warn", indent=True) for part in step.detail.split("; ") if part)]


def _step_lines(step: Step) -> list[Fact]:
    """A step with its whole detail."""
    good = step.status is StepStatus.OK
    mark, role = ("check", "text2") if good else ("triangle", "warn")
    words = step.detail or step.status.value
    at = f"+{took(step.ms)}" if step.ms is not None else step.status.value
    title = Fact(STEP_TITLES[step.name], at, mark, role, right_role="text2" if good else "warn")
    return [title] if len(words) < 3 else [title, Fact(words, "", "", left_role="text2", indent=True)]
