"""The three profiles side by side: what each would have decided in the last week, which agents it judges, and the choice of another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QWidget

from console.api import endpoints as ep
from console.api.policy import rules as p
from console.domain.calls.profile import CODING, OBSERVE, OWN
from console.domain.errors import ConsoleError
from console.gui.kit.asking import ReasonDialog
from console.gui.kit.layout import STRETCH, Part, column, fill, row, scrolled
from console.gui.kit.table import Cell, Shape, listing
from console.gui.link.pending import Pending
from console.gui.pages.interface import Desk
from console.gui.pages.policy.words import shape_of
from console.gui.theme import fonts
from console.gui.widgets.buttons import Button
from console.gui.widgets.choice import Choice
from console.gui.widgets.facts import Card, Fact, Facts
from console.gui.widgets.reading import empty_note
from console.gui.widgets.rows import ManyRowView
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.text import Text
from console.gui.widgets.words import age, count, day_clock, plural
from console.wording.agent_kinds import TITLES

ORDER = ("strict", "coding", "observe")
STACKED = 620
"""Narrower than this the cards stand below each other."""
WATCHED = "No tool call is blocked, and each is recorded with what would have happened. Kills, limits and network modes hold as ever."
DIFFER = "Calls of the last week of which the profiles decide differently"
NO_CALLS = "No call was recorded in the last week by an agent that is still known, so there is nothing to compare."
SAME = "The profiles decide alike on every call of the last week."
OWN_WORDS = "Rules of your own (policy.json) decide for the agents for which no profile is chosen."


def in_force(kind: str, view: p.ProfilesView) -> str:
    """The profile by which agents of this kind are judged, or ``own``."""
    chosen = next((one.profile for one in view.choices if one.agent_type == kind), "")
    return chosen or (OWN if view.own_rules else CODING)


def kinds_of(view: p.ProfilesView) -> list[str]:
    """Every kind of coding agent, and every other type for which a profile was chosen."""
    return [*TITLES, *(one.agent_type for one in view.choices if one.agent_type not in TITLES)]


def judged_words(name: str, view: p.ProfilesView) -> str:
    """Which agents a profile judges."""
    kinds = [safe_text(TITLES.get(kind, kind), 40) for kind in kinds_of(view) if in_force(kind, view) == name]
    return f"In force for {', '.join(kinds)}" if kinds else "In force for no agents now"


def count_facts(found: p.ProfileCount | None) -> list[Fact]:
    """What it would have decided; none: not known yet."""
    if found is None:
        return [Fact("Calls of the last week", "being counted…", "ring")]
    total = found.allowed + found.asked + found.denied
    if not total:
        return [Fact("Calls of the last week", "none", "ring")]

    def part(number: int) -> str:
        return f"{count(number)}, {100 * number / total:.0f}%"

    return [
        Fact("Would allow", part(found.allowed), "check"),
        Fact("Would ask", part(found.asked), "triangle", "warn" if found.asked else "text2"),
        Fact("Would deny", part(found.denied), "ban", "danger" if found.denied else "text2"),
    ]


class ProfileCard(Card):
    """One profile. ``asked`` with its name: a person wants to choose it."""

    asked = Signal(str)

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__("warn" if name == OBSERVE else "", parent)
        self.name = name
        self.title, self.what, self.why = (
            Text(name.capitalize(), 15, fonts.SEMIBOLD),
            Text("", 12, fonts.REGULAR, "text2", wrap=True),
            Text("", 12, fonts.REGULAR, "text2", wrap=True),
        )
        self.counts = Facts(24)
        self.judges = Text("", 12, fonts.MEDIUM, "text2", wrap=True)
        self.choose = Button("", small=True, parent=self)
        self.choose.clicked.connect(lambda: self.asked.emit(self.name))
        fill(self.column, self.title, self.what, self.why, 8, self.counts, 8, STRETCH, self.judges, 6)
        self.column.addWidget(self.choose, 0, Qt.AlignmentFlag.AlignLeft)

    def say(self, view: p.ProfilesView, tried: p.ProfilesTriedView | None, kind: str) -> None:
        """``kind``: the agents for which one would be chosen."""
        row = next((one for one in view.profiles if one.name == self.name), None)
        self.what.setText(row.title if row is not None else "This supervisor does not know this profile.")
        self.why.setText(row.why if row is not None else "")
        self.counts.say(count_facts(next((one for one in tried.counts if one.name == self.name), None) if tried is not None else None))
        self.judges.setText(judged_words(self.name, view))
        whom = safe_text(TITLES.get(kind, kind), 30)
        self.choose.setText(f"Choose for {whom}…")
        self.choose.allow(
            f"It is in force for {whom} already." if in_force(kind, view) == self.name else "" if row is not None else "Not known here."
        )


class ChooseDialog(ReasonDialog):
    """Asks for the reason, and chooses. ``then`` gets what holds from now on."""

    def __init__(self, desk: Desk, kind: str, profile: str, then: Callable[[p.ProfilesView], None], parent: QWidget) -> None:
        whom = TITLES.get(kind, kind)
        super().__init__(f"Judge every call of {safe_text(whom, 40)} by the profile {profile}?", "Choose", "primary", parent)
        self.desk, self._kind, self._profile, self._then = desk, kind, profile, then
        self.paragraph("It holds from the next call on, for agents that run now as well.")
        if profile == OBSERVE:
            self.paragraph(WATCHED, "warn", "triangle")
        self.ask()

    def send(self, reason: str) -> Pending[p.ProfilesView]:
        body = p.ProfileBody(agent_type=self._kind, profile=self._profile, reason=reason)
        return self.desk.requests.ask(ep.CHOOSE_PROFILE, body=body)

    def answered(self, answer: p.ProfilesView) -> None:
        self._then(answer)


class ProfilesTab(QWidget):
    """Asks when it comes to the front; the comparison may take some seconds."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._desk = desk
        self.view: p.ProfilesView | None = None
        self.tried: p.ProfilesTriedView | None = None
        self.kind = Choice(self)
        self.kind.setMinimumWidth(160)
        self.kind.setAccessibleName("Agents for which a profile is chosen")
        self.kind.currentIndexChanged.connect(lambda _at: self._show())
        self.own = Text(OWN_WORDS, 12, fonts.MEDIUM, "warn", wrap=True, mark="triangle")
        self.problem = Text("", 12, fonts.MEDIUM, "warn", wrap=True, mark="triangle")
        self.cards = [ProfileCard(name, self) for name in ORDER]
        self.left_out = Text("", 12, fonts.REGULAR, "text2", wrap=True)
        self.calls = listing(DIFFER, self._cells(), lambda row: f"{row.at}\0{row.agent_id}\0{row.argument}", self, ManyRowView)
        self.empty = empty_note(self.calls, NO_CALLS)
        self._build()

    def _build(self) -> None:
        self._cards = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._cards.setSpacing(12)
        for card in self.cards:
            card.asked.connect(self.choose)
            self._cards.addWidget(card, 1)
        head = row(Text("Choose for", 12, fonts.MEDIUM, "text2"), self.kind, STRETCH, spacing=-1)
        differ = Text(DIFFER, 13, fonts.SEMIBOLD)
        for part in (self.own, self.problem):
            part.hide()
        self.calls.setMinimumHeight(150)
        parts: tuple[Part, ...] = (head, self.own, self.problem, self._cards, differ, self.left_out, (self.calls, 1))
        column(scrolled(self, *parts, margins=(16, 12, 16, 8), spacing=10, fills=True), on=self)

    # --- asking --------------------------------------------------------------------------------------------------

    def read(self) -> None:
        """Asks for the choices, and for what each profile would have decided."""
        asks = self._desk.requests
        asks.ask(ep.PROFILES).while_alive(self).then(self.take).failed(self._failed)
        asks.ask(ep.COMPARE_PROFILES).while_alive(self).then(self._tried).failed(self._failed)

    def choose(self, profile: str) -> None:
        """Asks for the reason."""
        kind = self.kind.currentData()
        if kind and self.view is not None:
            ChooseDialog(self._desk, kind, profile, self.take, self.window()).open()

    def take(self, view: p.ProfilesView) -> None:
        """What is chosen, read or just chosen."""
        self.view = view
        kinds, before = kinds_of(view), self.kind.currentData()
        if [self.kind.itemData(at) for at in range(self.kind.count())] != kinds:
            self.kind.blockSignals(True)
            self.kind.clear()
            for kind in kinds:
                self.kind.addItem(safe_text(TITLES.get(kind, kind), 40), kind)
            self.kind.setCurrentIndex(kinds.index(before) if before in kinds else 0)
            self.kind.blockSignals(False)
        self.problem.hide()
        self._show()

    def _tried(self, tried: p.ProfilesTriedView) -> None:
        self.tried = tried
        self._show()

    def _failed(self, error: ConsoleError) -> None:
        self.problem.setText(f"Not known now: {error}")
        self.problem.show()

    # --- showing -------------------------------------------------------------------------------------------------

    def _show(self) -> None:
        view, tried = self.view, self.tried
        if view is not None:
            self.own.setVisible(view.own_rules)
            for card in self.cards:
                card.say(view, tried, self.kind.currentData() or "")
        if tried is None:
            return
        rows: Sequence[p.ProfileCall] = tried.calls
        self.calls.show_rows(list(rows))
        self.empty.setText(SAME if tried.recorded > tried.left_out else NO_CALLS)
        self.empty.setVisible(not rows)
        words = f"{plural(tried.left_out, 'call')} of {count(tried.recorded)} left out: the agent is not known any more, or time was up."
        self.left_out.setText(words)
        self.left_out.setVisible(bool(tried.left_out))

    def _cells(self) -> list[Cell[p.ProfileCall]]:
        def of(name: str) -> Cell[p.ProfileCall]:
            def shape(row: p.ProfileCall) -> Shape:
                return shape_of(row.verdicts.get(name, ""))

            return Cell(name, name.capitalize(), 84, words=lambda row: shape(row)[0], shape=shape, quiet="text", sort="words")

        call: Cell[p.ProfileCall] = Cell(
            "call",
            "Call",
            share=8,
            words=lambda row: f"{row.tool} {row.argument}",
            mono=True,
            sort="words",
            text=lambda row: f"{row.tool}  {row.argument}",
        )
        at: Cell[p.ProfileCall] = Cell(
            "at",
            "When",
            110,
            hide_below=560,
            words=lambda row: day_clock(row.at),
            role="text2",
            sort=lambda row: row.at,
            text=lambda row: age(row.at, self._desk.clock()),
        )
        return [call, *(of(name) for name in ORDER), at]

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        down, across = QBoxLayout.Direction.TopToBottom, QBoxLayout.Direction.LeftToRight
        self._cards.setDirection(down if self.width() < STACKED else across)
