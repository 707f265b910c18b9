"""The receipt page: headline, timeline, targets with their proof, and what is open."""

from __future__ import annotations

import json

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QGuiApplication, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from console.domain.errors import ConsoleError
from console.domain.kill import Outcome, Receipt, Step, StepStatus
from console.gui.actions import ActionSpec, Risk
from console.gui.models.fleet import Fleet
from console.gui.models.switch import STEP_TITLES, in_order
from console.gui.pages.interface import Desk, Page, PageSpec
from console.gui.pages.kill_switch.rearm import RearmDialog
from console.gui.pages.receipt.head import ReceiptHead, Timeline, headline, open_points
from console.gui.pages.receipt.rows import COLUMNS, TargetRow, paint_target, target_words
from console.gui.theme import fonts
from console.gui.theme.tokens import DETAIL_FOOT, FILTER_BAR, ink
from console.gui.widgets.buttons import Button, Pills
from console.gui.widgets.facts import Card, Fact, Facts, Rule
from console.gui.widgets.rows import RowModel, RowView
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.text import Text
from console.gui.widgets.words import clock, day_clock, plural, took

_SIDE = 388
_FILTERS: dict[str, tuple[Outcome, ...]] = {
    "all": tuple(Outcome),
    "open": (Outcome.NOT_PROVEN, Outcome.DYING),
    "best": (Outcome.BEST_EFFORT,),
    "proven": (Outcome.PROVEN_ZERO,),
}


class OpenBox(Card):
    """Amber, at the right of the headline: what is open. Hidden when nothing is."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("warn", parent)
        self._title = Text("", 13, fonts.SEMIBOLD, "warn", mark="triangle")
        self._first = Text("", 12)
        self._second = Text("", 12, fonts.REGULAR, "text2")
        for part in (self._title, self._first, self._second):
            self.column.addWidget(part)
        self.setFixedWidth(420)
        self.hide()

    def say(self, points: list[str]) -> None:
        self.setVisible(bool(points))
        self._title.setText(f"Open on this host: {len(points)}")
        self._first.setText(points[0] if points else "")
        self._second.setText(
            points[1] if len(points) == 2 else f"and {len(points) - 1} more, first in the table" if len(points) > 2 else ""
        )


class SidePane(QWidget):
    """Second look, the rest of the steps, what was left alone, and the buttons."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedWidth(_SIDE)
        self.verify = Button("Copy as JSON", "copy", keys="C", parent=self)
        self.rearm = Button("Rearm…", "lock", "danger", keys="R", parent=self)
        column = QVBoxLayout(self)
        column.setContentsMargins(1, 0, 0, 0)
        column.setSpacing(0)
        scroll = QScrollArea(self)
        scroll.setWidgetResizable(True)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        inner = QWidget(scroll)
        scroll.setWidget(inner)
        self._column = QVBoxLayout(inner)
        self._column.setContentsMargins(18, 12, 20, 12)
        self._column.setSpacing(0)
        column.addWidget(scroll, 1)
        self._sections: dict[str, Facts] = {}
        for name, title in (("survivors", "Survivors"), ("steps", "Steps"), ("press", "The press"), ("excluded", "Left alone, and why")):
            if self._sections:
                self._column.addWidget(Rule(9))
            self._column.addWidget(Text(title, 13, fonts.SEMIBOLD))
            self._column.addSpacing(4)
            self._sections[name] = Facts(24)
            self._column.addWidget(self._sections[name])
        self._column.addStretch(1)
        foot = QHBoxLayout()
        foot.setContentsMargins(18, 12, 20, 12)
        foot.setSpacing(8)
        foot.addWidget(self.verify, 1)
        foot.addWidget(self.rearm, 1)
        column.addLayout(foot)

    def say(self, receipt: Receipt | None) -> None:
        if receipt is None:
            for facts in self._sections.values():
                facts.say([])
            return
        survivors: list[Fact] = []
        for one in receipt.survivors[:20]:
            survivors.append(Fact(one.cmdline or one.agent_id, "", "triangle", "warn", mono=True))
            survivors.append(Fact(f"pid {one.pid} · state {one.state} · {one.wchan or one.why}", "", "", left_role="warn", indent=True))
        self._sections["survivors"].say(survivors or [Fact("None known", "", "check" if receipt.complete else "ring")])
        self._sections["steps"].say([line for step in receipt.steps for line in _step_lines(step)])
        press = [
            Fact("When", day_clock(receipt.pressed_at) + clock(receipt.pressed_at)[5:], left_role="text2", right_role="text"),
            Fact("By", receipt.by, left_role="text2", right_role="text"),
            Fact("Reason", receipt.reason, left_role="text2", right_role="text"),
            Fact("Scope", "everything" if receipt.scope == "all" else receipt.scope, left_role="text2", right_role="text"),
            Fact("Remote order", receipt.order or "none, a local press", left_role="text2", right_role="text"),
            Fact("In all", took(receipt.ms_total), left_role="text2", right_role="text"),
            Fact(
                "Complete", "yes" if receipt.complete else "not yet", left_role="text2", right_role="text" if receipt.complete else "warn"
            ),
        ]
        self._sections["press"].say(press)
        self._sections["excluded"].say([Fact(words, "", "ring") for words in receipt.excluded[:40]] or [Fact("Nothing", "", "ring")])

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(colours.bg1))
        painter.fillRect(QRectF(0, 0, 1, self.height()), QColor(colours.line))
        painter.fillRect(QRectF(0, self.height() - DETAIL_FOOT, self.width(), 1), QColor(colours.line))
        painter.end()


