"""One question before a rung of several scopes: every target in full, one button, and a result for each."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from textwrap import wrap

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QWidget

from console.api.ladder import LadderBody, LadderPreview, ScopeBody
from console.api.messages import ActView
from console.domain.errors import ConsoleError, ExitCode, NotFound, UsageProblem
from console.domain.kill import Receipt
from console.domain.verdict import verdict
from console.gui.pages.interface import Desk
from console.gui.pages.kill_switch.rung_words import (
    MEANS,
    VERBS,
    Action,
    outcome,
    scope_words,
    target_words,
    told_lines,
    total_words,
    touched,
)
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.reading import PlainView
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.words import plural

MOST = 200
"""Scopes of one question: a person reads each of them. More are a session, or this host."""
UNKNOWN_MS = 3000
"""A stop waits no longer for previews."""
_AT_ONCE = 2
"""Previews asked for at a time: those that hang leave connections to the stop."""
_DRAW_MS = 50
_HEIGHT = 220
_WRAP = 64
"""Characters of a line; the view has room for a few more."""
_TIGHTENS = ("freeze", "isolate", "kill")


def several_words(scopes: list[ScopeBody]) -> str:
    """``3 agents``, ``3 agents and all below them``, ``2 sessions``."""
    if scopes[0].reach == "session":
        return plural(len(scopes), "session")
    return plural(len(scopes), "agent") + (" and all below them" if scopes[0].reach == "tree" else "")


@dataclass(slots=True)
class _Target:
    """One scope, and what is known of it."""

    scope: ScopeBody
    name: str
    head: str
    """Its name with a number, and below it the target in full."""
    preview: LadderPreview | None = None
    trouble: str = ""
    """Why there is no preview; empty: there is one, or it has not come yet."""
    refused: str = ""
    """Why nothing is sent for it; empty: it is sent."""
    result: str = ""
    good: bool | None = None
    """None: no result has come."""

    @property
    def is_asked(self) -> bool:
        """Whether its preview has come or failed."""
        return self.preview is not None or bool(self.trouble)

    def words(self) -> str:
        """Head, and below it what will happen or what came of it."""
        if self.result or self.refused:
            below = [f"→ {self.result or self.refused}"]
        elif self.preview is not None:
            below = told_lines(self.preview)
        else:
            below = [f"→ What this will do is not known. {self.trouble}".strip()]
        return "\n".join([self.head, *(_laid(line, "   ") for line in below)])


class SeveralDialog(Dialog):
    """Each scope is an order of its own, and all are sent at once. One that fails keeps none of the others from being carried out."""

    def __init__(self, desk: Desk, action: Action, scopes: list[ScopeBody], parent: QWidget) -> None:
        kind = "danger" if action == "kill" else "primary"
        super().__init__(f"{VERBS[action]} {several_words(scopes)}?", VERBS[action], kind, parent, width=560)
        self._desk, self._action = desk, action
        host = desk.switch.status.host if desk.switch.status else ""
        self._targets = [_target(number, scope, desk, host) for number, scope in enumerate(scopes, 1)]
        self._unasked = deque(self._targets)
        self._asking = 0
        self._sent = False
        self.paragraph(MEANS[action])
        self.sentence = self.paragraph("", "text2", "ring")
        self.targets = PlainView("Targets", wrap=False, parent=self)  # wide letters lengthen a line, and begin none
        self.targets.setMinimumHeight(min(_HEIGHT, 40 + 51 * len(scopes)))
        self.body.addWidget(self.targets)
        self.reason = self.ask_reason()
        self.reason.setPlaceholderText("optional")
        self.main.clicked.connect(self._send)
        # Many answers come at once: they are shown together, and the next ones asked for outside of the answer before.
        self._draw, self._next, self._late = (
            _timer(self, _DRAW_MS, self._show),
            _timer(self, 0, self._ask),
            _timer(self, UNKNOWN_MS, self._show),
        )
        self._late.start()
        self._show()
        self.cancel.setFocus()
        self._ask()

    # --- before ------------------------------------------------------------------------------------------------------

    def _ask(self) -> None:
        while self._unasked and self._asking < _AT_ONCE and not self._sent:
            target = self._unasked.popleft()
            self._asking += 1
            asked = self._desk.requests.fleet.preview(LadderBody(action=self._action, scope=target.scope)).while_alive(self)
            asked.then(partial(self._previewed, target)).failed(partial(self._unknown, target))

    def _previewed(self, target: _Target, preview: LadderPreview) -> None:
        target.preview = preview
        self._answered(target, preview.why_not or ("" if touched(preview) else "It would act on no agent."))

    def _unknown(self, target: _Target, error: ConsoleError) -> None:
        """A stop does not wait for a preview that fails; what loosens does."""
        target.trouble = error.what
        is_refused = self._action not in _TIGHTENS or isinstance(error, NotFound | UsageProblem)
        self._answered(target, error.what if is_refused else "")

    def _answered(self, target: _Target, refused: str) -> None:
        self._asking -= 1
        if self._sent:
            return  # what came of it is shown
        target.refused = refused
        self._next.start()
        self._draw.start()

    def _show(self) -> None:
        """Everything that is known, and while it is not sent what the button does."""
        at = self.targets.verticalScrollBar().value()
        self.targets.say("\n".join(target.words() for target in self._targets))
        self.targets.verticalScrollBar().setValue(at)
        if not self._sent:
            self._judge()

    def _judge(self) -> None:
        """A stop may be sent once every preview is there or failed, or after 3 s; what loosens waits for each of them."""
        answered = sum(target.is_asked for target in self._targets)
        is_late = self._action in _TIGHTENS and not self._late.isActive()
        if answered < len(self._targets) and not is_late:
            done = f" {answered:,} of {len(self._targets):,} answered." if answered else ""
            self.sentence.say(f"The supervisor is asked what this will do…{done}", "text2", "ring")
            self.main.allow("The preview has not come yet.")
            return
        meant = [target for target in self._targets if not target.refused]
        words, button, is_whole = total_words([target.preview for target in meant], len(self._targets))
        self.sentence.say(words, "text" if is_whole else "warn", "" if is_whole else "triangle")
        self.main.setText(f"{VERBS[self._action]} {button}" if meant else VERBS[self._action])
        self.main.allow("" if meant else "It would act on no agent.")
        self.adjustSize()

    # --- the act -----------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        self._sent = True
        self.main.allow("In progress.")
        self.sentence.say("In progress. You can close this window.", "text2", "ring")
        self.cancel.setText("Close")
        fleet, reason = self._desk.requests.fleet, self.reason.text().strip()
        for target in (target for target in self._targets if not target.refused):
            body = LadderBody(action=self._action, scope=target.scope, reason=reason)
            target.result = "in progress"
            if self._action == "kill":
                fleet.kill(body).then(partial(self._killed, target)).failed(partial(self._failed, target))
            else:
                fleet.ladder(body).then(partial(self._acted, target)).failed(partial(self._failed, target))
        self._show()

    def _killed(self, target: _Target, receipt: Receipt) -> None:
        found = verdict(receipt)
        good = found.exit_code is ExitCode.DONE and bool(receipt.targets)
        self._came(target, f"{found.headline} Receipt {receipt.kill_id}", good=good)

    def _acted(self, target: _Target, done: ActView) -> None:
        """Good when all of it was done: what was left alone still runs."""
        _level, words = outcome(self._action, done)
        self._came(target, " ".join([words, *done.notes[:3]]), good=bool(done.agents) and not done.failed and not done.excluded)

    def _failed(self, target: _Target, error: ConsoleError) -> None:
        self._came(target, f"Refused, or not finished: {error.what} {error.remedy}".strip(), good=False)

    def _came(self, target: _Target, words: str, *, good: bool) -> None:
        target.result, target.good = words, good
        if self.is_open:
            self._draw.start()
        if any(one.good is None and not one.refused for one in self._targets):
            return
        self._desk.ask_sync()
        well = sum(one.good is True for one in self._targets)
        is_whole = well == len(self._targets)
        told = f"{VERBS[self._action]}: done for {well:,} of {plural(len(self._targets), 'target')}."
        bad = next((f"{one.name}: {one.result}" for one in self._targets if one.good is False), "")
        self._desk.notices.say("info" if is_whole else "amber", f"{told} {bad}".strip())
        if self.is_open:
            self._show()
            self.sentence.say(f"{told} What came of each is below.", "text" if is_whole else "warn", "check" if is_whole else "triangle")
            self.main.hide()
            self.reason.setEnabled(False)
            self.adjustSize()


def _target(number: int, scope: ScopeBody, desk: Desk, host: str) -> _Target:
    name = safe_text(scope_words(scope, desk.fleet), 200)
    return _Target(scope, name, f"{_laid(f'{number}. {name}', '')}\n{_laid(target_words(scope, desk.fleet, host), '   ')}")


def _laid(words: str, indent: str) -> str:
    """One line, or several that stand below its beginning: what an agent named itself begins no line that looks like one of ours."""
    return "\n".join(wrap(safe_text(words, 600), _WRAP, initial_indent=indent, subsequent_indent=" " * 7, break_on_hyphens=False))


def _timer(owner: QWidget, after_ms: int, work: Callable[[], None]) -> QTimer:
    timer = QTimer(owner)
    timer.setSingleShot(True)
    timer.setInterval(after_ms)
    timer.timeout.connect(work)
    return timer
