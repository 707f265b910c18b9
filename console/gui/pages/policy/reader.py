"""What the supervisor says of the rules, lint, tools and sequences, and since when it says nothing newer."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, Signal

from console.api import endpoints as ep
from console.api.policy.page import LintView, SequencesView, ToolsView
from console.api.policy.rules import PolicyView
from console.domain.errors import ConsoleError
from console.gui.pages.interface import Desk
from console.gui.widgets.words import clock


class PolicyReader(QObject):
    """``came`` and ``failed`` with the name of a tab: rules, lint, matrix or sequences; the answers are attributes, None until one came."""

    came = Signal(str)
    failed = Signal(str, str)

    def __init__(self, desk: Desk, parent: QObject) -> None:
        super().__init__(parent)
        self._desk = desk
        self.policy: PolicyView | None = None
        self.lint: LintView | None = None
        self.tools: ToolsView | None = None
        self.sequences: SequencesView | None = None
        self.problems: dict[str, str] = {}
        """By tab: why it could not be read the last time."""
        self.reading = 0
        """Answers of rules and lint on their way."""
        self.read_at = 0.0
        self._came_at: dict[str, float] = {}
        self._again = ""
        """The tab that was asked for while answers were on their way."""

    def read(self, tab: str) -> None:
        """Asks for what ``tab`` shows, and for rules and lint unless they are still on their way."""
        asks = self._desk.requests
        if tab == "matrix":
            asks.ask(ep.TOOLS).while_alive(self).then(self._tools_came).failed(partial(self._failed, tab))
        elif tab == "sequences":
            asks.ask(ep.SEQUENCES).while_alive(self).then(self._sequences_came).failed(partial(self._failed, tab))
        if self.reading:
            self._again = tab
            return
        self.read_at = self._desk.clock()
        self.reading = 2
        rules, lint = asks.ask(ep.POLICY).while_alive(self), asks.ask(ep.LINT).while_alive(self)
        rules.then(self.take).then(self._arrived).failed(partial(self._failed, "rules")).failed(self._arrived)
        lint.then(self._lint_came).then(self._arrived).failed(partial(self._failed, "lint")).failed(self._arrived)

    def is_ready(self, tab: str) -> bool:
        """Whether what ``tab`` shows was answered, with whatever."""
        if tab in ("matrix", "sequences"):
            return tab in self._came_at
        return all(name in self._came_at or name in self.problems for name in ("rules", "lint"))

    def old_words(self, tab: str) -> str:
        """What stands above a list that could not be refreshed; empty while the list is current."""
        problem = self.problems.get(tab, "")
        if not problem:
            return ""
        at = self._came_at.get(tab)
        return f"Old, read at {clock(at)}; not known now: {problem}" if at is not None else f"Not known: {problem}"

    def take(self, view: PolicyView) -> None:
        """The rules in force, read or just put in force."""
        self.policy = view
        self._took("rules")

    def _lint_came(self, view: LintView) -> None:
        self.lint = view
        self._took("lint")

    def _tools_came(self, view: ToolsView) -> None:
        self.tools = view
        self._took("matrix")

    def _sequences_came(self, view: SequencesView) -> None:
        self.sequences = view
        self._took("sequences")

    def _took(self, tab: str) -> None:
        self.problems.pop(tab, None)
        self._came_at[tab] = self._desk.clock()
        self.came.emit(tab)

    def _failed(self, tab: str, error: ConsoleError) -> None:
        self.problems[tab] = str(error)
        self.failed.emit(tab, str(error))

    def _arrived(self, _answer: object) -> None:
        """One answer less on its way; what was asked for meanwhile is read now."""
        self.reading -= 1
        if not self.reading and self._again:
            tab, self._again = self._again, ""
            self.read(tab)
