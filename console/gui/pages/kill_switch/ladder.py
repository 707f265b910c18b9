"""The ladder: freeze, isolate, kill and the ways back over a chosen scope. What kills everything and latches is the panic plate."""

from __future__ import annotations

from typing import Literal

from PySide6.QtWidgets import QHBoxLayout, QWidget

from console.api.ladder import ScopeBody
from console.gui.kit.layout import STRETCH, column, fill, row
from console.gui.pages.declared import ACTIONS, Action
from console.gui.pages.interface import Desk
from console.gui.pages.kill_switch.cards import Rungs
from console.gui.pages.kill_switch.chooser import ScopeDialog
from console.gui.pages.kill_switch.rung import RungDialog
from console.gui.pages.kill_switch.rung_words import refusals, scope_rows, scope_words
from console.gui.theme import fonts
from console.gui.widgets.buttons import Button, Pills
from console.gui.widgets.facts import Card
from console.gui.widgets.text import Text

_PILLS = {"host": "Everything on this host", "tree": "Tree…", "session": "Session…", "agent": "Agent…"}
_RUNGS: tuple[tuple[tuple[Action, str, str], ...], ...] = (
    (("freeze", "Freeze…", "plain"), ("thaw", "Resume…", "plain")),
    (("isolate", "Isolate…", "plain"), ("reconnect", "Reconnect…", "plain")),
    (("kill", "Kill…", "danger"),),
)
_NAMED: tuple[Literal["tree", "session", "agent"], ...] = ("tree", "session", "agent")
_WIDE = 104


def titled(title: str, right: Text) -> QHBoxLayout:
    """The first line of a card: title, and words at the right."""
    return row(Text(title, 13, fonts.SEMIBOLD), STRETCH, right, spacing=-1)


class Ladder(Card):
    """Every rung asks first, with the supervisor's preview of exactly this scope."""

    def __init__(self, desk: Desk, parent: QWidget) -> None:
        super().__init__("plain", parent)
        self._desk = desk
        self.scope = ScopeBody(reach="host")
        self._over = Text("", 11, fonts.REGULAR, "text2", right=True)
        self.pills = Pills(_PILLS, self)
        self.pills.changed.connect(self._choose)
        rungs = Rungs(self)
        self.buttons: dict[str, Button] = {}
        column(*(self._line(rung, rungs) for rung in _RUNGS), margins=(0, 14, 0, 14), spacing=28, on=rungs)
        title, scopes = titled("Ways to stop", self._over), row(self.pills, STRETCH, spacing=-1)
        fill(self.column, title, 8, scopes, 4, rungs, STRETCH)
        self._show_scope()

    def _line(self, rung: tuple[tuple[Action, str, str], ...], parent: QWidget) -> QHBoxLayout:
        buttons = [self._button(action, words, kind, parent) for action, words, kind in rung]
        return row(STRETCH, *buttons, *([_WIDE + 8] if len(rung) == 1 else []), spacing=8)

    def _button(self, action: Action, words: str, kind: str, parent: QWidget) -> Button:
        button = Button(words, kind=kind, small=True, parent=parent)
        button.setFixedWidth(_WIDE)
        button.clicked.connect(lambda: self.do(f"switch.{action}"))
        self.buttons[action] = button
        return button

    def allow(self) -> None:
        """Buttons on or off, with why."""
        refused = refusals(scope_rows(self.scope, self._desk.fleet), killed=self._desk.switch.is_killed)
        for action, button in self.buttons.items():
            button.allow(refused[action])

    def why_not(self, action_id: str) -> str:
        """Empty when there is something to act on."""
        refused = refusals(scope_rows(self.scope, self._desk.fleet), killed=self._desk.switch.is_killed)
        return refused.get(action_id.removeprefix("switch."), "")

    def do(self, action_id: str) -> None:
        """switch.freeze, thaw, isolate, reconnect, kill: asks first."""
        action = next((a for a in ACTIONS if f"switch.{a}" == action_id), None)
        if action is not None and not self.why_not(action_id):
            RungDialog(self._desk, action, self.scope, self.window()).open()

    # --- over whom -----------------------------------------------------------------------------------------------------

    def _choose(self, key: str) -> None:
        reach = next((r for r in _NAMED if r == key), None)
        if reach is None:
            self.take(ScopeBody(reach="host"))
            return
        dialog = ScopeDialog(self._desk.fleet, reach, self.window())
        dialog.accepted.connect(lambda: self.take(ScopeBody(reach=reach, target=dialog.target[:63])))
        dialog.rejected.connect(lambda: self.take(self.scope))
        dialog.open()

    def take(self, scope: ScopeBody) -> None:
        """From now on the rungs are for this scope."""
        self.scope = scope
        self.pills.pills[scope.reach].setChecked(True)
        self._show_scope()
        self.allow()

    def _show_scope(self) -> None:
        self._over.setText(f"over {scope_words(self.scope, self._desk.fleet)}")
