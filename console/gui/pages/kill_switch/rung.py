"""The question before a rung of the ladder: the supervisor's own preview, and a button that repeats its count."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from console.api import endpoints as ep
from console.api.ladder import LadderBody, LadderPreview, ScopeBody
from console.api.messages import ActView
from console.domain.errors import ConsoleError, ExitCode, NotFound, TimedOut, UsageProblem
from console.domain.headline import headline_of
from console.domain.kill import Receipt
from console.domain.verdict import verdict
from console.gui.pages.declared import VERBS, Action
from console.gui.pages.interface import Desk
from console.gui.pages.kill_switch.rung_words import (
    MEANS,
    button_words,
    count_lines,
    daemon_lines,
    named_targets,
    outcome,
    reach_line,
    scope_words,
    target_words,
    touched,
    way_back,
    why_lines,
)
from console.gui.theme import fonts
from console.gui.timers import every
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.facts import Fact, Facts
from console.gui.widgets.reading import TargetsView
from console.gui.widgets.text import Text

AGAIN_MS = 3000
"""The preview is asked again while the question stands, so that the count is never old."""
_LISTED = 6


class RungDialog(Dialog):
    """Nothing can be confirmed before the preview has come; a refusal is shown in the supervisor's words."""

    def __init__(self, desk: Desk, action: Action, scope: ScopeBody, parent: QWidget) -> None:
        self._words = scope_words(scope, desk.fleet)
        kind = "danger" if action == "kill" else "primary"
        super().__init__(f"{VERBS[action]} {self._words}?", VERBS[action], kind, parent, width=540)
        self._desk, self._action, self._scope = desk, action, scope
        self.preview: LadderPreview | None = None
        self._sent = self._asking = False
        self._name_targets(desk.switch.status.host if desk.switch.status else "")
        self.paragraph(MEANS[action])
        self.sentence = self.paragraph("The supervisor is asked what this will do…", "text2", "ring")
        self.counted = Facts(26, ruled=True)
        self.reach = Text("", 12, fonts.REGULAR, "text2", wrap=True)
        self.outside = Text("", 12, fonts.REGULAR, "text2", wrap=True)
        self.daemons, self.whys = Facts(21), Facts(21)
        self.outside.hide()
        for part in (self.counted, self.reach, self.outside, self.daemons, self.whys):
            self.body.addWidget(part)
        self.reason = self.ask_reason()
        self.reason.setPlaceholderText("optional")
        if action in ("freeze", "isolate"):
            self.reason.returnPressed.connect(self.main.click)  # it tightens and can be undone
        self.main.allow("The preview has not come yet.")
        self.main.clicked.connect(self._send)
        self._again = every(self, AGAIN_MS, self._ask)
        self._again.start()
        self.reason.setFocus()
        self._ask()

    def _name_targets(self, host: str) -> None:
        """The target in full; of several each one, in a list that can be scrolled."""
        if not self._scope.others:
            self.body.addWidget(Text(target_words(self._scope, self._desk.fleet, host), 12, fonts.REGULAR, "text2", mono=True, wrap=True))
            return
        self.body.addWidget(TargetsView(named_targets(self._scope, self._desk.fleet, host), self))

    def _body(self, reason: str = "") -> LadderBody:
        return LadderBody(action=self._action, scope=self._scope, reason=reason)

    # --- before ------------------------------------------------------------------------------------------------------

    def _ask(self) -> None:
        """One question at a time. One that hangs holds up no stop, and leaves its connections to it."""
        if self._asking:
            self._unknown(TimedOut(f"The preview has not come for {AGAIN_MS / 1000:g} s."))
        elif not self._sent:
            self._asking = True
            self._desk.requests.ask(ep.PREVIEW, body=self._body()).while_alive(self).then(self._previewed).failed(self._not_previewed)

    def _not_previewed(self, error: ConsoleError) -> None:
        self._asking = False
        self._unknown(error)

    def _previewed(self, preview: LadderPreview) -> None:
        self._asking = False
        if self._sent:
            return
        self.preview = preview
        self.sentence.say(f"{preview.words[:1].upper()}{preview.words[1:]} {way_back(preview)}".strip(), "text", "")
        self.counted.say(count_lines(preview))
        self.reach.setText(reach_line(preview))
        self.outside.setText(preview.outside)
        self.outside.setVisible(bool(preview.outside))
        self.daemons.say(daemon_lines(preview))
        lines = [*why_lines(preview.best_effort, "triangle", "warn"), *why_lines(preview.excluded, "ring", "text2")]
        self.whys.say(lines)
        self.problem.setText(preview.why_not)
        self.problem.setVisible(bool(preview.why_not))
        self.main.setText(button_words(self._action, preview))
        self.main.allow(preview.why_not or ("" if touched(preview) else "It would act on no agent."))

    def _forget(self) -> None:
        """Nothing of a preview is shown any more."""
        for facts in (self.counted, self.daemons, self.whys):
            facts.say([])
        for text in (self.reach, self.outside):
            text.setText("")
        self.outside.hide()

    def _unknown(self, error: ConsoleError) -> None:
        """What it would do is not known. A stop does not wait for that; what loosens does."""
        if self._sent:
            return
        self.preview = None
        self.sentence.say("What this will do is not known.", "warn", "triangle")
        self._forget()
        self.refused(error)
        blind = self._action in ("freeze", "isolate", "kill") and not isinstance(error, NotFound | UsageProblem)
        self.main.setText(f"{VERBS[self._action]} without a preview" if blind else VERBS[self._action])
        self.main.allow("" if blind else "What it will do is not known.")

    # --- the act -----------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        self._sent = True
        self.problem.hide()
        self.main.allow("In progress.")
        self.sentence.say("In progress. You can close this window.", "text2", "ring")
        self.cancel.setText("Close")
        body, fleet = self._body(self.reason.text().strip()), self._desk.requests
        if self._action == "kill":
            fleet.kill(body).then(self._killed).failed(self._failed)
        else:
            fleet.ask(ep.STEP, body=body).then(self._acted).failed(self._failed)

    def _failed(self, error: ConsoleError) -> None:
        self._desk.ask_sync()
        if not self.is_open:
            self._desk.notices.fail(error)
            return
        self._sent = False
        self.cancel.setText("Cancel")
        self.sentence.say("It was refused, or not finished.", "warn", "triangle")
        self.refused(error)

    def _acted(self, done: ActView) -> None:
        self._desk.ask_sync()
        level, words = outcome(self._action, done)
        if self._scope.others and done.excluded:
            level = "amber"  # a person chose each of them
        self._desk.notices.say(level, words)
        for note in done.notes[:3]:
            self._desk.notices.say("amber", note)
        if not self.is_open:
            return
        if not done.failed:
            self.accept()
            return
        self.sentence.say(words, "warn", "triangle")
        self._forget()
        failed = [Fact(f"{agent}: {why}", "", "triangle", "warn", left_role="warn") for agent, why in list(done.failed.items())[:_LISTED]]
        self.whys.say(failed)
        self.main.hide()
        self.reason.setEnabled(False)

    def _killed(self, receipt: Receipt) -> None:
        tell_killed(self._desk, self._words, receipt)
        if self.is_open:
            self.accept()


def tell_killed(desk: Desk, name: str, receipt: Receipt) -> None:
    """The notice that leads to the receipt; anything but a whole proof is amber."""
    found = verdict(receipt)
    is_good = found.exit_code is ExitCode.DONE and bool(receipt.targets)
    more = "Look at what is left." if found.may_run else ""
    desk.notices.say("info" if is_good else "amber", f"{name}: {headline_of(receipt)}", more, receipt=receipt.kill_id)
    desk.ask_sync()
