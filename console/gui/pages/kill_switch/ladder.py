"""The ladder below the kill: freeze everything, isolate everything, resume. The kill itself has only the panic plate."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from console.api.messages import ActView
from console.gui.link.pending import Pending
from console.gui.models.fleet import Row
from console.gui.pages.interface import Desk
from console.gui.pages.kill_switch.cards import Rungs
from console.gui.theme import fonts
from console.gui.widgets.buttons import Button
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.facts import Card
from console.gui.widgets.text import Text
from console.gui.widgets.words import plural

_FREEZE = "Nothing runs and nothing is lost, until you resume it (W)."
_ISOLATE = "No agent reaches the network any more, until it is reconnected: watchfloor reconnect --all."


def titled(title: str, right: Text) -> QHBoxLayout:
    """The first line of a card: title, and words at the right."""
    line = QHBoxLayout()
    line.addWidget(Text(title, 13, fonts.SEMIBOLD))
    line.addStretch(1)
    line.addWidget(right)
    return line


class Ladder(Card):
    """Acts on every live tree of this host."""

    def __init__(self, desk: Desk, parent: QWidget) -> None:
        super().__init__("plain", parent)
        self._desk = desk
        self.column.addLayout(titled("Ladder", Text("every agent of this host", 11, fonts.REGULAR, "text2", right=True)))
        self.column.addSpacing(8)
        rungs = Rungs(self)
        self.column.addWidget(rungs)
        self.freeze = Button("Freeze everything…", parent=rungs, small=True)
        self.isolate = Button("Isolate everything…", parent=rungs, small=True)
        self.freeze.clicked.connect(lambda: self.do("switch.freeze"))
        self.isolate.clicked.connect(lambda: self.do("switch.isolate"))
        grid = QVBoxLayout(rungs)
        grid.setContentsMargins(0, 13, 0, 0)
        grid.setSpacing(28)
        for button in (self.freeze, self.isolate):
            button.setFixedWidth(162)
            line = QHBoxLayout()
            line.addStretch(1)
            line.addWidget(button)
            grid.addLayout(line)
        grid.addStretch(1)
        self.column.addStretch(1)

    def allow(self) -> None:
        """Buttons on or off, with why."""
        why_not = self.why_not()
        self.freeze.allow(why_not)
        self.isolate.allow(why_not)

    def why_not(self) -> str:
        """Empty when there is something to act on."""
        if self._desk.switch.is_killed:
            return "Killed: nothing changes until rearm."
        return "" if self._roots() else "No agent is live."

    def do(self, action_id: str) -> None:
        """switch.freeze and switch.isolate ask first; switch.thaw does not."""
        asks = self._desk.requests.fleet
        if action_id == "switch.freeze":
            self._confirm("Freeze", _FREEZE, lambda row: asks.freeze(row.id, tree=True), "frozen")
        elif action_id == "switch.isolate":
            self._confirm("Isolate", _ISOLATE, lambda row: asks.isolate(row.id, tree=True), "isolated")
        elif action_id == "switch.thaw":
            self._each(lambda row: asks.thaw(row.id, tree=True), "resumed")

    def _roots(self) -> list[Row]:
        fleet = self._desk.fleet
        roots = [row for row in fleet.rows.values() if not row.view.parent_id or row.view.parent_id not in fleet.rows]
        return [root for root in roots if any(row.is_live for row in fleet.tree(root.id))]

    def _confirm(self, verb: str, words: str, act: Callable[[Row], Pending[ActView]], done: str) -> None:
        dialog = Dialog(f"{verb} everything?", f"{verb} {plural(self._desk.fleet.live(), 'agent')}", "danger", self.window())
        dialog.paragraph(words)

        def go() -> None:
            dialog.accept()
            self._each(act, done)

        dialog.main.clicked.connect(go)
        dialog.open()

    def _each(self, act: Callable[[Row], Pending[ActView]], done: str) -> None:
        for row in self._roots():
            act(row).then(lambda view: self._tell(done, view)).failed(self._desk.notices.fail)

    def _tell(self, done: str, view: ActView) -> None:
        for agent, why in list(view.failed.items())[:3]:
            self._desk.notices.say("amber", f"{agent} not {done}: {why}")
        self._desk.ask_sync()
