"""The fleet page: header, filter bar, tree table, detail pane; the first-run page stands in while nothing was ever seen."""

from __future__ import annotations

from time import monotonic

from PySide6.QtCore import QPointF, QTimer
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from console.api.messages import AgentDetailView, Delta
from console.gui.actions import ActionSpec, Risk
from console.gui.models.fleet import Row
from console.gui.pages.fleet.acts import FleetActs
from console.gui.pages.fleet.detail import DetailPane
from console.gui.pages.fleet.first_run import FirstRun
from console.gui.pages.fleet.header import HISTORY, FleetHeader
from console.gui.pages.fleet.rows import COLUMNS, cell_words, chevron_box, paint_row
from console.gui.pages.interface import Badge, Desk, Page, PageSpec
from console.gui.theme import fonts
from console.gui.theme.tokens import FILTER_BAR, ink
from console.gui.widgets.buttons import Pills, SearchField
from console.gui.widgets.rows import RowModel, RowView
from console.gui.widgets.text import Text

_DETAIL_EVERY_MS = 2000


class FilterBar(QWidget):
    """Search, pills, and how many are shown."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(FILTER_BAR)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 0, 16, 0)
        row.setSpacing(8)
        self.search = SearchField("Filter this list", "/", parent=self)
        self.search.setMaximumWidth(191)
        self.pills = Pills({"all": "All", "attention": "Attention", "full": "Full network", "deep": "Deep ≥ 3"}, self)
        self.shown = Text("", 12, fonts.REGULAR, "text2", right=True)
        row.addWidget(self.search, 2)
        row.addWidget(self.pills)
        row.addStretch(1)
        row.addWidget(self.shown)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(ink().bg0))
        painter.end()


class FleetPage(Page):
    """See, fold, sort, filter; pause, isolate, stop a tree."""

    spec = PageSpec("fleet", "Fleet", "fleet", "Operate")
    verbs = (
        ActionSpec("fleet.move", "Move in the list", "", "move", cap="↑ ↓"),
        ActionSpec("fleet.fold", "Fold and unfold a tree", "", "fold", cap="← →"),
        ActionSpec("fleet.detail", "Show or hide the detail pane", "", "detail", cap="Enter"),
        ActionSpec("fleet.pause", "Pause or resume this agent and all below it", "P", "pause", Risk.REVERSIBLE),
        ActionSpec(
            "fleet.stop-tree", "Stop this agent and all below it…", "X", "stop tree", Risk.DESTRUCTIVE, "SIGKILL, proven; no way back."
        ),
        ActionSpec("fleet.isolate", "Isolate this agent and all below it: no network", "I", "isolate", Risk.REVERSIBLE),
        ActionSpec("fleet.run", "Run an agent…", "N", "run an agent"),
        ActionSpec("fleet.filter", "Filter this list", "/", ""),
    )

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self.header = FleetHeader(self)
        self.bar = FilterBar(self)
        self.model = RowModel(COLUMNS, cell_words, self)
        self.view = RowView(self.model, paint_row, lambda row: str(row.id), self)
        self.view.setAccessibleName("Agents")
        self.pane = DetailPane(self)
        self.first_run = FirstRun(desk, self)
        self.acts = FleetActs(desk, self)
        self._detail: AgentDetailView | None = None
        self._pane_wanted = False
        self._arrange_after = 0.0
        """Structural changes are coalesced: arranging takes a twentieth of the time at most."""
        self._stack = QStackedWidget(self)
        self._lay_out()
        self._connect()
        self._poll = QTimer(self)
        self._poll.setInterval(_DETAIL_EVERY_MS)
        self._poll.timeout.connect(self._read_detail)

    def _lay_out(self) -> None:
        table = QWidget(self)
        column = QVBoxLayout(table)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for part in (self.header, self.bar):
            column.addWidget(part)
        column.addWidget(self.view, 1)
        self._stack.addWidget(table)
        self._stack.addWidget(self.first_run)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self._stack, 1)
        row.addWidget(self.pane)
        self.pane.hide()

    def _connect(self) -> None:
        self.view.chosen.connect(lambda _row: self._choose())
        self.view.opened.connect(lambda _row: self.do("fleet.detail"))
        self.view.sort_asked.connect(self._sort_by)
        self.view.fold_asked.connect(self._fold)
        self.view.pressed_at.connect(self._clicked)
        self.bar.search.textChanged.connect(self._filter)
        self.bar.search.left.connect(self.view.setFocus)
        self.bar.pills.changed.connect(lambda _key: self._filter())
        self.pane.asked.connect(self.do)
        self.first_run.asked.connect(self.do)

    # --- what the window tells -----------------------------------------------------------------------------------

    def on_show(self, argument: str = "") -> None:
        self._poll.start()
        self.on_models()
        if argument and not self.view.choose(argument):
            self._unhide(argument)
        if self._stack.currentIndex() == 0:
            self.view.setFocus()
        else:
            self.first_run.setFocus()

    def on_hide(self) -> None:
        self._poll.stop()

    def on_models(self) -> None:
        fleet = self.desk.fleet
        if fleet.structure_changed and monotonic() >= self._arrange_after:
            began = monotonic()
            self.view.show_rows(fleet.arrange())
            self._arrange_after = monotonic() + min(1.0, 20 * (monotonic() - began))
            self.badge_changed.emit()
        self._stack.setCurrentIndex(1 if fleet.loaded and not fleet.rows else 0)
        self.first_run.on_models()
        self.header.take(fleet)
        self._sample()
        for key, words in (("attention", "Attention"), ("full", "Full network")):
            self.bar.pills.pills[key].setText(f"{words} {fleet.count(key)}")
        self.bar.shown.setText(f"{len(self.model.rows):,} of {len(fleet.rows):,} shown")
        if self.view.current() is None and self.model.rows:
            self.view.choose(self.model.rows[0].id)
        self.view.refresh()
        self._show_pane()

    def on_tick(self, now: float) -> None:
        self.view.refresh()

    def badge(self) -> Badge | None:
        fleet = self.desk.fleet
        return Badge("stopped" if fleet.killed and not fleet.live() else f"{len(fleet.rows):,}") if fleet.loaded else None

    def handle(self, delta: Delta) -> None:
        if delta.kind == "kill":
            self._read_detail()

    def is_ready(self) -> bool:
        fleet = self.desk.fleet
        if not fleet.loaded or not fleet.rows:
            return fleet.loaded and self.desk.switch.view is not None
        return self._detail is not None and self._detail.agent.id == self.pane.agent_id

    # --- actions ---------------------------------------------------------------------------------------------------

    def why_not(self, action_id: str) -> str:
        row = self.view.current()
        if action_id in ("fleet.pause", "fleet.stop-tree", "fleet.isolate"):
            if row is None:
                return "No agent is selected."
            return self.acts.why_not(row, action_id, self._detail)
        if action_id == "fleet.run" and self.desk.switch.is_killed:
            return "Killed: nothing starts until rearm."
        return ""

    def do(self, action_id: str) -> None:
        row = self.view.current()
        if action_id == "fleet.filter":
            self.bar.search.setFocus()
        elif action_id == "fleet.run":
            self.acts.ask_launch()
        elif action_id == "fleet.detail":
            self._pane_wanted = not self._pane_wanted
            self._show_pane()
        elif row is not None and not self.why_not(action_id):
            self.acts.act(row, action_id)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _choose(self) -> None:
        self._detail = None
        self._show_pane()
        self._read_detail()

    def _show_pane(self) -> None:
        row = self.view.current()
        wanted = row is not None and self._stack.currentIndex() == 0 and (self._pane_wanted if self.is_narrow else not self._pane_wanted)
        self.pane.setVisible(wanted)
        if row is not None:
            self.pane.show_row(row, self.desk.fleet)
            self._allow(row)

    def _allow(self, row: Row) -> None:
        can = {name: self.why_not(name) for name in ("fleet.pause", "fleet.stop-tree", "fleet.isolate")}
        self.pane.allow(can, frozen=row.view.state == "frozen")

    def _read_detail(self) -> None:
        row = self.view.current()
        if row is not None:
            self.desk.requests.fleet.agent(row.id).then(self._detail_came)

    def _detail_came(self, detail: AgentDetailView) -> None:
        row = self.view.current()
        if row is not None and detail.agent.id == row.id:
            self._detail = detail
            self.pane.show_detail(detail)
            self._allow(row)

    def _sample(self) -> None:
        rows = self.desk.fleet.rows.values()
        if len(rows) <= 2000:
            slices = [0.0] * HISTORY
            for row in rows:
                for back, value in enumerate(reversed(row.view.burn[-HISTORY:])):
                    slices[-1 - back] += value
            self.header.sample(slices)

    def _sort_by(self, key: str) -> None:
        old, descending = self.desk.fleet.sort
        # tree order, then down, then up, then the order of the tree again
        new = (key, True) if old != key else (key, False) if descending else ("", False)
        self.desk.fleet.sort = new
        self.view.show_sorted(*new)
        self._arrange()

    def _filter(self) -> None:
        self.desk.fleet.text = self.bar.search.text()
        self.desk.fleet.filter = self.bar.pills.chosen()
        self._arrange()

    def _arrange(self) -> None:
        self.desk.fleet.structure_changed = True
        self._arrange_after = 0.0
        self.on_models()

    def _fold(self, row: Row, is_open: bool) -> None:
        closed = self.desk.fleet.closed
        if is_open:
            closed.discard(row.id)
        elif row.kids and row.is_open:
            closed.add(row.id)
        elif row.view.parent_id:
            self.view.choose(row.view.parent_id)
            return
        self._arrange()

    def _clicked(self, row: Row, at: QPointF) -> None:
        if row.kids and chevron_box(row, 0).adjusted(-2, -1000000, 2, 1000000).contains(QPointF(at.x(), 0)):
            self._fold(row, not row.is_open)

    def _unhide(self, agent_id: str) -> None:
        """An agent asked for by name is shown whatever filter or fold hides it."""
        fleet = self.desk.fleet
        self.bar.search.clear()
        self.bar.pills.pills["all"].setChecked(True)
        fleet.filter, fleet.text = "all", ""
        at = fleet.rows.get(agent_id)
        while at is not None and at.view.parent_id and at.view.parent_id in fleet.closed:
            fleet.closed.discard(at.view.parent_id)
            at = fleet.rows.get(at.view.parent_id)
        self._arrange()
        self.view.choose(agent_id)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_pane()
