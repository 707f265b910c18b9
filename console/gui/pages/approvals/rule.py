"""Make a rule of it: a narrow draft, tried on the recorded calls while it is written, put in force only as it was tried."""

from __future__ import annotations

from PySide6.QtWidgets import QPlainTextEdit, QScrollArea, QWidget

from console.api import endpoints as ep
from console.api.policy.rules import DraftView, PolicySaveBody, PolicyTryBody, PolicyTryView, PolicyView
from console.domain.errors import Conflict, ConsoleError
from console.gui.pages.interface import Desk
from console.gui.theme import fonts
from console.gui.timers import once
from console.gui.widgets.dialog import IN_PROGRESS, NO_REASON, Dialog
from console.gui.widgets.lines import Line, Lines
from console.gui.widgets.safe_text import is_plain, safe_text
from console.gui.widgets.text import Text
from console.gui.widgets.words import day_clock, plural

AFTER_MS = 300
"""After the last key."""
CALLS_SHOWN = 20
_AT_MOST = 1024


class RuleDialog(Dialog):
    """Save stays off until the calls were judged again under exactly what stands in the field."""

    def __init__(self, desk: Desk, approval_id: str, title: str, parent: QWidget) -> None:
        super().__init__("Make a rule of it", "Put in force", "danger", parent, width=640)
        self._desk = desk
        self._base = ""
        self.tried: PolicyTryView | None = None
        self._tried_for: list[str] = []
        self.paragraph(title)
        self.body.addWidget(Text("Allow, one rule a line", 11, fonts.MEDIUM, "text2"))
        self.field = QPlainTextEdit(self)
        self.field.setFont(fonts.mono(12))
        self.field.setFixedHeight(92)
        self.field.setTabChangesFocus(True)
        self.field.setAccessibleName("Rules to allow")
        self.field.setEnabled(False)
        self.body.addWidget(self.field)
        self.words = Text("A narrow rule is drafted…", 12, fonts.MEDIUM, "text2", wrap=True, mark="ring")
        self.body.addWidget(self.words)
        self.calls = Lines(CALLS_SHOWN, self)
        area = QScrollArea(self)
        area.setWidgetResizable(True)
        area.setFixedHeight(170)
        area.setWidget(self.calls)
        self.body.addWidget(area)
        self.reason = self.ask_reason()
        self._late = once(self, AFTER_MS, self._try)
        self.field.textChanged.connect(self._edited)
        self.reason.textChanged.connect(lambda _text: self._allow())
        self.main.clicked.connect(self._save)
        self._allow()
        desk.requests.ask(ep.POLICY).while_alive(self).then(self._policy_came).failed(self.refused)
        desk.requests.ask(ep.DRAFT, approval_id).while_alive(self).then(self._drafted).failed(self._no_draft)

    def rules(self) -> list[str]:
        """What stands in the field."""
        return [line.strip() for line in self.field.toPlainText().split("\n") if line.strip()][:50]

    def why_not(self) -> str:
        """Empty when it can be put in force."""
        if not self.rules():
            return "No rule stands in the field."
        if any(len(rule) > _AT_MOST or not is_plain(rule) for rule in self.rules()):
            return "A rule is plain text of at most 1,024 characters, without hidden ones."
        if self.tried is None or self._tried_for != self.rules() or not self._base:
            return "The recorded calls were not checked with exactly this yet."
        return "" if self.reason.text().strip() else NO_REASON

    def _policy_came(self, view: PolicyView) -> None:
        self._base = view.sha256
        if view.problem:
            self.problem.setText(f"The newest file of rules is not in force: {view.problem}")
            self.problem.show()
        self._allow()

    def _drafted(self, view: DraftView) -> None:
        self.field.setEnabled(True)
        if view.why_not or not view.rules:
            self.words.say(
                f"No rule can be drafted: {view.why_not or 'nothing narrow would allow it'}. Write one, or cancel.", "warn", "triangle"
            )
            return
        self.field.setPlainText("\n".join(safe_text(rule, _AT_MOST) for rule in view.rules))
        self.field.setFocus()

    def _no_draft(self, error: ConsoleError) -> None:
        self.field.setEnabled(True)
        self.words.say(f"No rule was drafted: {error}", "warn", "triangle")

    def _edited(self) -> None:
        self.tried = None
        self.calls.say([])
        self.words.say("Checking the recorded calls again…", "text2", "ring")
        self._late.start()
        self._allow()

    def _try(self) -> None:
        rules = self.rules()
        if not rules or any(len(rule) > _AT_MOST for rule in rules):
            self.words.say(self.why_not(), "warn", "triangle")
            return
        asked = self._desk.requests.ask(ep.TRY_POLICY, body=PolicyTryBody(add=rules, to="allow")).while_alive(self)
        asked.then(lambda view: self._came(rules, view)).failed(lambda error: self._failed(rules, error))

    def _came(self, rules: list[str], view: PolicyTryView) -> None:
        if rules != self.rules():
            return  # the answer is for another text
        self.tried, self._tried_for = view, rules
        words = f"{view.changed:,} of {plural(view.recorded, 'recorded call')} decided otherwise, {view.looser:,} of them looser"
        left = f"; {view.left_out:,} could not be tried" if view.left_out else ""
        self.words.say(f"{words}{left}.", "warn" if view.looser or view.findings else "text", "triangle" if view.looser else "check")
        lines = [Line(f"lint: {one}", "triangle", "warn") for one in view.findings]
        for call in sorted(view.calls, key=lambda one: not one.looser):
            mark, role = ("triangle", "warn") if call.looser else ("check", "text2")
            told = f"{call.before} → {call.after}, {day_clock(call.at)}: {call.tool} {call.argument[:300]}"
            lines.append(Line(told, mark, role, quiet=not call.looser))
        self.calls.say(lines)
        self._allow()

    def _failed(self, rules: list[str], error: ConsoleError) -> None:
        if rules == self.rules():
            self.words.say(f"What it would change is not known: {error}", "warn", "triangle")

    def _allow(self) -> None:
        self.main.allow(self.why_not())

    def _save(self) -> None:
        if self.tried is None or self.why_not():
            return
        self.main.allow(IN_PROGRESS)
        body = PolicySaveBody(text=self.tried.text, base_sha256=self._base, reason=self.reason.text().strip())
        self._desk.requests.ask(ep.SAVE_POLICY, body=body).while_alive(self).then(self._saved).failed(self._not_saved)

    def _not_saved(self, error: ConsoleError) -> None:
        self.refused(error)
        if isinstance(error, Conflict):
            self.main.allow("Other rules are in force now: close this and look at them first.")

    def _saved(self, _view: PolicyView) -> None:
        self._desk.notices.say("info", f"In force: allow {', '.join(self._tried_for)}. What waits already is still yours to decide.")
        self.accept()
