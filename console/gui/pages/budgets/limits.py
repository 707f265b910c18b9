"""The question before limits change: what holds, what is typed, what that would do at once, and why it is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from PySide6.QtWidgets import QGridLayout, QLayout, QLineEdit, QWidget

from console.api import endpoints as ep
from console.api.budgets import BudgetBody, BudgetChange, BudgetNodeView, BudgetRow, BudgetScope, BudgetSetView
from console.domain.errors import ConsoleError, UsageProblem
from console.gui.kit.layout import STRETCH, fill, row
from console.gui.pages.budgets.words import UNITS, cap_words, read_cap, typed_cap
from console.gui.pages.interface import Desk
from console.gui.theme import fonts
from console.gui.timers import once
from console.gui.widgets.buttons import Pills
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.facts import Fact, Facts
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.text import Text
from console.gui.widgets.words import plural
from console.wording.limits import LABELS, amount, label

AFTER_MS = 250
_BEFORE = "asked before"
_LISTED = 5
Named = Literal["session", "project", "type"]


@dataclass(frozen=True, slots=True)
class Target:
    """Whose limits."""

    scope: BudgetScope
    key: str
    words: str


def limit_fields(
    parent: QWidget, placeholder: str, typed: Callable[[], object], *, columns: int = 1
) -> tuple[dict[str, QLineEdit], QGridLayout]:
    """Return a field for each limit, and the grid in which they stand with label and unit; ``typed`` is called at each change."""
    fields: dict[str, QLineEdit] = {}
    grid = QGridLayout()
    grid.setHorizontalSpacing(12)
    grid.setVerticalSpacing(5)
    for number, (limit, words) in enumerate(LABELS.items()):
        row, at = number // columns, number % columns * 4
        field = fields[limit] = QLineEdit(parent)
        field.setMaxLength(40)
        field.setPlaceholderText(placeholder)
        field.setAccessibleName(f"Limit: {words}")
        field.setFixedWidth(150 if columns == 1 else 100)
        field.textChanged.connect(lambda _text: typed())
        grid.addWidget(Text(words, 12, fonts.MEDIUM), row, at)
        grid.addWidget(field, row, at + 1)
        grid.addWidget(
            Text(UNITS.get(limit, "") if columns == 1 else UNITS.get(limit, "").removeprefix("90, "), 11, fonts.REGULAR, "text3"),
            row,
            at + 2,
        )
    return fields, grid


def targets_of(row: BudgetRow | None) -> dict[str, Target]:
    """What can be chosen from a selected row: itself, every day, or an agent by name, which may start later."""
    found: dict[str, Target] = {}
    if row is not None and row.scope in ("agent", "tree"):
        tree, alone = Target("tree", row.key, "With all below it"), Target("agent", row.key, "This agent alone")
        if row.scope == "tree":
            found = {"tree": Target("tree", row.key, "This tree"), "agent": Target("agent", row.key, "Its root alone")}
        else:
            found = {"agent": alone, "tree": tree}
    elif row is not None and row.scope in ("session", "project"):
        found = {row.scope: Target(row.scope, row.key, f"This {row.scope}")}
    return found | {"day": Target("day", "", "Every day"), "named": Target("session", "", "By name…")}


class LimitsDialog(Dialog):
    """Nothing is sent without a reason, and what it does is shown first: which agents it halts, what it raises."""

    def __init__(self, desk: Desk, row: BudgetRow | None, parent: QWidget) -> None:
        name = f" of {safe_text(row.name or row.key, 60)}" if row is not None and row.scope != "day" else ""
        super().__init__(f"Change limits{name}", "Set limits", "primary", parent, width=600)
        column = self.layout()
        assert column is not None
        column.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)
        self.desk = desk
        self._targets = targets_of(row)
        self.caps: dict[str, float | None] = {}
        """What holds now, by limit; empty until it was read."""
        self.would: BudgetSetView | None = None
        self._asked = 0
        self._sent = False
        self._late = once(self, AFTER_MS, self._look)
        self._build_target()
        self._build_fields()
        self._build_question()
        self.main.clicked.connect(self._send)
        self._retarget()

    # --- parts -------------------------------------------------------------------------------------------------------

    def _build_target(self) -> None:
        self.pills = Pills({key: target.words for key, target in self._targets.items()}, self)
        self.pills.setAccessibleName("Whose limits")
        self.kinds = Pills({"session": "Session", "project": "Project", "type": "Agent type"}, self)
        self.kinds.setAccessibleName("Kind of name")
        self.named = QLineEdit(self)
        self.named.setMaxLength(400)
        self.named.setPlaceholderText("its name; it may start later")
        self.named.setAccessibleName("Name")
        fill(self.body, row(self.pills, STRETCH, spacing=-1), row(self.kinds, self.named, spacing=-1))
        self.pills.changed.connect(lambda _key: self._retarget())
        self.kinds.changed.connect(lambda _key: self._retarget())
        self.named.editingFinished.connect(self._retarget)

    def _build_fields(self) -> None:
        self.fields, grid = limit_fields(self, "no limit", self._typed)
        self.used = {limit: Text("", 12, fonts.REGULAR, "text2") for limit in self.fields}
        for number, text in enumerate(self.used.values()):
            grid.addWidget(text, number, 3)
        grid.setColumnStretch(3, 1)
        self.body.addLayout(grid)

    def _build_question(self) -> None:
        self.sentence = self.paragraph("", "text2", "ring")
        self.whom = Facts(21)
        self.body.addWidget(self.whom)
        self.reason = self.ask_reason()
        self.reason.textChanged.connect(lambda _text: self.allow())

    # --- what is asked for -------------------------------------------------------------------------------------------

    @property
    def target(self) -> Target:
        """Whose limits are changed."""
        key = self.pills.chosen()
        if key != "named":
            return self._targets[key]
        kind = self.kinds.chosen()
        scope: Named = "project" if kind == "project" else "type" if kind == "type" else "session"
        return Target(scope, self.named.text().strip(), "")

    def changed(self) -> tuple[dict[str, float], list[str]]:
        """(limits to set, limits to clear): only what differs from what holds. Raises UsageProblem."""
        limits: dict[str, float] = {}
        clear: list[str] = []
        for name, field in self.fields.items():
            value = read_cap(name, field.text())
            if value == self.caps.get(name):
                continue
            if value is None:
                clear.append(name)
            else:
                limits[name] = value
        return limits, clear

    def missing(self) -> str:
        """What has to be filled in first, or empty."""
        if self.pills.chosen() == "named" and not self.target.key:
            return "Name the session, project or type."
        if not self.caps:
            return "What holds now has not been read yet."
        try:
            limits, clear = self.changed()
        except UsageProblem as error:
            return str(error)
        if not limits and not clear:
            return "Nothing differs from what holds now."
        if self.would is None:
            return "What this would do is not known yet."
        return "" if self.reason.text().strip() else "Give a reason: it is recorded."

    def _body(self, reason: str, *, dry_run: bool) -> BudgetBody:
        limits, clear = self.changed()
        target = self.target
        return BudgetBody(scope=target.scope, key=target.key, limits=limits, clear=clear, reason=reason, dry_run=dry_run)

    # --- before ------------------------------------------------------------------------------------------------------

    def _retarget(self) -> None:
        """Another one is meant: what holds there is read."""
        by_name = self.pills.chosen() == "named"
        self.kinds.setVisible(by_name)
        self.named.setVisible(by_name)
        self._late.stop()
        self.caps, self.would = {}, None
        self.whom.say([])
        self._asked += 1
        for text in self.used.values():
            text.setText("")
        self._say("What holds now is read…", "text2", "ring")
        self.allow()
        if by_name and not self.target.key:
            self._say("Limits can be set before anything of that name runs.", "text2", "")
            return
        number, target = self._asked, self.target
        asked = self.desk.requests.ask(ep.BUDGET_NODE, scope=target.scope, key=target.key).while_alive(self)
        asked.then(lambda view: self._read(view, number)).failed(lambda error: self._unread(error, number))

    def _read(self, view: BudgetNodeView, number: int) -> None:
        if number != self._asked or self._sent:
            return
        self.caps = {g.limit: g.cap for g in view.gauges if g.limit in self.fields}
        for g in view.gauges:
            if g.limit in self.fields:
                self.fields[g.limit].setText(typed_cap(g.limit, g.cap))
                come = f", from {g.inherited}" if g.inherited else ""
                self.used[g.limit].setText(f"{amount(g.limit, g.used)} used{come}")
        self.fields["cost_usd"].setFocus()
        self.fields["cost_usd"].selectAll()
        self._typed()

    def _unread(self, error: ConsoleError, number: int) -> None:
        if number == self._asked and not self._sent:
            self._say(f"What holds there is not known: {error}", "warn", "triangle")
            self.allow()

    def _typed(self) -> None:
        """What was typed changed: the answer to an older question is none any more."""
        self.would = None
        self.problem.hide()
        self.whom.say([])
        if not self.caps:
            return
        self._asked += 1
        try:
            limits, clear = self.changed()
        except UsageProblem as error:
            self._late.stop()
            self._say(str(error), "warn", "triangle")
        else:
            if limits or clear:
                self._say("The supervisor is asked what this would do…", "text2", "ring")
                self._late.start()
            else:
                self._late.stop()
                self._say("Leave empty for no limit.", "text2", "")
        self.allow()

    def _look(self) -> None:
        number = self._asked
        asked = self.desk.requests.ask(ep.CHANGE_BUDGET, body=self._body(_BEFORE, dry_run=True)).while_alive(self)
        asked.then(lambda view: self._seen(view, number)).failed(lambda error: self._unseen(error, number))

    def _seen(self, view: BudgetSetView, number: int) -> None:
        if number != self._asked or self._sent:
            return
        self.would = view
        bad = bool(view.halted or view.cannot_stop)
        self._say(view.words, "warn" if bad else "text", "triangle" if bad else "check")
        self.whom.say(would_lines(view, self.desk))
        self.allow()

    def _unseen(self, error: ConsoleError, number: int) -> None:
        if number == self._asked and not self._sent:
            self._say(f"What this would do is not known: {error}", "warn", "triangle")

    def _say(self, words: str, role: str, mark: str) -> None:
        self.sentence.say(words, role, mark)

    def allow(self) -> None:
        """The main button repeats what it halts; off, with why, until it can be sent."""
        halted = len(self.would.halted) if self.would is not None else 0
        self.main.setText(f"Set, and halt {plural(halted, 'agent')}" if halted else "Set limits")
        self.main.allow(self.missing())

    # --- the act -----------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        try:
            body = self._body(self.reason.text().strip(), dry_run=False)
        except UsageProblem as error:
            self.refused(error)
            return
        self._sent = True
        self._late.stop()
        self.problem.hide()
        self.main.allow("In progress.")
        self._say("In progress. You can close this window.", "text2", "ring")
        self.desk.requests.ask(ep.CHANGE_BUDGET, body=body).then(self._done).failed(self._failed)

    def _failed(self, error: ConsoleError) -> None:
        self.desk.ask_sync()
        if not self.is_open:
            self.desk.notices.fail(error)
            return
        self._sent = False
        self._say("It was refused, or not finished.", "warn", "triangle")
        self.refused(error)

    def _done(self, view: BudgetSetView) -> None:
        self.desk.ask_sync()
        self.desk.notices.say("amber" if view.halted else "info", view.words)
        if self.is_open:
            self.accept()


def would_lines(view: BudgetSetView, desk: Desk) -> list[Fact]:
    """Each limit as it is and would be, then the agents that it halts or cannot stop, by name."""
    lines = [Fact(change_line(c), _turn(c.old, c.new)) for c in view.changes[:8]]
    return [*lines, *stopped_lines(view.halted, view.cannot_stop, desk)]


def stopped_lines(halted: Sequence[str], cannot_stop: Sequence[str], desk: Desk) -> list[Fact]:
    """The agents that a change halts, and those that it cannot stop, by name."""
    lines: list[Fact] = []
    for ids, words in ((halted, "halted at once"), (cannot_stop, "only observed: goes on")):
        lines += [Fact(_name(i, desk), words, "triangle", "warn", right_role="warn") for i in ids[:_LISTED]]
        if len(ids) > _LISTED:
            lines.append(Fact(f"and {plural(len(ids) - _LISTED, 'more agent')}", words, indent=True, right_role="warn"))
    return lines


def change_line(change: BudgetChange) -> str:
    """``cost: $120.00 → $160.00``."""
    return f"{label(change.limit)}: {_cap(change.limit, change.old)} → {_cap(change.limit, change.new)}"


def _cap(limit: str, value: float | None) -> str:
    return "no limit" if value is None else cap_words(limit, value)


def _turn(old: float | None, new: float | None) -> str:
    if new is None:
        return "cleared"
    return "new" if old is None else "raised" if new > old else "lowered"


def _name(agent_id: str, desk: Desk) -> str:
    row = desk.fleet.rows.get(agent_id)
    return row.name if row is not None else safe_text(agent_id, 60)
