"""What can be done to agents from the fleet page, when not, and how the outcome is told."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPoint
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QMenu, QWidget

from console.api.ladder import MOST, ScopeBody
from console.api.messages import AgentDetailView
from console.gui.actions.catalogue import why_not_by_role
from console.gui.models.fleet import Row
from console.gui.pages.declared import ACTIONS, FLEET_RUNGS, REACHES, VERBS, Action, Reach
from console.gui.pages.fleet.new_agent import NewAgentDialog
from console.gui.pages.interface import Desk
from console.gui.pages.kill_switch.rung import RungDialog
from console.gui.pages.kill_switch.rung_words import refusals, scope_of, scope_rows, scope_words, targets_of
from console.gui.widgets.safe_text import safe_text, tooltip
from console.gui.widgets.words import plural


def is_isolated(row: Row) -> bool:
    """An operator cut its network."""
    return bool(row.view.isolated)


class FleetActs:
    """The ladder over an agent, its tree, its session, this host; and launching."""

    def __init__(self, desk: Desk, page: QWidget, copies: list[QAction]) -> None:
        """``copies``: what the list offers to copy of its selected rows."""
        self._desk, self._page, self._copies = desk, page, copies

    def rung_of(self, rows: list[Row], action_id: str) -> tuple[Action, Reach] | None:
        """The rung and reach an action means for these rows now: the one that tightens, unless that was done to each of them."""
        if action_id == "fleet.pause":
            return ("thaw" if all(row.view.state == "frozen" for row in rows) else "freeze"), "tree"
        if action_id == "fleet.isolate":
            return ("reconnect" if all(map(is_isolated, rows)) else "isolate"), "tree"
        return ("kill", "tree") if action_id == "fleet.stop-tree" else FLEET_RUNGS.get(action_id)

    def why_not(self, rows: list[Row], action_id: str, detail: AgentDetailView | None) -> str:
        """Empty when it can be asked for; the preview has the last word, and names what is left alone of several."""
        rung = self.rung_of(rows, action_id)
        return self.refused(rows, rung[1], detail)[rung[0]] if rung is not None else ""

    def refused(self, rows: list[Row], reach: Reach, detail: AgentDetailView | None) -> dict[str, str]:
        """Rung -> why it cannot be asked for over a reach from these rows; empty when it can. Each agent is looked at once."""
        if unfit := self._unfit(rows, reach):
            return dict.fromkeys(ACTIONS, unfit)
        meant = scope_rows(self.scope_of(rows, reach), self._desk.fleet)
        plain = refusals(meant, killed=self._desk.switch.is_killed)
        if detail is not None and [row.id for row in meant] == [detail.agent.id]:
            plain = {action: why or detail.can.get(action, "") for action, why in plain.items()}
        rights = self._desk.switch.rights
        return {action: why_not_by_role(f"fleet.{action}", rights) or why for action, why in plain.items()}

    def of_tree(self, row: Row, detail: AgentDetailView | None) -> dict[str, str]:
        """Action -> why not, of what the detail pane offers; the tree is walked once."""
        refused = self.refused([row], "tree", detail)
        asked = {name: self.rung_of([row], name) for name in ("fleet.pause", "fleet.stop-tree", "fleet.isolate")}
        return {name: refused[rung[0]] for name, rung in asked.items() if rung is not None}

    def _unfit(self, rows: list[Row], reach: Reach) -> str:
        """Why one question cannot be about these rows; empty when it can."""
        lacking = sum(not row.view.session for row in rows) if reach == "session" else 0
        if lacking:
            return "It has no session." if len(rows) == 1 else f"{lacking:,} of {plural(len(rows), 'agent')} selected: no session."
        number = len(rows) if reach in ("agent", "tree") else len(targets_of(self.scope_of(rows, reach)))
        if number <= MOST:
            return ""
        if reach == "session":
            return f"More than {MOST} sessions are selected. Choose fewer, or this host."
        return f"More than {MOST} agents are selected. Choose fewer, a session or this host."

    def act(self, rows: list[Row], action_id: str) -> None:
        """Asks first, with the supervisor's preview; once, and with one order, however many rows are meant."""
        rung = self.rung_of(rows, action_id)
        if rung is None:
            return
        action, reach = rung
        if unfit := self._unfit(rows, reach):
            self._desk.notices.say("amber", unfit)
            return
        RungDialog(self._desk, action, self.scope_of(rows, reach), self._page.window()).open()

    def scope_of(self, rows: list[Row], reach: Reach) -> ScopeBody:
        """What is meant, each once. An agent in the tree of another that is selected is in that one's tree already."""
        if reach == "host":
            return ScopeBody(reach=reach)
        return scope_of(self._desk.fleet, reach, [row.view.session if reach == "session" else row.id for row in rows])

    def menu(self, rows: list[Row], detail: AgentDetailView | None) -> QMenu:
        """Every rung over every reach; what cannot be done now is off, with why."""
        menu = QMenu(self._page)
        menu.setToolTipsVisible(True)
        for reach in REACHES:
            title = self._title(rows, reach)
            part = menu.addMenu(_plain(f"{title} alone" if reach == "agent" else title))
            part.setToolTipsVisible(True)
            part.menuAction().setToolTip(tooltip(title))  # without one Qt shows the title, and guesses whether it is rich text
            refused = self.refused(rows, reach, detail)
            for action in ACTIONS:
                name = f"fleet.{action}-{reach}"
                entry = part.addAction(f"{VERBS[action]}…")
                entry.setEnabled(not refused[action])
                entry.setToolTip(tooltip(refused[action] or f"{VERBS[action]}: what it will do is shown first."))
                entry.triggered.connect(lambda _on=False, name=name: self.act(rows, name))
        menu.addActions(self._copies)
        sessions = list(dict.fromkeys(one.view.session for one in rows if one.view.session))
        entry = menu.addAction("Copy the session" if len(rows) == 1 else "Copy the sessions")
        entry.setEnabled(bool(sessions))
        entry.setToolTip(tooltip(", ".join(sessions[:5]) or "It has no session."))
        text = "\n".join(safe_text(session, 200) for session in sessions)
        entry.triggered.connect(lambda: QGuiApplication.clipboard().setText(text))
        return menu

    def _title(self, rows: list[Row], reach: Reach) -> str:
        """What a reach means for these rows."""
        scope = self.scope_of(rows, reach)
        return scope_words(scope, self._desk.fleet) if scope.target or reach == "host" else REACHES[reach]

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
