"""The policy page: rules in force, lint, one call explained, tools and scopes, forbidden sequences, and a change tried before it holds."""

from __future__ import annotations

from functools import partial

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from console.api.policy_messages import ChangedCall, PolicyView, RuleRow
from console.api.policy_page import JudgedRow, JudgedView, LintFinding, LintView, MarkRow, SequenceRow, SequencesView, ToolRow, ToolsView
from console.domain.errors import ConsoleError
from console.gui.pages.interface import Badge, Desk, Page, PageSpec
from console.gui.pages.policy import findings, rules, sequences, tools
from console.gui.pages.policy.backtest import Backtest
from console.gui.pages.policy.bar import TABS, Bar
from console.gui.pages.policy.explain import Explainer
from console.gui.pages.policy.header import PolicyHeader, head_facts
from console.gui.pages.policy.listing import Listing
from console.gui.pages.policy.pane import Pane
from console.gui.pages.policy.sequences import SequenceTables
from console.gui.pages.policy.verbs import VERBS
from console.gui.pages.policy.words import AskedCall, asked_call

AGAIN_S = 10.0
"""Hits and marks are read again while somebody looks; the more rules there are, the more seldom."""
_LISTS = ("rules", "lint", "matrix", "sequences")
"""Tabs with a filter and a pane."""


