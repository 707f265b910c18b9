"""One question before a rung of several scopes: every target in full, one button, and a result for each."""

from __future__ import annotations

from functools import partial

from PySide6.QtWidgets import QWidget

from console.api.ladder import LadderBody, LadderPreview, ScopeBody
from console.api.messages import ActView
from console.domain.errors import ConsoleError, ExitCode, NotFound, UsageProblem
from console.domain.kill import Receipt
from console.domain.verdict import verdict
from console.gui.pages.interface import Desk
from console.gui.pages.kill_switch.rung_words import MEANS, VERBS, Action, outcome, scope_words, target_words, touched
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.reading import PlainView
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.words import plural

MOST = 200
"""Scopes of one question: a person reads each of them. More are a session, or this host."""
_HEIGHT = 220
_TIGHTENS = ("freeze", "isolate", "kill")


def several_words(scopes: list[ScopeBody]) -> str:
    """``3 agents``, ``3 agents and all below them``, ``2 sessions``."""
    if scopes[0].reach == "session":
        return plural(len(scopes), "session")
    return plural(len(scopes), "agent") + (" and all below them" if scopes[0].reach == "tree" else "")


class SeveralDialog(Dialog):
    """Each scope is an order of its own, and all are sent at once. One that fails keeps none of the others from being carried out."""

    def __init__(self, desk: Desk, action: Action, scopes: list[ScopeBody], parent: QWidget) -> None:
        super().__init__(f"{VERBS[action]} {several_words(scopes)}?", VERBS[action], "danger" if action == "kill" else "primary", parent)
        self._desk, self._action, self._scopes = desk, action, scopes
        self._refused: dict[int, str] = {}
        """Scopes for which nothing is sent, and why."""
        self._touched: dict[int, int] = {}
        """Agents that the preview names for a scope."""
        self._said: dict[int, str] = {}
        """What is to be read below a target: what it will do, then what came of it."""
        self._good: dict[int, bool] = {}
        self.paragraph(MEANS[action])
        self.sentence = self.paragraph("The supervisor is asked what this will do…", "text2", "ring")
        self.targets = PlainView("Targets", parent=self)
        self.targets.setMinimumHeight(min(_HEIGHT, 40 + 34 * len(scopes)))
        self.body.addWidget(self.targets)
        self.reason = self.ask_reason()
        self.reason.setPlaceholderText("optional")
        self.main.allow("The preview has not come yet.")
        self.main.clicked.connect(self._send)
        self._show()
        self.cancel.setFocus()
        for at, scope in enumerate(scopes):
            asked = desk.requests.fleet.preview(LadderBody(action=action, scope=scope)).while_alive(self)
            asked.then(partial(self._previewed, at)).failed(partial(self._unknown, at))

    def _show(self) -> None:
        fleet, status = self._desk.fleet, self._desk.switch.status
        host = status.host if status else ""
        lines = []
        for at, scope in enumerate(self._scopes):  # each part is one line: what an agent named itself begins no line of its own
            words = safe_text(target_words(scope, fleet, host), 600)
            lines += [f"{at + 1}. {safe_text(scope_words(scope, fleet), 200)}", f"   {words}"]
            lines += [f"   → {safe_text(self._said[at], 600)}"] if at in self._said else []
        self.targets.say("\n".join(lines))

    # --- before ------------------------------------------------------------------------------------------------------

    def _previewed(self, at: int, preview: LadderPreview) -> None:
        self._touched[at] = touched(preview)
        refused = preview.why_not or ("" if touched(preview) else "It would act on no agent.")
        self._said[at] = refused or f"{VERBS[self._action]}: {plural(touched(preview), 'agent')}"
        if refused:
            self._refused[at] = refused
        self._asked()

    def _unknown(self, at: int, error: ConsoleError) -> None:
        """A stop does not wait for a preview that fails; what loosens does."""
        self._touched[at] = 0
        self._said[at] = f"What this will do is not known. {error.what}"
        if self._action not in _TIGHTENS or isinstance(error, NotFound | UsageProblem):
            self._refused[at] = error.what
        self._asked()

    def _asked(self) -> None:
        self._show()
        if len(self._touched) < len(self._scopes):
            return
        left = f" {plural(len(self._refused), 'target')} of {len(self._scopes)} will be left alone: see below." if self._refused else ""
        number = sum(count for at, count in self._touched.items() if at not in self._refused)
        self.sentence.say(f"It acts on {plural(number, 'agent')}.{left}", "warn" if left else "text", "triangle" if left else "")
        self.main.setText(f"{VERBS[self._action]} {plural(number, 'agent')}" if number else f"{VERBS[self._action]} without a preview")
        self.main.allow("It would act on no agent." if len(self._refused) == len(self._scopes) else "")
        self.adjustSize()

    # --- the act -----------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        self.main.allow("In progress.")
        self.sentence.say("In progress. You can close this window.", "text2", "ring")
        self.cancel.setText("Close")
        fleet, reason = self._desk.requests.fleet, self.reason.text().strip()
        for at, scope in enumerate(self._scopes):
            if at in self._refused:
                continue
            body = LadderBody(action=self._action, scope=scope, reason=reason)
            self._said[at] = "in progress"
            if self._action == "kill":
                fleet.kill(body).then(partial(self._killed, at)).failed(partial(self._failed, at))
            else:
                fleet.ladder(body).then(partial(self._acted, at)).failed(partial(self._failed, at))
        if self.is_open:
            self._show()

    def _killed(self, at: int, receipt: Receipt) -> None:
        found = verdict(receipt)
        good = found.exit_code is ExitCode.DONE and bool(receipt.targets)
        self._came(at, f"{found.headline} Receipt {receipt.kill_id}", good=good)

    def _acted(self, at: int, done: ActView) -> None:
        level, words = outcome(self._action, done)
        self._came(at, words, good=level == "info")

    def _failed(self, at: int, error: ConsoleError) -> None:
        self._came(at, f"Refused, or not finished: {error.what} {error.remedy}".strip(), good=False)

    def _came(self, at: int, words: str, *, good: bool) -> None:
        self._said[at], self._good[at] = words, good
        if self.is_open:
            self._show()
        if len(self._good) + len(self._refused) < len(self._scopes):
            return
        self._desk.ask_sync()
        well, sent = sum(self._good.values()), len(self._good)
        level, mark = ("info", "check") if well == len(self._scopes) else ("amber", "triangle")
        told = f"{VERBS[self._action]}: done for {well:,} of {plural(len(self._scopes), 'target')}."
        bad = next((f"{scope_words(self._scopes[n], self._desk.fleet)}: {self._said[n]}" for n in self._good if not self._good[n]), "")
        self._desk.notices.say("info" if level == "info" else "amber", f"{told} {bad}".strip())
        if self.is_open:
            self.sentence.say(f"{told} What came of each is below.", "text" if well == sent else "warn", mark)
            self.main.hide()
            self.reason.setEnabled(False)
            self.adjustSize()
