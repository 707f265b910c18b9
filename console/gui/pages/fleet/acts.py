"""What can be done to agents from the fleet page, when not, and how the outcome is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from PySide6.QtCore import QPoint
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMenu, QWidget

from console.api.ladder import ScopeBody
from console.api.messages import AgentDetailView
from console.gui.actions import ActionSpec
from console.gui.actions.catalogue import why_not_by_role
from console.gui.models.fleet import Row
from console.gui.pages.fleet.new_agent import NewAgentDialog
from console.gui.pages.interface import Desk
from console.gui.pages.kill_switch.rung import RungDialog
from console.gui.pages.kill_switch.rung_words import ACTIONS, VERBS, Action, refusals, scope_rows, scope_words
from console.gui.pages.kill_switch.several import MOST, SeveralDialog, several_words
from console.gui.widgets.safe_text import safe_text, tooltip

Reach = Literal["agent", "tree", "session", "host"]
REACHES: dict[Reach, str] = {
    "agent": "this agent alone",
    "tree": "this agent and all below it",
    "session": "its session",
    "host": "everything on this host",
}
LADDER_VERBS = tuple(
    ActionSpec(f"fleet.{action}-{reach}", f"{VERBS[action]} {words}…") for reach, words in REACHES.items() for action in ACTIONS
)
"""Every rung over every reach, from the selected agent."""
_RUNGS: dict[str, tuple[Action, Reach]] = {f"fleet.{action}-{reach}": (action, reach) for reach in REACHES for action in ACTIONS}


def is_isolated(row: Row) -> bool:
    """An operator cut its network."""
    return bool(row.view.isolated)


class FleetActs:
    """The ladder over an agent, its tree, its session, this host; and launching."""

    def __init__(self, desk: Desk, page: QWidget) -> None:
        self._desk, self._page = desk, page

    def rung_of(self, row: Row, action_id: str) -> tuple[Action, Reach] | None:
        """The rung and reach an action means for that row now."""
        if action_id == "fleet.pause":
            return ("thaw" if row.view.state == "frozen" else "freeze"), "tree"
        if action_id == "fleet.isolate":
            return ("reconnect" if is_isolated(row) else "isolate"), "tree"
        return ("kill", "tree") if action_id == "fleet.stop-tree" else _RUNGS.get(action_id)

    def scope_of(self, row: Row, reach: Reach) -> ScopeBody:
        """The scope of a reach, from that row."""
        target = {"agent": row.id, "tree": row.id, "session": row.view.session}.get(reach, "")
        return ScopeBody(reach=reach, target=target[:63])

    def why_not(self, row: Row, action_id: str, detail: AgentDetailView | None) -> str:
        """Empty when it can be asked for; the preview has the last word."""
        rung = self.rung_of(row, action_id)
        if rung is None:
            return ""
        action, reach = rung
        if reach == "session" and not row.view.session:
            return "It has no session."
        rows = scope_rows(self.scope_of(row, reach), self._desk.fleet)
        return self._refusal(row, action, rows, refusals(rows, killed=self._desk.switch.is_killed), detail)

    def of_tree(self, row: Row, detail: AgentDetailView | None) -> dict[str, str]:
        """The same for what the detail pane offers; the tree is walked once."""
        rows = self._desk.fleet.tree(row.id)
        plain = refusals(rows, killed=self._desk.switch.is_killed)
        asked = {name: self.rung_of(row, name) for name in ("fleet.pause", "fleet.stop-tree", "fleet.isolate")}
        return {name: self._refusal(row, rung[0], rows, plain, detail) for name, rung in asked.items() if rung is not None}

    def _refusal(self, row: Row, action: Action, rows: list[Row], plain: dict[str, str], detail: AgentDetailView | None) -> str:
        if by_role := why_not_by_role(f"fleet.{action}", self._desk.switch.rights):
            return by_role
        if plain[action] or detail is None or detail.agent.id != row.id or len(rows) != 1:
            return plain[action]
        return detail.can.get(action, "")

    def why_not_all(self, rows: list[Row], action_id: str) -> str:
        """Empty when it can be asked for one of several rows at least; the question names those that are left alone."""
        if len(rows) > MOST:
            return f"More than {MOST} agents are selected. Choose a tree, a session or this host."
        refused = ""
        for row in rows:
            refused = self.why_not(row, action_id, None)
            if not refused:
                break
        return refused

    def act(self, rows: list[Row], action_id: str) -> None:
        """Asks first, with the supervisor's preview; once, however many rows are meant."""
        rungs = [rung for row in rows if (rung := self.rung_of(row, action_id)) is not None]
        if not rungs:
            return
        action = next((action for action, _reach in rungs if action not in ("thaw", "reconnect")), rungs[0][0])
        scopes = self.scopes_of(rows, rungs[0][1])
        if len(scopes) == 1:
            RungDialog(self._desk, action, scopes[0], self._page.window()).open()
        elif scopes:
            SeveralDialog(self._desk, action, scopes, self._page.window()).open()

    def scopes_of(self, rows: list[Row], reach: Reach) -> list[ScopeBody]:
        """Each scope once. An agent below another that is selected is in that one's tree already."""
        if reach == "tree":
            below = {one.id for row in rows for one in self._desk.fleet.tree(row.id)[1:]}
            rows = [row for row in rows if row.id not in below] or rows[:1]  # parents in a circle are below each other
        scopes = {(scope := self.scope_of(row, reach)).target: scope for row in rows if reach != "session" or row.view.session}
        return list(scopes.values())

    def menu(self, rows: list[Row], detail: AgentDetailView | None) -> QMenu:
        """Every rung over every reach; what cannot be done now is off, with why."""
        menu, row = QMenu(self._page), rows[0]
        menu.setToolTipsVisible(True)
        for reach, words in REACHES.items():
            title = self._title(rows, reach) or words
            part = menu.addMenu(_plain(f"{title} alone" if reach == "agent" else title))
            part.setToolTipsVisible(True)
            part.menuAction().setToolTip(tooltip(title))  # without one Qt shows the title, and guesses whether it is rich text
            for action in ACTIONS:
                name = f"fleet.{action}-{reach}"
                entry = part.addAction(f"{VERBS[action]}…")
                refused = self.why_not(row, name, detail) if len(rows) == 1 else self.why_not_all(rows, name)
                entry.setEnabled(not refused)
                entry.setToolTip(tooltip(refused or f"{VERBS[action]}: what it will do is shown first."))
                entry.triggered.connect(lambda _on=False, name=name: self.act(rows, name))
        many = len(rows) > 1
        sessions = list(dict.fromkeys(one.view.session for one in rows if one.view.session))
        copied = (("Copy their ids" if many else "Copy its id", [one.id for one in rows]), ("Copy its session", sessions))
        for words, values in copied if not many else copied[:1]:
            entry = menu.addAction(words)
            entry.setEnabled(bool(values))
            entry.setToolTip(tooltip(", ".join(values[:5]) or "It has no session."))
            text = "\n".join(safe_text(value, 200) for value in values)
            entry.triggered.connect(lambda _on=False, text=text: QGuiApplication.clipboard().setText(text))
        return menu

    def _title(self, rows: list[Row], reach: Reach) -> str:
        """What a reach means for these rows; empty: they have no session."""
        scopes = self.scopes_of(rows, reach)
        if len(scopes) > 1:
            return several_words(scopes)
        return scope_words(scopes[0], self._desk.fleet) if scopes else ""

    def show_menu(self, rows: list[Row], detail: AgentDetailView | None, at: QPoint) -> None:
        """Opens it at a point of the screen."""
        menu = self.menu(rows, detail)
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(at)

    def ask_launch(self, started: Callable[[str], None]) -> None:
        """The dialog that starts an agent; ``started`` is given its id."""
        NewAgentDialog(self._desk, started, self._page.window()).open()


def _plain(words: str) -> str:
    """A menu's title: an ampersand is one, not a mnemonic."""
    return safe_text(words, 60).replace("&", "&&")
