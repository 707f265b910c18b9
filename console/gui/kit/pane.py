"""The pane beside a list: what is selected, from its parts, and at its foot buttons for what can be done with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from console.gui.kit.layout import PANE, STRETCH, Part, column, row
from console.gui.theme import fonts
from console.gui.widgets.buttons import Button
from console.gui.widgets.facts import Rule
from console.gui.widgets.side_pane import SidePane
from console.gui.widgets.text import Text


@dataclass(frozen=True, slots=True)
class Offer:
    """A button for an action of the page; ``keys`` shows its key."""

    action_id: str
    text: str
    icon: str = ""
    keys: str = ""
    kind: str = "plain"


@dataclass(frozen=True, slots=True)
class Section:
    """The head of a part of a pane: a rule, a title, and a note at its right."""

    title: Text
    note: Text
    parts: tuple[Part, ...]


def section(title: str, note: str = "", room: int = 9) -> Section:
    """``room``: pixels above and below the rule."""
    left, right = Text(title, 13, fonts.SEMIBOLD), Text(note, 11, fonts.REGULAR, "text2", right=True)
    return Section(left, right, (Rule(room), row(left, (right, 1), spacing=-1), 5))


class Pane(SidePane):
    """``asked`` carries the id of an action. ``offers`` are the buttons by that id."""

    asked = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.offers: dict[str, Button] = {}

    def lay(self, *parts: Part, offers: tuple[Offer, ...], wide: bool = True) -> None:
        """The parts from the top, and the buttons below them; ``wide``: they share the whole width."""
        for offer in offers:
            button = Button(offer.text, offer.icon, offer.kind, keys=offer.keys, parent=self)
            button.clicked.connect(partial(self._ask, offer.action_id))
            self.offers[offer.action_id] = button
        buttons: list[Part] = [(button, 1 if wide else 0) for button in self.offers.values()]
        foot = row(*buttons, *(() if wide else (STRETCH,)), margins=PANE, spacing=8)
        column(*parts, foot, margins=(1, 0, 0, 0), on=self)

    def judge(self, why_not: Callable[[str], str]) -> None:
        """Each button works while its action does, and else says why not."""
        for action_id, button in self.offers.items():
            button.allow(why_not(action_id))

    def _ask(self, action_id: str, _on: bool = False) -> None:
        self.asked.emit(action_id)
