"""The policy page: rules in force, lint, one call explained, tools and scopes, forbidden sequences, and a change tried before it holds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtWidgets import QWidget

from console.api import endpoints as ep
from console.api.policy.page import JudgedRow, LintFinding, MarkRow, SequenceRow, ToolRow
from console.api.policy.rules import ChangedCall, ExactRemoveBody, ExactRule, PolicyView, RuleRow
from console.gui.kit.asking import ReasonDialog
from console.gui.kit.layout import column
from console.gui.link.pending import Pending
from console.gui.pages import declared
from console.gui.pages.interface import Badge, Desk
from console.gui.pages.list_page import ListPage
from console.gui.pages.policy import findings, rules, sequences, tools
from console.gui.pages.policy.header import PolicyHeader, head_facts
from console.gui.pages.policy.pane import PolicyPane, RuleCalls
from console.gui.pages.policy.reader import PolicyReader
from console.gui.pages.policy.tabs import TABS, PolicyTabs
from console.gui.pages.policy.words import AskedCall, asked_call

AGAIN_S = 10.0
"""Hits and marks are read again while the page is in front; the more rules, the more seldom."""


class RemoveDialog(ReasonDialog):
    """Removes a rule that a person made of an approval. ``then`` gets the rules that are left in force."""

    def __init__(self, desk: Desk, rule: ExactRule, then: Callable[[PolicyView], None], parent: QWidget) -> None:
        super().__init__("Remove this rule?", "Remove", "danger", parent)
        self.desk, self._rule, self._then = desk, rule, then
        self.paragraph(f"{rule.tool} {rule.argument}"[:600], "text")
        self.paragraph("From then on each such call is asked again.")
        self.ask("Reason (optional)", needed=False)

    def send(self, reason: str) -> Pending[PolicyView]:
        return self.desk.requests.ask(ep.REMOVE_RULE, body=ExactRemoveBody(id=self._rule.id, reason=reason))

    def answered(self, answer: PolicyView) -> None:
        self._then(answer)


class PolicyPage(ListPage):
    """Reads everything; a change goes the reviewed way of the supervisor, with a reason."""

    spec = declared.POLICY

    pane: PolicyPane

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self.reader, self.calls = PolicyReader(desk, self), RuleCalls(desk, self)
        self.header = PolicyHeader(self)
        self.tabs = PolicyTabs(desk, self.reader, self)
        self.lay(column(self.header, (self.tabs, 1)), PolicyPane(self), 356)  # in the order in which Tab goes through them
        self.reader.came.connect(lambda _tab: self._told())
        self.reader.failed.connect(lambda _tab, _error: self._told())
        self.calls.changed.connect(self.show_pane)
        self.tabs.turned.connect(self.resync)
        self.tabs.turned.connect(self.show_pane)
        self.tabs.chosen.connect(self.show_pane)
        self.tabs.opened.connect(self.turn_pane)
        self.pane.call_opened.connect(self._explain_call)
        self.tabs.backtest.opened.connect(self._explain_call)
        self.tabs.backtest.saved.connect(self.reader.take)
        self.handlers = {f"policy.{tab}": partial(self._choose, tab) for tab in TABS} | {
            "policy.detail": self.turn_pane,
            "policy.save": self.tabs.backtest.put_in_force,
            "policy.remove": self._remove,
            "policy.agent": lambda: self.desk.goto("fleet", getattr(self.current(), "agent_id", "")),
            "policy.filter": self.tabs.bar.search.setFocus,
        }

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
        self.reader.read(self.tabs.name())
        self.show_pane()
        self.tabs.focus()

    def on_models(self) -> None:
        old = self.desk.switch.is_old(self.desk.clock())
        self.header.take(head_facts(self.reader.policy, self.reader.problems.get("rules", ""), old))
        self.tabs.backtest.allow()

    def on_tick(self, now: float) -> None:
        rows = len(self.reader.policy.rules) if self.reader.policy is not None else 0
        if now - self.reader.read_at > AGAIN_S * (1 + rows // 1000):
            self.reader.read(self.tabs.name())
        self.on_models()
        self.tabs.rules.view.refresh()

    def resync(self) -> None:
        if self.isVisible():
            self.reader.read(self.tabs.name())

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

    def current(self) -> object:
        return self.tabs.current()

    def _choose(self, tab: str) -> None:
        self.tabs.choose(tab)
        self.tabs.focus()

    def _remove(self) -> None:
        if isinstance(row := self.current(), rules.ExactRow):
            RemoveDialog(self.desk, row.exact, self.reader.take, self.window()).open()

    def _explain_call(self, row: JudgedRow | ChangedCall) -> None:
        self.tabs.choose("explain")
        self.tabs.explain.take(AskedCall(row.tool, row.argument, row.agent_id, row.cwd))
        self.tabs.focus()

    # --- showing ---------------------------------------------------------------------------------------------------

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
        super().show_pane()
