"""The fleet page: header, filter bar, tree table, detail pane; the first-run page stands in while nothing was ever seen."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QStackedWidget, QWidget

from console.api import endpoints as ep
from console.api.messages import AgentDetailView, Delta, EgressView
from console.domain.message import Malformed
from console.gui.kit.layout import column
from console.gui.pages import declared
from console.gui.pages.first_run.overview import FIRST_KEYS, FirstRun
from console.gui.pages.fleet.acts import FleetActs
from console.gui.pages.fleet.adopt import AdoptDialog, why_not_adopt
from console.gui.pages.fleet.detail import DetailPane
from console.gui.pages.fleet.rows import Mood
from console.gui.pages.fleet.table import FleetTable
from console.gui.pages.interface import Badge, Desk, Page
from console.gui.pages.network.register import RegisterDialog
from console.gui.pages.network.sandboxes import why_not_data
from console.gui.theme.tokens import DETAIL
from console.gui.timers import every
from console.gui.widgets.split import beside

_DETAIL_EVERY_MS = 2000
_ON_A_ROW = ("fleet.pause", "fleet.stop-tree", "fleet.isolate")


class FleetPage(Page):
    """See, fold, sort, filter; freeze, isolate, stop a tree."""

    spec = declared.FLEET

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self.table = self.memory = FleetTable(desk.fleet, self._mood, self)
        self.view = self.table.view
        self.pane = DetailPane(desk, self)
        self.first_run = FirstRun(desk, self)
        self.acts = FleetActs(desk, self, self.view.actions())
        self._detail: AgentDetailView | None = None
        self._was_killed = False
        """Everything was stopped when it was looked at last, also while the page was hidden."""
        self._awaited = ""
        """Started from here: it is selected as soon as it is in the fleet."""
        self._pane_wanted = False
        """Turned by Enter: hidden when wide, shown over the table when narrow."""
        self._stack = QStackedWidget(self)
        self._stack.addWidget(self.table)
        self._stack.addWidget(self.first_run)
        column(beside(self._stack, self.pane, self, DETAIL), on=self)
        self.pane.hide()
        self.view.chosen.connect(lambda _row: self._show_row())
        self.view.opened.connect(lambda _row: self.do("fleet.detail"))
        self.pane.asked.connect(lambda _id: self.view.choose(self.pane.agent_id))  # its buttons mean its agent, whatever else is selected
        self.pane.asked.connect(self.do)
        self.view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.view.customContextMenuRequested.connect(self._context_menu)
        self.first_run.asked.connect(self.do)
        self.table.header.new.clicked.connect(lambda: self.do("fleet.run"))
        self._poll = every(self, _DETAIL_EVERY_MS, self._read_detail)

    def _mood(self) -> Mood:
        return Mood(killed=self.desk.fleet.killed or self.desk.switch.is_killed, stale=self.desk.switch.is_old(self.desk.clock()))

    # --- what the window tells -----------------------------------------------------------------------------------

    def on_show(self, argument: str = "") -> None:
        self._poll.start()
        self.on_models()
        if argument:
            self.table.reveal(argument)
        if self._stack.currentIndex() == 0:
            self.view.setFocus()
        else:
            self.first_run.setFocus()

    def keys(self) -> tuple[tuple[str, str], ...]:
        return super().keys() if self.desk.fleet.rows else FIRST_KEYS

    def on_hide(self) -> None:
        self._poll.stop()
        self.table.leave()

    def on_models(self) -> None:
        fleet = self.desk.fleet
        waited = self._stack.currentIndex() == 1
        self._stack.setCurrentIndex(0 if fleet.rows else 1)
        if self._was_killed and not self._mood().killed:
            self.table.arrange(forget=True)  # a selected row, dead now, would keep what starts after a rearm below the dead
        self._was_killed = self._mood().killed
        if waited and fleet.rows:
            self.view.setFocus()
        self.first_run.on_models()
        self.table.refresh()
        self.table.header.new.allow(self.why_not("fleet.run"))
        if self._awaited in fleet.rows:
            self.table.reveal(self._awaited)
            self._awaited = ""
        self._show_pane()

    def on_tick(self, now: float) -> None:
        self.table.look_again()
        if self._stack.currentIndex() == 1:
            self.first_run.on_models()  # a supervisor that fell silent tells nothing: only the time does

    def handle(self, delta: Delta) -> None:
        if delta.kind == "egress" and delta.data.get("agent_id") == self.pane.agent_id:
            with suppress(Malformed):  # the next read of the ledger has it
                self.pane.requests.add(EgressView.read(delta.data))
        elif delta.kind == "activity":
            self.pane.verdicts.handle(delta)
        elif delta.kind == "kill" and delta.data.get("state") == "killed":
            self._was_killed = True

    def badge(self) -> Badge | None:
        fleet = self.desk.fleet
        return Badge("stopped" if fleet.killed and not fleet.live() else f"{len(fleet.rows):,}") if fleet.loaded else None

    def is_ready(self) -> bool:
        fleet = self.desk.fleet
        if not fleet.loaded or not fleet.rows:
            return fleet.loaded and self.desk.switch.view is not None
        return self._detail is not None and self._detail.agent.id == self.pane.agent_id

    # --- actions ---------------------------------------------------------------------------------------------------

    def why_not(self, action_id: str) -> str:
        row = self.view.current()
        if action_id in _ON_A_ROW or action_id == "fleet.ladder" or action_id in declared.FLEET_RUNGS:
            rows = self.view.picked_rows()
            if row is None:
                return "No agent is selected."
            return self.acts.why_not(rows, action_id, self._detail if len(rows) == 1 else None)
        if action_id == "fleet.adopt" and self.desk.fleet.rows:
            killed = self.desk.switch.is_killed
            return "No agent is selected." if row is None else "Killed: nothing changes until you rearm." if killed else why_not_adopt(row)
        if action_id == "fleet.data" and self.desk.fleet.rows:
            killed = self.desk.switch.is_killed
            return "No agent is selected." if row is None else "Killed: nothing changes until you rearm." if killed else why_not_data(row)
        if action_id == "fleet.activity" and row is None:
            return "No agent is selected."
        if action_id == "fleet.run" and self.desk.switch.is_killed:
            return "Killed: nothing starts until you rearm."
        return ""

    def do(self, action_id: str) -> None:
        row = self.view.current()
        looks = self._looks()
        if action_id in looks:
            looks[action_id]()
        elif action_id == "fleet.run":
            self.acts.ask_launch(self._started)
        elif action_id == "fleet.detail":
            self._pane_wanted = not self._pane_wanted
            self._show_pane()
        elif row is not None and action_id == "fleet.activity":
            self.desk.goto("activity", row.id)
        elif row is not None and not self.why_not(action_id):
            if action_id == "fleet.ladder":
                at = self.view.visualRect(self.view.currentIndex())
                self._context_menu(at.bottomLeft() + QPoint(60, 0))
            elif action_id == "fleet.adopt":
                AdoptDialog(self.desk, row, self.window()).open()
            elif action_id == "fleet.data":
                RegisterDialog(self.desk, row.view, self.window()).open()
            else:
                self.acts.act(self.view.picked_rows(), action_id)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _looks(self) -> dict[str, Callable[[], None]]:
        """What changes nothing. Before the first agent D is the demo and U the set-up: no agent could be meant."""
        found: dict[str, Callable[[], None]] = {
            "fleet.filter": self.table.bar.search.setFocus,
            "fleet.urgent": self.table.bar.urgent.toggle,
            "fleet.arrange": self.table.arrange,
            "fleet.seen": lambda: self.desk.fleet.see(list(self.desk.fleet.rows)),
            "fleet.verdicts": self._go_to_verdicts,
            "fleet.hook": self.first_run.show_hook,
            "fleet.setup": self.first_run.show_setup,
            "fleet.switch": lambda: self.desk.goto("kill-switch", ""),
        }
        return found if self.desk.fleet.rows else found | {"fleet.data": self.first_run.copy_demo, "fleet.adopt": self.first_run.show_setup}

    def _started(self, agent_id: str) -> None:
        self._awaited = agent_id
        self.on_models()

    def _go_to_verdicts(self) -> None:
        self._pane_wanted = self.is_narrow
        self._show_pane()
        if self.pane.verdicts.model.rows:
            self.pane.verdicts.view.setFocus()
        else:
            self.desk.notices.say("info", "No call of this agent was checked yet.")

    def _context_menu(self, at: QPoint) -> None:
        if self.view.picked() and (self.view.indexAt(at).isValid() or not self.view.viewport().rect().contains(at)):
            self.acts.show_menu(self.view.picked_rows(), self._detail, self.view.viewport().mapToGlobal(at))

    def _show_row(self) -> None:
        self._detail = None
        self._show_pane()
        self._read_detail()

    def _show_pane(self) -> None:
        row = self.view.current()
        wanted = row is not None and self._stack.currentIndex() == 0 and (self._pane_wanted if self.is_narrow else not self._pane_wanted)
        self.pane.setVisible(wanted)
        if row is not None:
            self.pane.show_row(row, self.desk.fleet)
            self.pane.allow(self.acts.of_tree(row, self._detail), row)

    def _read_detail(self) -> None:
        row = self.view.current()
        if row is not None:
            self.desk.requests.ask(ep.AGENT, row.id).then(self._detail_came)

    def _detail_came(self, detail: AgentDetailView) -> None:
        row = self.view.current()
        if row is not None and detail.agent.id == row.id:
            self._detail = detail
            self.pane.show_detail(detail)
            self.pane.allow(self.acts.of_tree(row, self._detail), row)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_pane()
