"""Answers of the window: each is held for some seconds before the supervisor gets it, and can be taken back until then.

An approval of something dangerous waits for a second, different key first. Command line and API answer at once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from PySide6.QtCore import QObject, Signal

from console.api import endpoints as ep
from console.api.policy.approvals import AT_ONCE, DecideBody, Decided, DecideView
from console.domain.calls.permission import worst_of
from console.domain.errors import ConsoleError
from console.gui.models.operators import person
from console.gui.pages.approvals.book import Book
from console.gui.pages.approvals.case import Case
from console.gui.requests import Requests
from console.gui.timers import every
from console.gui.widgets.words import plural

HOLD_S = 5.0
"""Seconds that an answer of the window is held."""
LOOK_MS = 100
CONFIRM = "approvals.confirm"
SCOPES = {"approvals.once": "once", "approvals.session": "session"}


@dataclass(slots=True)
class Answer:
    """``action``: the key that gave it. ``sends_at``: monotonic seconds; endless while a second key is missing."""

    action: str
    case: Case
    verdict: str
    scope: str = "once"
    reason: str = ""
    sends_at: float = math.inf
    requests: list[Decided] = field(default_factory=list)

    @property
    def ids(self) -> set[str]:
        """The requests that it answers."""
        return {one.id for one in self.requests}

    @property
    def danger(self) -> str:
        """The worst class of danger among its requests; empty: none."""
        return worst_of(row.danger for row in self.case.rows)

    @property
    def done_words(self) -> str:
        """``approved once``, ``denied: too wide``."""
        word = "denied" if self.verdict == "deny" else f"approved {'once' if self.scope == 'once' else 'for the session'}"
        return f"{word}: {self.reason}" if self.reason else word


class Answers(QObject):
    """What is held, at most one answer for each request; ``asked`` is an approval that waits for its second key."""

    changed = Signal()
    decided = Signal()
    """The supervisor has answered, whatever it said."""
    problem = Signal(str)

    def __init__(self, requests: Requests, book: Book, parent: QObject) -> None:
        super().__init__(parent)
        self._requests, self._book = requests, book
        self.held: list[Answer] = []
        self.asked: Answer | None = None
        self.sending: set[str] = set()
        self._timer = every(self, LOOK_MS, self._look)

    def give(self, answer: Answer) -> None:
        """The same key for the same requests sends what is held; another answer takes its place."""
        answer.requests = answer.case.decided[:AT_ONCE]
        if (held := self.of(answer.ids)) is not None and held.action == answer.action:
            self.send(held)
            return
        self._release(answer.ids)
        if answer.verdict == "approve" and answer.danger:
            self.asked = answer
        else:
            self._hold(answer)
        self.changed.emit()

    def confirm(self, ids: set[str]) -> None:
        """The second key: holds the dangerous approval that waits for it; pressed again it sends that one."""
        if (held := self.of(ids)) is not None and held.action == CONFIRM:
            self.send(held)
        elif self.asked is not None and self.asked.ids == ids:
            answer, self.asked = self.asked, None
            answer.action = CONFIRM
            self._hold(answer)
            self.changed.emit()

    def send(self, answer: Answer) -> None:
        """To the supervisor, now. What ended meanwhile is not decided any more."""
        if answer not in self.held:
            return
        self._release(answer.ids)
        at = time.monotonic()
        requests = [one for one in answer.requests if self._book.is_live(one.id, at)]
        if requests:
            given = {"requests": requests, "verdict": answer.verdict, "scope": answer.scope, "reason": answer.reason}
            self.sending |= answer.ids
            self.problem.emit("")
            asked = self._requests.ask(ep.DECIDE, body=DecideBody.read(given)).while_alive(self)
            asked.then(partial(self._came, answer)).failed(partial(self._failed, answer))
        else:
            self.problem.emit(_not_sent(self._book, answer))
        self.changed.emit()

    def take_back(self, answer: Answer | None) -> None:
        """It was never given."""
        if answer is self.asked:
            self.asked = None
        elif answer is not None and answer in self.held:
            self._release(answer.ids)
        self.changed.emit()

    def drop_all(self) -> str:
        """Sends nothing of what is held; what that was, in words, or nothing."""
        requests = sum(len(answer.requests) for answer in self.held)
        self.asked = None
        self._release({name for answer in self.held for name in answer.ids})
        self.changed.emit()
        return f"Not sent: the held answer to {plural(requests, 'request')}." if requests else ""

    def look_at(self, ids: set[str]) -> None:
        """Another request is looked at, or the book has changed: a second key is asked for what is in front alone."""
        if self.asked is not None and self.asked.ids != ids:
            self.asked = None
        at = time.monotonic()
        for answer in list(self.held):
            if not any(self._book.is_live(name, at) for name in answer.ids):
                self._release(answer.ids)
                self.problem.emit(_not_sent(self._book, answer))

    def of(self, ids: set[str]) -> Answer | None:
        """What is held for exactly these requests."""
        return next((answer for answer in self.held if answer.ids == ids), None)

    def is_given(self, action: str, ids: set[str]) -> bool:
        """Whether this key gave the answer that is held for exactly these requests: pressed again it sends it."""
        held = self.of(ids)
        return held is not None and held.action == action

    def shown(self, ids: set[str]) -> Answer | None:
        """What the bar shows: the question, the answer to these requests, or the newest one."""
        return self.asked or self.of(ids) or (self.held[-1] if self.held else None)

    def _hold(self, answer: Answer) -> None:
        answer.sends_at = time.monotonic() + HOLD_S
        self.held.append(answer)
        _mark(self._book, answer.ids, "Denial held" if answer.verdict == "deny" else "Approval held")
        self._timer.start()

    def _release(self, ids: Iterable[str]) -> None:
        """No answer is held for these any more."""
        ids = set(ids)
        if self.asked is not None and self.asked.ids & ids:
            self.asked = None
        kept = []
        for answer in self.held:
            if answer.ids - ids:
                answer.requests = [one for one in answer.requests if one.id not in ids]
                kept.append(answer)
        self.held = kept
        _mark(self._book, ids, "")

    def _look(self) -> None:
        at = time.monotonic()
        for answer in [one for one in self.held if one.sends_at <= at]:
            self.send(answer)
        if not self.held:
            self._timer.stop()
        self.changed.emit()

    def _came(self, answer: Answer, view: DecideView) -> None:
        self.sending -= answer.ids
        word = answer.done_words
        for result in view.results:
            entry = self._book.entries.get(result.id)
            if result.done and entry is not None:
                entry.gone = word
                state = "denied" if answer.verdict == "deny" else "approved"
                entry.row = entry.row.replaced(state=state, scope=answer.scope)  # the shape goes with the words at once
        bad = [result for result in view.results if not result.done]
        if bad:
            many = f"{len(bad)} of {plural(len(view.results), 'request')} NOT decided" if len(view.results) > 1 else "NOT decided"
            self.problem.emit(f"{many}: {person(bad[0].words)}")
        self.decided.emit()

    def _failed(self, answer: Answer, error: ConsoleError) -> None:
        self.sending -= answer.ids
        self.problem.emit(f"Not known to be decided: {error}")
        self.decided.emit()


def _mark(book: Book, ids: Iterable[str], words: str) -> None:
    """In the list: which answer is held for these requests."""
    for name in ids:
        if name in book.entries:
            book.entries[name].held = words


def _not_sent(book: Book, answer: Answer) -> str:
    """Why an answer that was held is not sent."""
    entry = next((book.entries[name] for name in answer.ids if name in book.entries), None)
    return f"Not sent: {(entry.gone if entry else '') or 'expired: denied automatically'}."