class PolicyPage(Page):
    """Reads everything; a change goes the reviewed way of the supervisor, with a reason."""

    spec = PageSpec("policy", "Policy", "shield", "Operate")
    verbs = VERBS

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self.policy: PolicyView | None = None
        self.tools_view: ToolsView | None = None
        self._problem = ""
        self._read_at = 0.0
        self._lint_problem = ""
        self._reading = 0
        """Answers on their way."""
        self._again = False
        self._pane_wanted = False
        """Turned by Enter: hidden when wide, shown over the table when narrow."""
        self._calls: tuple[str, list[JudgedRow] | None, str] = ("", None, "")
        """(rule and its use that they are of, the calls, why there are none)."""
        self.header, self.bar, self.pane = PolicyHeader(self), Bar(self), Pane(self)
        self.rules = self._listing("Rules", rules, rules.paint_rule)
        self.lint = self._listing("Lint findings", findings, findings.paint_finding)
        self.matrix = self._listing("Tools", tools, tools.paint_tool)
        self.sequences = SequenceTables(desk.fleet, self)
        self.explain, self.backtest = Explainer(desk, self), Backtest(desk, self)
        self.stack = QStackedWidget(self)
        self._of_tab = (self.rules, self.lint, self.explain, self.matrix, self.sequences, self.backtest)
        for part in self._of_tab:
            self.stack.addWidget(part)
        left = QVBoxLayout()
        left.setSpacing(0)
        for top in (self.header, self.bar):
            left.addWidget(top)
        left.addWidget(self.stack, 1)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addLayout(left, 1)
        row.addWidget(self.pane)
        self._connect()

    def _listing(self, name: str, kind: object, paint: object) -> Listing:
        k = kind
        return Listing(name, k.COLUMNS, k.cell_words, paint, k.key_of, k.SORTS, k.keeps, k.READING, k.NONE, k.EMPTY, self)  # type: ignore[attr-defined,arg-type]

    def _connect(self) -> None:
        self.bar.search.textChanged.connect(self._filter)
        self.bar.search.left.connect(self._focus)
        self.bar.tabs.changed.connect(lambda _tab: self._turned())
        for listing in (self.rules, self.lint, self.matrix):
            listing.chosen.connect(lambda _row: self._show_pane())
            listing.opened.connect(lambda _row: self.do("policy.detail"))
        self.sequences.chosen.connect(lambda _row: self._show_pane())
        for view in (self.sequences.patterns, self.sequences.marks):
            view.opened.connect(lambda _row: self.do("policy.detail"))
        self.pane.asked.connect(self.do)
        self.pane.call_opened.connect(self._explain_call)
        self.backtest.opened.connect(self._explain_call)
        self.backtest.saved.connect(self._policy_came)

    # --- what the window tells -----------------------------------------------------------------------------------

    def on_show(self, argument: str = "") -> None:
        call = asked_call(argument)
        if call is not None:
            self._choose("explain")
            self.explain.take(call)
        elif argument in TABS:
            self._choose(argument)
        elif argument:
            self._choose("rules")
            self.bar.search.setText(argument[:200])
        self.read()
        self._show_pane()
        self._focus()

    def on_models(self) -> None:
        self._show_head()
        self.backtest.allow()

    def on_tick(self, now: float) -> None:
        rows = len(self.policy.rules) if self.policy is not None else 0
        if now - self._read_at > AGAIN_S * (1 + rows // 1000):
            self.read()
        self._show_head()
        self.rules.view.refresh()

    def resync(self) -> None:
        if self.isVisible():
            self.read()

    def badge(self) -> Badge | None:
        return Badge("File", "danger", "alert") if self.policy is not None and self.policy.problem else None

    def keys(self) -> tuple[tuple[str, str], ...]:
        if self.bar.tabs.chosen() == "backtest":
            return (*super().keys(), ("Ctrl S", "put in force…"))
        return super().keys()

    def is_ready(self) -> bool:
        tab = self.bar.tabs.chosen()
        if tab == "sequences":
            return self.sequences.view is not None
        if tab == "matrix":
            return self.tools_view is not None
        return (self.policy is not None or bool(self._problem)) and (self.lint.rows is not None or bool(self._lint_problem))

    # --- actions ---------------------------------------------------------------------------------------------------

    def why_not(self, action_id: str) -> str:
        if action_id == "policy.save":
            return self.backtest.why_not() if self.bar.tabs.chosen() == "backtest" else "No change of the rules is open (B)."
        if action_id == "policy.agent":
            mark = self.sequences.current() if self.bar.tabs.chosen() == "sequences" else None
            if not isinstance(mark, MarkRow):
                return "No step that somebody took is selected."
            return "" if mark.agent_id in self.desk.fleet.rows else "Its agent is not in the fleet any more."
        if action_id == "policy.filter" and self.bar.tabs.chosen() not in _LISTS:
            return "There is no list to filter here."
        return ""

    def do(self, action_id: str) -> None:
        if self.why_not(action_id):
            self.desk.notices.say("info", self.why_not(action_id))
            return
        tab = action_id.removeprefix("policy.")
        if tab in TABS:
            self._choose(tab)
            self._focus()
        elif action_id == "policy.filter":
            self.bar.search.setFocus()
        elif action_id == "policy.save":
            self.backtest.put_in_force()
        elif action_id == "policy.detail":
            self._pane_wanted = not self._pane_wanted
            self._show_pane()
        elif action_id == "policy.agent":
            mark = self.sequences.current()
            if isinstance(mark, MarkRow):
                self.desk.goto("fleet", mark.agent_id)

    def _explain_call(self, row: JudgedRow | ChangedCall) -> None:
        cwd = row.cwd if isinstance(row, JudgedRow) else ""
        self._choose("explain")
        self.explain.take(AskedCall(row.tool, row.argument, row.agent_id, cwd))
        self._focus()

    # --- reading ---------------------------------------------------------------------------------------------------

    def read(self) -> None:
        """Asks for what the tab in front shows, unless answers are still on their way."""
        self._read_tab()
        if self._reading:
            self._again = True
            return
        self._read_at = self.desk.clock()
        asks = self.desk.requests.policy
        self._reading = 2
        asks.rules().while_alive(self).then(self._rules_came).failed(self._failed)
        asks.lint().while_alive(self).then(self._lint_came).failed(self._no_lint)

    def _read_tab(self) -> None:
        """What only one tab shows."""
        asks, tab = self.desk.requests.policy, self.bar.tabs.chosen()
        if tab == "matrix":
            asks.tools().while_alive(self).then(self._tools_came).failed(lambda error: self.matrix.fail(f"Not known: {error}"))
        elif tab == "sequences":
            asks.sequences().while_alive(self).then(self._sequences_came).failed(lambda error: self.sequences.fail(str(error)))

    def _arrived(self) -> None:
        """One answer less on its way; whoever asked meanwhile is read for now."""
        self._reading -= 1
        if not self._reading and self._again:
            self._again = False
            self.read()

    def _failed(self, error: ConsoleError) -> None:
        self._problem = str(error)
        self.rules.fail(f"Not known: {error}")
        self._show_head()
        self._arrived()

    def _no_lint(self, error: ConsoleError) -> None:
        self._lint_problem = str(error)
        self.lint.fail(f"Not known: {error}")
        self.lint.warn(f"The lint cannot be read now: {error}", "warn", "triangle")
        self._arrived()

    def _rules_came(self, view: PolicyView) -> None:
        self._policy_came(view)
        self._arrived()

    def _policy_came(self, view: PolicyView) -> None:
        self.policy, self._problem = view, ""
        kept = "the last good rules stay in force" if view.rules else "every call is denied"
        self.rules.warn(f"The newest file is NOT in force: {view.problem} So {kept}." if view.problem else "")
        self.rules.say(view.rules)
        self.bar.tabs.pills["rules"].setText(f"Rules {len(view.rules):,}")
        self.backtest.take(view)
        self._show_head()
        self._show_pane()
        self.badge_changed.emit()

    def _lint_came(self, view: LintView) -> None:
        self._lint_problem = ""
        self.lint.say(view.findings)
        problem = "These findings are about the last good rules: the newest file is not in force." if view.problem else ""
        shown = findings.counted(view) if view.count > len(view.findings) else ""
        self.lint.warn(problem or shown, "danger" if problem else "warn", "diamond" if problem else "triangle")
        self.bar.tabs.pills["lint"].setText(f"Lint {view.count:,}")
        self._show_pane()
        self._arrived()

    def _tools_came(self, view: ToolsView) -> None:
        self.tools_view = view
        self.matrix.warn(*tools.matrix_words(view))
        self.matrix.say(view.tools)
        self._show_pane()

    def _sequences_came(self, view: SequencesView) -> None:
        self.sequences.say(view)
        if self.sequences.current() is None and view.patterns:
            self.sequences.patterns.choose(view.patterns[0].name)
        self._show_pane()

    def _read_calls(self, row: RuleRow) -> None:
        key, had = rules.use_of(row), self._calls
        is_same = had[0].startswith(f"{rules.key_of(row)}\0")  # what is shown stays until the newer ones come
        self._calls = (key, had[1], had[2]) if is_same else (key, [], "Being read…")
        asked = self.desk.requests.policy.calls(row.rule, row.list).while_alive(self)
        asked.then(partial(self._calls_came, key)).failed(lambda error: self._no_calls(key, f"Not known: {error}"))

    def _calls_came(self, key: str, view: JudgedView) -> None:
        if self._calls[0] == key:
            self._calls = (key, view.rows, "" if view.rows else "No recorded call was decided by it.")
            self._show_pane()

    def _no_calls(self, key: str, words: str) -> None:
        if self._calls[0] == key:
            self._calls = (key, [], words)
            self._show_pane()

    # --- showing ---------------------------------------------------------------------------------------------------

    def _choose(self, tab: str) -> None:
        self.bar.tabs.pills[tab].setChecked(True)
        self._turned()

    def _turned(self) -> None:
        tab = self.bar.tabs.chosen()
        self.stack.setCurrentIndex(list(TABS).index(tab))
        self.bar.search.setEnabled(tab in _LISTS)
        self._filter()
        if self.isVisible():
            self.read()
        self._show_pane()

    def _filter(self) -> None:
        text = self.bar.search.text()
        shown = ""
        for listing in (self.rules, self.lint, self.matrix, self.sequences):
            if listing is self.stack.currentWidget():
                listing.arrange(text)
                shown = listing.shown_words() if isinstance(listing, Listing) else ""
        self.bar.shown.setText(shown)
        self.bar.shown.setVisible(bool(shown))

    def _focus(self) -> None:
        fronts = (self.rules.view, self.lint.view, self.explain.call, self.matrix.view, self.sequences.patterns, self.backtest.field)
        fronts[self.stack.currentIndex()].setFocus()

    def _show_head(self) -> None:
        light, _ = self.desk.switch.light(self.desk.clock())
        self.header.take(head_facts(self.policy, self._problem, light == "unknown"))

    def _show_pane(self) -> None:
        tab = self.bar.tabs.chosen()
        has = self._tell_pane(tab)
        self.pane.setVisible(has and (self._pane_wanted if self.is_narrow else not self._pane_wanted))

    def _tell_pane(self, tab: str) -> bool:
        """Whether there is something to say."""
        row = self._current(tab)
        if isinstance(row, RuleRow) and self.policy is not None:
            if self._calls[0] != rules.use_of(row):
                self._read_calls(row)
            self.pane.say(rules.key_of(row), f"Rules  ›  {row.list}", rules.title(row), rules.chips(row), rules.told(row, self.policy))
            self.pane.show_calls(self._calls[1], self._calls[2])
            return True
        self.pane.show_calls(None)
        if isinstance(row, LintFinding):
            self.pane.say(findings.key_of(row), "Lint", row.rule, findings.chips(row), findings.told(row))
        elif isinstance(row, ToolRow) and self.tools_view is not None:
            told = tools.told(row, self.tools_view, self.desk.fleet.rows.values())
            self.pane.say(tools.key_of(row), "Tools", tools.name_of(row), tools.chips(row), told)
        elif isinstance(row, MarkRow):
            told = sequences.mark_told(row, self.sequences.name_of(row.agent_id))
            self.pane.say(sequences.mark_key(row), f"Steps that stand  ›  {row.pattern}", row.step, sequences.mark_chips(row), told)
        elif isinstance(row, SequenceRow):
            self.pane.say(row.name, "Sequences", row.name, sequences.pattern_chips(row), sequences.pattern_told(row))
        return row is not None

    def _current(self, tab: str) -> object:
        if tab == "sequences":
            return self.sequences.current()
        listing = {"rules": self.rules, "lint": self.lint, "matrix": self.matrix}.get(tab)
        return listing.view.current() if listing is not None else None

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_pane()
