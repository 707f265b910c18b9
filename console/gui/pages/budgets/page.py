"""The Budgets page: what ends first, who spends it, the day in pictures; limits with a reason, forecast, freeze, stop."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from console.api import endpoints as ep
from console.api.budgets import ROWS, BudgetNodeView, BudgetsView
from console.api.ladder import MOST
from console.domain.errors import ConsoleError
from console.gui.kit.layout import column
from console.gui.models import switch
from console.gui.models.fleet import halted_today, unread_today
from console.gui.pages import declared
from console.gui.pages.budgets.detail import BudgetDetail
from console.gui.pages.budgets.forecast import ForecastDialog
from console.gui.pages.budgets.head import still_over
from console.gui.pages.budgets.limits import LimitsDialog
from console.gui.pages.budgets.listing import BudgetList
from console.gui.pages.budgets.pictures import FULL_HEIGHT, SMALL_HEIGHT, Pictures
from console.gui.pages.budgets.several import SeveralLimitsDialog, are_frozen, scope_of_rows, why_not_limits
from console.gui.pages.declared import Action
from console.gui.pages.interface import Badge, Desk, Page
from console.gui.pages.kill_switch.rung import RungDialog
from console.gui.pages.kill_switch.rung_words import refusals, scope_rows
from console.gui.theme.tokens import DETAIL
from console.gui.timers import every, once
from console.gui.widgets.split import beside
from console.gui.widgets.words import cap_usd, clock

AGAIN_S = 2.0
SOME = 100
"""Trees that are read while only the first ones are looked at: an answer of 500 takes the window 30 ms to read."""
NODE_AGAIN_S = 4.0
HIDDEN_MS = 30_000
"""While another page is in front only the badge is kept."""
_LOOK_MS = 60
"""A key held down does not read every node it passes."""
_LOW = 700
"""A page lower than this shows small pictures."""
_ACTS = ("budgets.pause", "budgets.stop-tree")


class BudgetsPage(Page):
    """See what ends first, and change it."""

    spec = declared.BUDGETS

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self.list = BudgetList(self)
        self.view = self.list.view
        self.pictures = Pictures(desk, self)
        self.pane = BudgetDetail(self)
        self._asking = False
        self._halted: int | None = None
        """Agents that a limit halted in the last 24 hours: no badge calls for a person because of them. None: not counted yet."""
        self._read_at = 0.0
        self._came_at: float | None = None
        """When the figures that are shown came."""
        self._node_at = 0.0
        self._front = False
        self._wanted = ""
        self._all = False
        """More than the first trees are read: the person searches, or has scrolled to their end."""
        self._pane_turned = False
        """Turned by Enter: hidden when wide, shown when narrow."""
        self._pictures_alone = False
        column(beside(column((self.list, 1), self.pictures), self.pane, self, DETAIL), on=self)
        self._look = once(self, _LOOK_MS, self._read_node)
        self._slow = every(self, HIDDEN_MS, self._read)
        self._slow.start()
        self.list.chosen.connect(self._chose)
        self.list.order_changed.connect(lambda _order: self._read_some())
        self.list.more_wanted.connect(self._read_more)
        self.view.opened.connect(lambda _line: self.do("budgets.detail"))
        self.pane.asked.connect(lambda _id: self.view.choose(self.pane.key))  # its buttons mean its row, whatever else is selected
        self.pane.asked.connect(self.do)
        self._lay()

    # --- what the window tells -----------------------------------------------------------------------------------

    def on_show(self, argument: str = "") -> None:
        self._front, self._wanted = True, argument
        self._lay()
        self._read()
        self.pictures.look(self.desk.clock())
        self.view.setFocus()

    def on_hide(self) -> None:
        self._front = False

    def on_models(self) -> None:
        self._allow()

    def on_tick(self, now: float) -> None:
        self.list.head.set_old(self.desk.switch.is_old(now))
        if self._came_at is not None and now - self._came_at > switch.BEHIND_S:
            self.list.head.fail(f"stale since {clock(self._came_at)}: not read")
        if now - self._read_at >= AGAIN_S:
            self._read()
        if now - self._node_at >= NODE_AGAIN_S:
            self._read_node()
        self.pictures.look(now)

    def resync(self) -> None:
        self._read()

    def badge(self) -> Badge | None:
        data = self.list.data
        over = still_over(data.totals, self._count_halted()) if data is not None else 0
        if over:
            return Badge(f"{over:,}", "danger", "alert")
        return Badge(f"{data.totals.above_75:,}", "warn", "warning") if data is not None and data.totals.above_75 else None

    def _count_halted(self) -> int:
        """Once for each answer; the budgets may come before the fleet does."""
        if self._halted is None and self.desk.fleet.loaded:
            self._halted = halted_today(self.desk.fleet, self.desk.clock())
        return self._halted or 0

    def is_ready(self) -> bool:
        row = self.list.current()
        read = self.list.data is not None and self.pictures.ready
        return read and (row is None or self.pane.view is not None)

    # --- actions ---------------------------------------------------------------------------------------------------

    def why_not(self, action_id: str) -> str:
        row = self.list.current()
        if action_id == "budgets.limits":
            killed = self.desk.switch.is_killed
            return "Nothing has been read yet." if self.list.data is None else why_not_limits(self.list.picked(), killed=killed)
        if action_id in _ACTS:
            return self._why_not_act(action_id)
        if action_id == "budgets.fleet":
            return "" if row is not None and row.scope in ("agent", "tree") else "Choose a tree or an agent."
        if action_id == "budgets.forecast" and self.list.data is None:
            return "Nothing has been read yet."
        return ""

    def _why_not_act(self, action_id: str) -> str:
        scope = scope_of_rows(self.list.picked(), self.desk.fleet)
        if scope is None:
            return "Choose trees and agents, or sessions."
        if len(scope.others) >= MOST:
            return f"More than {MOST} rows are selected. Choose fewer."
        return refusals(scope_rows(scope, self.desk.fleet), killed=self.desk.switch.is_killed)[self._rung(action_id)]

    def _rung(self, action_id: str) -> Action:
        if action_id == "budgets.stop-tree":
            return "kill"
        return "thaw" if are_frozen(self.list.picked(), self.desk.fleet) else "freeze"

    def do(self, action_id: str) -> None:
        row = self.list.current()
        refused = self.why_not(action_id)
        if refused:
            self.desk.notices.say("info", refused)
        elif action_id == "budgets.limits":
            rows = self.list.picked()
            dialog = SeveralLimitsDialog(self.desk, rows, self.window()) if len(rows) > 1 else LimitsDialog(self.desk, row, self.window())
            dialog.finished.connect(lambda _code: self._read_all())
            dialog.open()
        elif action_id == "budgets.forecast" and self.list.data is not None:
            ForecastDialog(self.pane.view, self.list.data.totals, self.desk.clock(), self.window()).open()
        elif action_id in _ACTS:
            scope = scope_of_rows(self.list.picked(), self.desk.fleet)
            if scope is not None:
                RungDialog(self.desk, self._rung(action_id), scope, self.window()).open()
        elif action_id == "budgets.fleet" and row is not None:
            self.desk.goto("fleet", row.key)
        else:
            self._turn(action_id)

    def _turn(self, action_id: str) -> None:
        if action_id == "budgets.detail":
            self._pane_turned = not self._pane_turned
        elif action_id == "budgets.pictures":
            self._pictures_alone = not self._pictures_alone
        elif action_id == "budgets.arrange":
            self.list.arrange()
        elif action_id == "budgets.order":
            orders = list(self.list.pills.pills)
            self.list.turn(orders[(orders.index(self.list.order) + 1) % len(orders)])
        elif action_id == "budgets.filter":
            self._pictures_alone = False
            self.list.search.setFocus()
        self._lay()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _read_all(self) -> None:
        self._read()
        self._read_node()

    def _read(self) -> None:
        """One question at a time; while hidden only now and then, for the badge."""
        if self._asking:
            return
        self._asking, self._read_at = True, self.desk.clock()
        order = self.list.order if self.list.order == "spend" else "time"
        limit = ROWS if self._all else SOME
        asked = self.desk.requests.ask(ep.BUDGETS, order=order, limit=limit).while_alive(self)
        asked.then(lambda view: self._came(view, order, limit)).failed(self._failed)

    def _read_some(self) -> None:
        """Another order begins at its top."""
        self._all = False
        self._read()

    def _read_more(self) -> None:
        if not self._all:
            self._all = True
            self._read()

    def _failed(self, error: ConsoleError) -> None:
        self._asking = False
        why = f"not available, because {error.what[:1].lower()}{error.what[1:].rstrip('.')}"
        self.list.fail(why, error.remedy)

    def _came(self, view: BudgetsView, order: str, limit: int) -> None:
        self._asking, self._came_at = False, self.desk.clock()
        if (self.list.order == "spend") != (order == "spend") or (self._all and limit < ROWS):
            self._read()
        elif self._all and not self.list.wants_all:
            self._all = False  # the next one is short again
        before = self.badge()
        unread = unread_today(self.desk.fleet, self.desk.clock())
        self._halted = None
        self.list.take(view, f"{unread}: spend unknown, in no sum" if unread else "", self._count_halted())
        self.pictures.say(view.totals)
        cap = view.totals.day_cap_usd
        self.desk.fleet.day_words = "no limit for the day" if cap is None else f"of {cap_usd(cap)} for the day"
        if self._wanted:
            wanted, self._wanted = self._wanted, ""
            self.list.reveal(wanted)
        if self.badge() != before:
            self.badge_changed.emit()
        self._chose(again=False)

    def _chose(self, *, again: bool = True) -> None:
        row = self.list.current()
        self._lay()
        if row is None:
            return
        key = f"{row.scope}:{row.key}"
        other = key != self.pane.key
        self.pane.show_row(key, row)
        self._allow()
        if other or again:
            self._look.start()

    def _read_node(self) -> None:
        row = self.list.current()
        if row is None or not self._front:
            return
        self._node_at = self.desk.clock()
        key = f"{row.scope}:{row.key}"
        asked = self.desk.requests.ask(ep.BUDGET_NODE, scope=row.scope, key=row.key).while_alive(self)
        asked.then(lambda view: self._node_came(key, view)).failed(lambda error: self.pane.show_problem(key, str(error)))

    def _node_came(self, key: str, view: BudgetNodeView) -> None:
        self.pane.show_node(key, view, self.desk.fleet.unread())
        self._allow()

    def _allow(self) -> None:
        names = ("budgets.pause", "budgets.stop-tree", "budgets.limits")
        self.pane.allow({name: self.why_not(name) for name in names}, are_frozen(self.list.picked(), self.desk.fleet))

    def _lay(self) -> None:
        has_one = self.list.current() is not None
        turned = self._pane_turned if self.is_narrow else not self._pane_turned
        self.pane.setVisible(has_one and turned)
        self.list.setVisible(not self._pictures_alone)
        if self._pictures_alone:
            self.pictures.setMinimumHeight(0)
            self.pictures.setMaximumHeight(16_777_215)
        else:
            self.pictures.setFixedHeight(SMALL_HEIGHT if self.height() < _LOW else FULL_HEIGHT)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            if self._pictures_alone or (self.is_narrow and self._pane_turned):
                self._pictures_alone = self._pane_turned = False
                self._lay()
            self.view.setFocus()
        else:
            super().keyPressEvent(event)