class ReceiptPage(Page):
    """``on_show(kill_id)``; without one, the kill that is latched or the last one."""

    spec = PageSpec("receipt", "Receipt", "kill", "", under="kill-switch")
    verbs = (
        ActionSpec("receipt.move", "Move in the targets", "", "move", cap="↑ ↓"),
        ActionSpec("receipt.copy", "Copy the receipt as JSON", "C", "copy JSON"),
        ActionSpec("receipt.rearm", "Rearm…", "R", "rearm…", Risk.DESTRUCTIVE, "Agents can start again."),
        ActionSpec("receipt.back", "Back to the kill switch", "Backspace", "kill switch"),
    )

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self.kill_id = ""
        self.receipt: Receipt | None = None
        self.head = ReceiptHead(self)
        self.open_box = OpenBox(self)
        self.timeline = Timeline(self)
        self.pills = Pills({"all": "All", "open": "Not proven", "best": "Best effort", "proven": "Proven"}, self)
        self.model = RowModel(COLUMNS, target_words, self)
        self.view = RowView(self.model, paint_target, lambda row: str(row.key), self)
        self.view.setAccessibleName("Targets")
        self.side = SidePane(self)
        self._shown = Text("", 12, fonts.REGULAR, "text2", right=True)
        self._build()
        self.pills.changed.connect(lambda _key: self._show_targets())
        self.side.verify.clicked.connect(lambda: self.do("receipt.copy"))
        self.side.rearm.clicked.connect(lambda: self.do("receipt.rearm"))

    def _build(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        top = QHBoxLayout()
        top.setContentsMargins(16, 0, 16, 0)
        top.addWidget(self.head, 1)
        top.addWidget(self.open_box, 0, Qt.AlignmentFlag.AlignVCenter)
        column.addLayout(top)
        column.addWidget(self.timeline)
        bar = QWidget(self)
        bar.setFixedHeight(FILTER_BAR)
        line = QHBoxLayout(bar)
        line.setContentsMargins(16, 0, 16, 0)
        line.addWidget(self.pills)
        line.addStretch(1)
        line.addWidget(self._shown)
        left = QVBoxLayout()
        left.setSpacing(0)
        left.addWidget(bar)
        left.addWidget(self.view, 1)
        body = QHBoxLayout()
        body.setSpacing(0)
        body.addLayout(left, 1)
        body.addWidget(self.side)
        column.addLayout(body, 1)

    # --- what the window tells -----------------------------------------------------------------------------------

    def on_show(self, argument: str = "") -> None:
        wanted = argument or self._latest()
        if wanted != self.kill_id:
            self.kill_id, self.receipt = wanted, None
        self.on_models()
        self._read()
        self.view.setFocus()

    def on_models(self) -> None:
        if not self.kill_id and (latest := self._latest()):
            self.kill_id = latest  # the page was opened before the list of kills had come
            self._read()
        live = self.desk.switch.receipt
        if live is not None and live.kill_id == self.kill_id:
            self.receipt = live
        self._show()

    def resync(self) -> None:
        if self.kill_id:
            self._read()

    def is_ready(self) -> bool:
        return self.receipt is not None

    def why_not(self, action_id: str) -> str:
        if action_id == "receipt.rearm":
            return "" if self._is_latched() else "This kill is not latched any more."
        if action_id == "receipt.copy" and self.receipt is None:
            return "The receipt has not been read yet."
        return ""

    def do(self, action_id: str) -> None:
        if action_id == "receipt.copy" and self.receipt is not None:
            QGuiApplication.clipboard().setText(json.dumps(self.receipt.as_json(), indent=2))  # ASCII: escapes stay visible
            self.desk.notices.say("info", "The receipt is in the clipboard as JSON.")
        elif action_id == "receipt.rearm":
            RearmDialog(self.desk, self.kill_id, self.window()).open()
        elif action_id == "receipt.back":
            self.desk.goto("kill-switch", "")

    # --- inside ------------------------------------------------------------------------------------------------------

    def _latest(self) -> str:
        switch = self.desk.switch
        if switch.guard.kill_id and switch.is_killed:
            return switch.guard.kill_id
        if switch.view is not None:
            return switch.view.kill_id or (switch.view.receipts[0].kill_id if switch.view.receipts else "")
        return ""

    def _read(self) -> None:
        if self.kill_id:
            self.desk.requests.switch.receipt(self.kill_id).then(self._came).failed(self._missing)

    def _came(self, receipt: Receipt) -> None:
        if receipt.kill_id == self.kill_id:
            self.receipt = receipt
            self._show()

    def _missing(self, error: ConsoleError) -> None:
        if self.receipt is None and not self.desk.switch.is_killing:
            self.head.say(self.kill_id, headline(None, self.desk.switch.guard))

    def _is_latched(self) -> bool:
        switch = self.desk.switch
        return switch.is_killed and self.kill_id in (switch.view.kill_id if switch.view else "", switch.guard.kill_id)

    def _show(self) -> None:
        self.head.say(self.kill_id, headline(self.receipt, self.desk.switch.guard))
        self.open_box.say(open_points(self.receipt))
        self.timeline.say(self.receipt)
        self.side.say(self.receipt)
        self.side.rearm.allow(self.why_not("receipt.rearm"))
        self.side.verify.allow(self.why_not("receipt.copy"))
        self._show_targets()

    def _show_targets(self) -> None:
        targets = in_order(self.receipt.targets) if self.receipt else []
        for key, outcomes in _FILTERS.items():
            words = {"all": "All", "open": "Not proven", "best": "Best effort", "proven": "Proven"}[key]
            self.pills.pills[key].setText(f"{words} {sum(1 for t in targets if t.outcome in outcomes)}")
        wanted = _FILTERS[self.pills.chosen()]
        rows = [TargetRow(t, _name(self.desk.fleet, t.agent_id)) for t in targets if t.outcome in wanted]
        if rows != self.model.rows:
            self.view.show_rows(rows)
        self._shown.setText(f"{len(rows):,} of {plural(len(targets), 'target')}")

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.side.setVisible(not self.is_narrow)
        self.open_box.setFixedWidth(300 if self.is_narrow else 420)


def _step_lines(step: Step) -> list[Fact]:
    """A step with its whole detail."""
    good = step.status is StepStatus.OK
    mark, role = ("check", "text2") if good else ("triangle", "warn")
    words = step.detail or step.status.value
    at = f"+{took(step.ms)}" if step.ms is not None else step.status.value
    title = Fact(STEP_TITLES[step.name], at, mark, role, right_role="text2" if good else "warn")
    return [title] if len(words) < 3 else [title, Fact(words, "", "", left_role="text2", indent=True)]


def _name(fleet: Fleet, agent_id: str) -> str:
    row = fleet.rows.get(agent_id)
    return row.name if row is not None else safe_text(agent_id, 60)
