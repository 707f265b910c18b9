"""The pane at the right: one rule, finding, tool or sequence, in words; below a rule the calls that it decided last."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from console.api import endpoints as ep
from console.api.policy.page import JudgedRow, JudgedView
from console.api.policy.rules import RuleRow
from console.domain.errors import ConsoleError
from console.gui.kit.layout import scrolled
from console.gui.kit.pane import Offer, Pane
from console.gui.kit.table import Cell, listing
from console.gui.pages.interface import Desk
from console.gui.pages.policy.rules import decided_as, key_of, use_of
from console.gui.theme import fonts
from console.gui.widgets.facts import Chips, ChipSpec, Rule
from console.gui.widgets.lines import Line, Lines
from console.gui.widgets.reading import empty_note
from console.gui.widgets.rows import ManyRowView
from console.gui.widgets.text import Text
from console.gui.widgets.words import day_clock

CALLS: tuple[Cell[JudgedRow], ...] = (
    Cell("at", "When", 120, words=lambda row: day_clock(row.at), role="text2", mono=True),
    Cell(
        "call",
        "Call it decided",
        share=1,
        words=lambda row: f"{row.agent_id}: {row.tool} {row.argument}",
        mono=True,
        text=lambda row: f"{row.tool} {row.argument}",
    ),
)
_SHOWN = 12


OFFERS = (
    Offer("policy.remove", "Remove…", keys="X", kind="danger"),
    Offer("policy.explain", "Explain a call", keys="E"),
    Offer("policy.backtest", "Change rules…", keys="B"),
)


class PolicyPane(Pane):
    """``call_opened`` carries a recorded call."""

    call_opened = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Detail")
        self.key = ""
        self.crumb = Text("", 11, fonts.REGULAR, "text2")
        self.title = Text("", 15, fonts.MEDIUM, mono=True, wrap=True)
        self.chips = Chips()
        self.lines = Lines(_SHOWN)
        self.calls = listing("Calls it decided last", CALLS, lambda row: f"{row.at} {row.agent_id} {row.argument}", self, ManyRowView)
        self.calls_model = self.calls.row_model
        self.calls.order.keep("at", "The newest call comes first.", descending=True)
        self.no_calls = empty_note(self.calls, "")
        self.calls.opened.connect(self.call_opened)
        scroll = scrolled(self, self.crumb, 5, self.title, 8, self.chips, Rule(9), self.lines, margins=(19, 13, 20, 12))
        self.lay((scroll, 3), (self.calls, 2), offers=OFFERS)
        self.show_calls(None)

    def say(self, key: str, crumb: str, title: str, chips: Sequence[ChipSpec], lines: Sequence[Line]) -> None:
        """What is looked at."""
        if key != self.key:
            self.key = key
            self.lines.fold()
        self.crumb.setText(crumb)
        self.title.setText(title)
        self.chips.say(chips)
        self.lines.say(lines)

    def offer_removal(self, is_offered: bool) -> None:
        """Whether what is looked at was made of an approval."""
        self.offers["policy.remove"].setVisible(is_offered)
        self.offers["policy.explain"].setVisible(not is_offered)

    def show_calls(self, rows: Sequence[JudgedRow] | None, words: str = "") -> None:
        """None: what is looked at decides no calls. ``words``: why there are none."""
        self.calls.setVisible(rows is not None)
        self.calls.show_rows(list(rows or ()))
        self.no_calls.setText(words)
        self.no_calls.setVisible(not rows)


class RuleCalls(QObject):
    """``changed``: the calls of the rule that was asked for last came, or could not be read."""

    changed = Signal()

    def __init__(self, desk: Desk, parent: QObject) -> None:
        super().__init__(parent)
        self._desk = desk
        self._use = ""
        """The rule and its use that ``rows`` are of."""
        self.rows: list[JudgedRow] = []
        self.words = ""
        """Why there are none."""

    def of(self, row: RuleRow) -> None:
        """Makes it the rule whose calls are kept; what is shown of it stays until newer ones come."""
        use = use_of(row)
        if use == self._use:
            return
        if not self._use.startswith(f"{key_of(row)}\0"):
            self.rows, self.words = [], "Being read…"
        self._use = use
        asked = self._desk.requests.ask(ep.CALLS, rule=decided_as(row), verdict=row.list).while_alive(self)
        asked.then(partial(self._came, use)).failed(partial(self._failed, use))

    def _came(self, use: str, view: JudgedView) -> None:
        if use == self._use:
            self.rows, self.words = view.rows, "" if view.rows else "No recorded call was decided by it."
            self.changed.emit()

    def _failed(self, use: str, error: ConsoleError) -> None:
        if use == self._use:
            self.rows, self.words = [], f"Not known: {error}"
            self.changed.emit()
