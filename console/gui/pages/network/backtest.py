"""What a change would have done to recorded requests: asked before it is saved, and shown line by line."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from console.api import endpoints as ep
from console.api.allowlist_review import BacktestBody, BacktestGroup, BacktestView
from console.domain.errors import Conflict, ConsoleError
from console.gui.kit.asking import ReasonDialog
from console.gui.kit.layout import fill
from console.gui.pages.interface import Desk
from console.gui.theme import fonts
from console.gui.widgets.facts import Card, Fact, Facts
from console.gui.widgets.text import Text
from console.gui.widgets.words import plural

SHOWN = 5
"""Groups listed of each kind; the counts are whole."""
_GUARDED = ("token", "secret", "credential", "password", "passwd", "account", "owner", "login", "oauth", ".ssh", "apikey", "api_key")


def reads_accounts(group: BacktestGroup) -> bool:
    """Whether the path looks like accounts or tokens: such a newly allowed request is amber."""
    return any(word in group.path.lower() for word in _GUARDED)


def group_lines(view: BacktestView) -> list[Fact]:
    """Newly allowed (amber where accounts or tokens are read), then newly blocked, with who asked and how often."""
    lines: list[Fact] = []
    allowed = sorted(view.newly_allowed, key=lambda group: not reads_accounts(group))
    for group in allowed[:SHOWN]:
        amber = reads_accounts(group)
        role = "warn" if amber else "text"
        lines.append(
            Fact(_request(group), f"{group.count:,}×", "triangle" if amber else "check", "warn" if amber else "text2", role, mono=True)
        )
    lines += _more(len(allowed) - SHOWN, "newly allowed")
    for group in view.newly_blocked[:SHOWN]:
        lines.append(Fact(_request(group), f"{group.count:,}×", "ban", "danger", "danger", "danger", mono=True))
    return lines + _more(len(view.newly_blocked) - SHOWN, "newly blocked")


def _request(group: BacktestGroup) -> str:
    return f"{group.method} {group.host}{group.path}"


def _more(number: int, what: str) -> list[Fact]:
    return [Fact(f"and {plural(number, 'more kind')} {what}", "", left_role="text2", indent=True)] if number > 0 else []


def bounds_words(view: BacktestView) -> str:
    """What the answer does not cover; empty when it covers everything."""
    parts = []
    if view.incomplete:
        parts.append("more requests are recorded than were checked; the newest were")
    if view.left_out:
        parts.append(f"{view.left_out:,} blocked for their content or the address of their name, which is not checked")
    if not view.judged:
        parts.append("no recorded request to check")
    return "; ".join(parts)


class BacktestCard(Card):
    """Hidden until something is asked; an answer is for exactly the text it was asked with, which the caller minds."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("plain", parent)
        self._days = Text("", 11, fonts.REGULAR, "text2")
        self.words = Text("", 12, fonts.REGULAR, "text", wrap=True)
        self.groups = Facts(21)
        self.bounds = Text("", 11, fonts.REGULAR, "text2", wrap=True)
        title = Text("What would this have changed?", 13, fonts.SEMIBOLD)
        fill(self.column, title, 2, self._days, 4, self.words, 4, self.groups, self.bounds)
        self.hide()

    def asking(self) -> None:
        """The old answer is none any more."""
        self._set("", "Checking recorded requests again…", "text2", "ring", [], "")

    def say(self, view: BacktestView) -> None:
        """The answer."""
        amber = bool(view.newly_blocked) or any(reads_accounts(group) for group in view.newly_allowed)
        judged = f"{plural(view.judged, 'recorded request')} of the last {plural(view.days, 'day')}"
        words = view.words or f"{view.changed:,} would be decided differently."
        self._set(judged, words, "warn" if amber else "text", "triangle" if amber else "", group_lines(view), bounds_words(view))

    def fail(self, error: ConsoleError) -> None:
        """Not answered: not known."""
        self._set("", f"What it would have changed is not known: {error}", "warn", "triangle", [], "")

    def _set(self, days: str, words: str, role: str, mark: str, lines: list[Fact], bounds: str) -> None:
        self._days.setText(days)
        self._days.setVisible(bool(days))
        self.words.say(words, role, mark)
        self.groups.say(lines)
        self.bounds.setText(bounds)
        self.bounds.setVisible(bool(bounds))
        self.set_kind("warn" if role == "warn" else "plain")
        self.show()


class ChangeDialog(ReasonDialog):
    """A change of the allowlist, with what it would have done to recorded requests. Not sent twice over a list that is another by now."""

    def __init__(self, desk: Desk, title: str, main: str, kind: str, parent: QWidget, *, width: int = 480) -> None:
        super().__init__(title, main, kind, parent, width=width)
        self.desk = desk
        self.test = BacktestCard(self)

    def ask_with(self, body: BacktestBody) -> None:
        """The card for this change, and the field for the reason, below what was said."""
        self.body.addWidget(self.test)
        self.test.asking()
        tested = self.desk.requests.ask(ep.BACKTEST, body=body).while_alive(self)
        tested.then(self.test.say).failed(self.test.fail)
        self.ask()

    def refused(self, error: ConsoleError) -> None:
        super().refused(error)
        if isinstance(error, Conflict):
            self.main.allow("The list is another one now: close this and look at it first.")
