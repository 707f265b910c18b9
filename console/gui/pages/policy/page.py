"""The policy page: rules in force, lint, one call explained, tools and scopes, forbidden sequences, and a change tried before it holds."""

from __future__ import annotations

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from console.api.policy.page import JudgedRow, LintFinding, MarkRow, SequenceRow, ToolRow
from console.api.policy.rules import ChangedCall, RuleRow
from console.gui.pages.interface import Badge, Desk, Page, PageSpec
from console.gui.pages.policy import findings, rules, sequences, tools
from console.gui.pages.policy.bar import TABS
from console.gui.pages.policy.calls import RuleCalls
from console.gui.pages.policy.header import PolicyHeader, head_facts
from console.gui.pages.policy.pane import WIDTH, Pane
from console.gui.pages.policy.reader import PolicyReader
from console.gui.pages.policy.remove import RemoveDialog
from console.gui.pages.policy.tabs import PolicyTabs
from console.gui.pages.policy.verbs import VERBS
from console.gui.pages.policy.words import AskedCall, asked_call
from console.gui.widgets.split import beside

AGAIN_S = 10.0
"""Hits and marks are read again while the page is in front; the more rules, the more seldom."""


class PolicyPage(Page):
    """Reads everything; a change goes the reviewed way of the supervisor, with a reason."""

    spec = PageSpec("policy", "Policy", "shield", "Operate", help="reference/policy.md")
    verbs = VERBS

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self._pane_wanted = False
        """Turned by Enter: hidden when wide, shown over the table when narrow."""
        self.reader, self.calls = PolicyReader(desk, self), RuleCalls(desk, self)
        self.header = PolicyHeader(self)
        self.tabs = PolicyTabs(desk, self.reader, self)
        self.pane = Pane(self)  # in the order in which Tab goes through them
        left = QVBoxLayout()
        left.setSpacing(0)
        left.addWidget(self.header)
        left.addWidget(self.tabs, 1)
        row = QVBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(beside(left, self.pane, self, WIDTH))
        self.reader.came.connect(lambda _tab: self._told())
        self.reader.failed.connect(lambda _tab, _error: self._told())
        self.calls.changed.connect(self.show_pane)
        self.tabs.turned.connect(self.resync)
        self.tabs.turned.connect(self.show_pane)
        self.tabs.chosen.connect(self.show_pane)
        self.tabs.opened.connect(lambda: self.do("policy.detail"))
        self.pane.asked.connect(self.do)
        self.pane.call_opened.connect(self._explain_call)
        self.tabs.backtest.opened.connect(self._explain_call)
        self.tabs.backtest.saved.connect(self.reader.take)

    # --- what the window tells -----------------------------------------------------------------------------------

    def on_show(self, argument: str = "") -> None:
        call = asked_call(argument)
        if call is not None:
            self.tabs.choose("explain")
            self.tabs.explain.take(call)
        elif argument in TABS:
            self.tabs.choose(argument)
        elif argument:
            self.tabs.choose("rules")
            self.tabs.bar.search.setText(argument[:200])
        self.read()
        self.show_pane()
        self.tabs.focus()

    def on_models(self) -> None:
        old = self.desk.switch.is_old(self.desk.clock())
        self.header.take(head_facts(self.reader.policy, self.reader.problems.get("rules", ""), old))
        self.tabs.backtest.allow()

    def on_tick(self, now: float) -> None:
        rows = len(self.reader.policy.rules) if self.reader.policy is not None else 0
        if now - self.reader.read_at > AGAIN_S * (1 + rows // 1000):
            self.read()
        self.on_models()
        self.tabs.rules.view.refresh()

    def resync(self) -> None:
        if self.isVisible():
            self.read()

    def badge(self) -> Badge | None:
        policy = self.reader.policy
        return Badge("File", "danger", "alert") if policy is not None and policy.problem else None

    def keys(self) -> tuple[tuple[str, str], ...]:
        if self.tabs.name() == "backtest":
            return (*super().keys(), ("Ctrl S", "put in force…"))
        return super().keys()

    def is_ready(self) -> bool:
        return self.reader.is_ready(self.tabs.name())

    # --- actions ---------------------------------------------------------------------------------------------------

    def why_not(self, action_id: str) -> str:
        tab = self.tabs.name()
        if action_id == "policy.save":
            return self.tabs.backtest.why_not() if tab == "backtest" else "No change of the rules is open (B)."
        if action_id == "policy.agent":
            mark = self.tabs.current() if tab == "sequences" else None
            if not isinstance(mark, MarkRow):
                return "No step that was taken is selected."
            return "" if mark.agent_id in self.desk.fleet.rows else "Its agent is not in the fleet any more."
        if action_id == "policy.remove":
            return "" if isinstance(self.tabs.current(), rules.ExactRow) else "No rule that was made of an approval is selected."
        if action_id == "policy.filter" and not self.tabs.has_filter():
            return "There is no list to filter here."
        return ""

    def do(self, action_id: str) -> None:
        if self.why_not(action_id):
            self.desk.notices.say("info", self.why_not(action_id))
            return
        tab = action_id.removeprefix("policy.")
        if tab in TABS:
            self.tabs.choose(tab)
            self.tabs.focus()
        elif action_id == "policy.filter":
            self.tabs.bar.search.setFocus()
        elif action_id == "policy.save":
            self.tabs.backtest.put_in_force()
        elif action_id == "policy.remove" and isinstance(row := self.tabs.current(), rules.ExactRow):
            RemoveDialog(self.desk, row.exact, self.reader.take, self.window()).open()
        elif action_id == "policy.detail":
            self._pane_wanted = not self._pane_wanted
            self.show_pane()
        elif action_id == "policy.agent":
            mark = self.tabs.current()
            if isinstance(mark, MarkRow):
                self.desk.goto("fleet", mark.agent_id)

    def _explain_call(self, row: JudgedRow | ChangedCall) -> None:
        self.tabs.choose("explain")
        self.tabs.explain.take(AskedCall(row.tool, row.argument, row.agent_id, row.cwd))
        self.tabs.focus()

    # --- showing ---------------------------------------------------------------------------------------------------

    def read(self) -> None:
        """Asks for what the tab in front shows, unless answers are still on their way."""
        self.reader.read(self.tabs.name())

    def _told(self) -> None:
        self.on_models()
        self.show_pane()
        self.badge_changed.emit()

    def show_pane(self) -> None:
        """What is selected, in words; nothing selected: no pane."""
        row, policy, tables = self.tabs.current(), self.reader.policy, self.tabs.sequences
        pane = self.pane
        pane.offer_removal(isinstance(row, rules.ExactRow))
        if isinstance(row, RuleRow) and policy is not None:
            self.calls.of(row)
            pane.say(rules.key_of(row), f"Rules  ›  {row.list}", rules.title(row), rules.chips(row), rules.told(row, policy))
            pane.show_calls(self.calls.rows, self.calls.words)
        else:
            pane.show_calls(None)
        if isinstance(row, LintFinding):
            pane.say(findings.key_of(row), "Lint", row.rule, findings.chips(row), findings.told(row))
        elif isinstance(row, ToolRow) and self.reader.tools is not None:
            told = tools.told(row, self.reader.tools, self.desk.fleet.rows.values())
            pane.say(tools.key_of(row), "Tools", tools.name_of(row), tools.chips(row), told)
        elif isinstance(row, MarkRow):
            told = sequences.mark_told(row, tables.name_of(row.agent_id))
            pane.say(sequences.mark_key(row), f"Steps that stand  ›  {row.pattern}", row.step, sequences.mark_chips(row), told)
        elif isinstance(row, SequenceRow):
            pane.say(row.name, "Sequences", row.name, sequences.pattern_chips(row), sequences.pattern_told(row))
        pane.setVisible(row is not None and self._pane_wanted is self.is_narrow)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.show_pane()
