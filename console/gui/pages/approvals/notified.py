"""Answers that a person gives in a notification. They are held like those of the page, and dangerous calls are not approved there."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, Signal

from console.api import endpoints as ep
from console.api.policy.approvals import ApprovalDetailView, ApprovalRow
from console.domain.errors import ConsoleError
from console.gui.actions.catalogue import why_not_by_role
from console.gui.models.switch import Switch
from console.gui.pages.approvals.answers import Answer, Answers
from console.gui.pages.approvals.book import Book
from console.gui.pages.approvals.case import case_of
from console.gui.pages.approvals.words import whole_input
from console.gui.requests import Requests
from console.gui.widgets.safe_text import is_plain

APPROVE, DENY = "approve", "deny"
KEYS = {APPROVE: "approvals.once", DENY: "approvals.deny"}
ARGUMENT_MAX, FOLDER_MAX, NAME_MAX = 160, 100, 40
"""Characters that daemons show without cutting them."""
KILLED = "Killed: read only until you rearm."
SEE_ALL = "There is more to it than a notification shows."


def shows_all(row: ApprovalRow) -> bool:
    """Whether a notification shows the whole of what an approval would allow, and one click may give it: never what is dangerous."""
    name = row.agent_name or row.agent_id
    parts = ((row.argument, ARGUMENT_MAX), (row.cwd, FOLDER_MAX), (name, NAME_MAX), (row.tool, NAME_MAX))
    is_shown = not row.argument_more and all(len(text) <= most and is_plain(text) for text, most in parts)
    # A name such as "x asks: ls" would put words before the call; a tool's name, or "(in", would read as a part of it.
    is_plainly = row.tool == "shell" and bool(row.argument) and ":" not in name and "(in " not in row.argument
    return is_shown and is_plainly and not row.danger and row.danger_rank == 9


class Notified(QObject):
    """``held`` with a request and its verdict; ``undecided`` with a request and why it must be looked at in the window."""

    held = Signal(object, str)
    undecided = Signal(object, str)

    def __init__(self, requests: Requests, switch: Switch, book: Book, answers: Answers, parent: QObject) -> None:
        super().__init__(parent)
        self._requests, self._switch, self._book, self._answers = requests, switch, book, answers

    def answer(self, row: ApprovalRow, verdict: str) -> None:
        """Read the request again, and hold the answer when it is still exactly what the notification showed."""
        if why_not := self._why_not(row, verdict):
            self.undecided.emit(row, why_not)
            return
        asked = self._requests.ask(ep.APPROVAL, row.id).while_alive(self)
        asked.then(partial(self._came, row, verdict)).failed(partial(self._failed, row))

    def _why_not(self, row: ApprovalRow, verdict: str) -> str:
        if self._switch.is_killed:
            return KILLED
        if by_role := why_not_by_role(KEYS[verdict], self._switch.rights):
            return by_role
        entry = self._book.entries.get(row.id)
        if entry is None or entry.gone:
            return f"Already {entry.gone if entry is not None else 'over'}."
        if any(row.id in one.ids for one in self._answers.held) or row.id in self._answers.sending:
            return "An answer to it is held already."
        if verdict == DENY:
            return "A denial needs a reason here." if self._book.denial_needs_reason else ""
        return "" if shows_all(row) else SEE_ALL

    def _came(self, row: ApprovalRow, verdict: str, detail: ApprovalDetailView) -> None:
        case, now = case_of([detail.row], [detail]), detail.row
        why_not = self._why_not(row, verdict)  # again: the answer took its time
        if not why_not and (now.digest != row.digest or now.state != "waiting"):
            why_not = "It is not what the notification showed any more."
        if not why_not and verdict == APPROVE:
            # The list holds a part of the request. The digest covers the tool's whole input, too.
            why_not = case.why_not_approve() or ("" if shows_all(now) and not whole_input(detail) else SEE_ALL)
        if why_not:
            self.undecided.emit(row, why_not)
            return
        self._answers.give(Answer(KEYS[verdict], case, verdict))
        self.held.emit(row, verdict)

    def _failed(self, row: ApprovalRow, error: ConsoleError) -> None:
        self.undecided.emit(row, f"It could not be read: {error}")
