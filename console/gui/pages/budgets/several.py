"""What is done to several selected rows: the question before the limits of all change, and what freeze and kill mean for them."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QWidget

from console.api import endpoints as ep
from console.api.budgets import BudgetBody, BudgetRow, BudgetSetView
from console.api.ladder import ScopeBody
from console.domain.errors import ConsoleError, UsageProblem
from console.gui.models.fleet import Fleet
from console.gui.pages.budgets.limits import AFTER_MS, change_line, limit_fields, stopped_lines
from console.gui.pages.budgets.words import read_cap, spent_words
from console.gui.pages.declared import Reach
from console.gui.pages.interface import Desk
from console.gui.pages.kill_switch.rung_words import scope_of
from console.gui.timers import once
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.facts import Fact, Facts
from console.gui.widgets.reading import TargetsView
from console.gui.widgets.words import cap_usd, plural

SEVERAL = 50
"""Rows whose limits are changed together: a person reads each."""
_REACHES: dict[str, Reach] = {"agent": "tree", "tree": "tree", "session": "session"}
_NONE = ("none", "no limit")
_BEFORE = "asked before"
_LISTED = 4


def why_not_limits(rows: list[BudgetRow], *, killed: bool) -> str:
    """Return why the limits of the selected rows cannot be changed; empty: they can."""
    if killed:
        return "Killed: nothing changes until you rearm."
    if len(rows) > SEVERAL:
        return f"More than {SEVERAL} rows are selected. Choose fewer."
    return "The limit of a day is changed by itself." if len(rows) > 1 and any(row.scope == "day" for row in rows) else ""


def scope_of_rows(rows: list[BudgetRow], fleet: Fleet) -> ScopeBody | None:
    """Return what freeze and kill mean for the selected rows; a project and a day are more than one order reaches."""
    reaches = {_REACHES.get(row.scope) for row in rows}
    reach = reaches.pop() if len(reaches) == 1 else None
    return None if reach is None else scope_of(fleet, reach, [row.key for row in rows])


def are_frozen(rows: list[BudgetRow], fleet: Fleet) -> bool:
    """Return whether each of the selected rows is frozen."""
    held = [fleet.rows.get(row.key) for row in rows]
    return bool(held) and all(row is not None and row.view.state == "frozen" for row in held)


class SeveralLimitsDialog(Dialog):
    """An empty field leaves that limit of each as it is. Each is asked about first, and changed by itself; a refusal stops no other."""

    def __init__(self, desk: Desk, rows: list[BudgetRow], parent: QWidget) -> None:
        super().__init__(f"Change limits of {len(rows):,} selected", "Set limits", "primary", parent, width=680)
        self.desk, self._rows = desk, rows
        self.would: list[BudgetSetView] = []
        """What the change would do to each, as far as it was asked."""
        self._asked = 0
        self._sent = False
        self._refused: list[tuple[BudgetRow, ConsoleError]] = []
        self._halted = 0
        self._late = once(self, AFTER_MS, self._look)
        self.targets = TargetsView(self._named(), self)
        self.body.addWidget(self.targets)
        self.fields, grid = limit_fields(self, "unchanged", self._typed, columns=2)
        self.body.addLayout(grid)
        self.sentence = self.paragraph("", "text2", "")
        self.whom = Facts(21)
        self.body.addWidget(self.whom)
        self.reason = self.ask_reason()
        self.reason.textChanged.connect(lambda _text: self._allow())
        self.main.clicked.connect(self._send)
        self.fields["cost_usd"].setFocus()
        self._typed()

    def _named(self) -> list[tuple[str, str]]:
        """Each target in full, with what the change would do to it as far as that is known."""
        named = []
        for number, row in enumerate(self._rows):
            spent = f"{spent_words(row)} spent" + (f" of {cap_usd(row.cap_usd)}" if row.cap_usd is not None else ", no limit on cost")
            seen = self.would[number] if number < len(self.would) else None
            changes = "; ".join(map(change_line, seen.changes)) or "nothing changes" if seen is not None else ""
            named.append((row.name or row.key, " · ".join(part for part in (f"{row.scope} {row.key}", spent, changes) if part)))
        return named

    def changed(self) -> tuple[dict[str, float], list[str]]:
        """(limits to set, limits to clear) of what was typed. Raises UsageProblem."""
        limits: dict[str, float] = {}
        clear: list[str] = []
        for name, field in self.fields.items():
            if field.text().strip().lower() in _NONE:
                clear.append(name)
            elif (value := read_cap(name, field.text())) is not None:
                limits[name] = value
        return limits, clear

    def missing(self) -> str:
        """What has to be filled in first, or empty."""
        try:
            if not any(self.changed()):
                return "No limit was typed."
        except UsageProblem as error:
            return str(error)
        if len(self.would) < len(self._rows):
            return "What this would do is not known yet."
        return "" if self.reason.text().strip() else "Give a reason: it is recorded."

    def _change(self, row: BudgetRow, reason: str, *, dry_run: bool) -> BudgetBody:
        limits, clear = self.changed()
        return BudgetBody(scope=row.scope, key=row.key, limits=limits, clear=clear, reason=reason, dry_run=dry_run)

    # --- before ------------------------------------------------------------------------------------------------------

    def _typed(self) -> None:
        """Other limits were typed: the answers to older questions are none any more."""
        self._asked += 1
        self._late.stop()
        self.would = []
        self.whom.say([])
        try:
            typed = any(self.changed())
        except UsageProblem as error:
            self.sentence.say(str(error), "warn", "triangle")
        else:
            if typed:
                self._late.start()
            words = "The supervisor is asked what this would do…" if typed else "An empty field changes nothing. Type none for no limit."
            self.sentence.say(words, "text2", "ring" if typed else "")
        self.targets.show_targets(self._named())
        self._allow()

    def _look(self) -> None:
        """Asks about the next one; one question at a time."""
        number = self._asked
        body = self._change(self._rows[len(self.would)], _BEFORE, dry_run=True)
        asked = self.desk.requests.ask(ep.CHANGE_BUDGET, body=body).while_alive(self)
        asked.then(lambda view: self._seen(view, number)).failed(lambda error: self._unseen(error, number))

    def _seen(self, view: BudgetSetView, number: int) -> None:
        if number != self._asked or self._sent:
            return
        self.would.append(view)
        if len(self.would) < len(self._rows):
            self._look()
            return
        halted, goes_on = self._stopped(lambda view: view.halted), self._stopped(lambda view: view.cannot_stop)
        words = f"It halts {plural(len(halted), 'agent')} at once." if halted else "It halts no agent now."
        self.sentence.say(words, "warn" if halted or goes_on else "text", "triangle" if halted or goes_on else "check")
        self.whom.say(stopped_lines(halted, goes_on, self.desk))
        self.targets.show_targets(self._named())
        self._allow()

    def _unseen(self, error: ConsoleError, number: int) -> None:
        if number == self._asked and not self._sent:
            name = self._rows[len(self.would)].name or self._rows[len(self.would)].key
            self.sentence.say(f"What this would do to {name} is not known: {error}", "warn", "triangle")

    def _stopped(self, of: Callable[[BudgetSetView], list[str]]) -> list[str]:
        return list(dict.fromkeys(agent for view in self.would for agent in of(view)))

    def _allow(self) -> None:
        halted = len(self._stopped(lambda view: view.halted))
        self.main.setText(f"Set, and halt {plural(halted, 'agent')}" if halted else f"Set limits of {len(self._rows):,}")
        self.main.allow(self.missing())

    # --- the act -----------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        self._sent = True
        self._late.stop()
        self.main.allow("In progress.")
        self.sentence.say("In progress. You can close this window.", "text2", "ring")
        reason = self.reason.text().strip()
        self._send_next([(row, self._change(row, reason, dry_run=False)) for row in self._rows])

    def _send_next(self, left: list[tuple[BudgetRow, BudgetBody]]) -> None:
        """One change after the other, also when the dialog was closed: a refusal is kept, and the next one is sent."""
        if not left:
            self._all_sent()
            return
        (row, body), *others = left

        def done(view: BudgetSetView) -> None:
            self._halted += len(view.halted)
            self._send_next(others)

        def failed(error: ConsoleError) -> None:
            self._refused.append((row, error))
            self._send_next(others)

        self.desk.requests.ask(ep.CHANGE_BUDGET, body=body).then(done).failed(failed)

    def _all_sent(self) -> None:
        self.desk.ask_sync()
        words = f"Limits of {len(self._rows) - len(self._refused):,} of {len(self._rows):,} set."
        words += f" {plural(self._halted, 'agent')} halted." if self._halted else ""
        self.desk.notices.say("amber" if self._refused or self._halted else "info", words)
        if not self.is_open:
            return
        if not self._refused:
            self.accept()
            return
        self.sentence.say(words, "warn", "triangle")
        self.whom.say(
            [Fact(f"{row.name or row.key}: {error}", "", "triangle", "warn", left_role="warn") for row, error in self._refused[:_LISTED]]
        )
        self.main.hide()
        self.cancel.setText("Close")
