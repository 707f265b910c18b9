"""The receipt page: headline, timeline, targets with their proof, and what is open."""

from __future__ import annotations

import json
from contextlib import suppress

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QStackedWidget, QWidget

from console.api import endpoints as ep
from console.api.messages import Delta
from console.api.persistence import PersistenceReport, PersistenceView
from console.domain.kill import Outcome, Receipt, receipt_from_json
from console.gui.kit.layout import STRETCH, bar, column, row
from console.gui.kit.table import listing
from console.gui.models.fleet import Fleet
from console.gui.models.seen import still_running
from console.gui.models.switch import in_order
from console.gui.pages import declared
from console.gui.pages.interface import Desk, Page
from console.gui.pages.kill_switch.rearm import RearmDialog
from console.gui.pages.receipt.amended import is_late
from console.gui.pages.receipt.findings import COLUMNS as FOUND
from console.gui.pages.receipt.findings import aged, rows_of, summary
from console.gui.pages.receipt.head import ReceiptHead, Timeline, headline, open_points
from console.gui.pages.receipt.rows import COLUMNS, TargetRow
from console.gui.pages.receipt.side import WIDTH, ReceiptSide
from console.gui.pages.receipt.suspects import SuspectsDialog
from console.gui.theme import fonts
from console.gui.widgets.buttons import Pills
from console.gui.widgets.facts import Card
from console.gui.widgets.reading import empty_note
from console.gui.widgets.rows import ManyRowView
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.split import beside
from console.gui.widgets.text import Text
from console.gui.widgets.words import plural

_FILTERS: dict[str, tuple[Outcome, ...]] = {
    "all": tuple(Outcome),
    "open": (Outcome.NOT_PROVEN, Outcome.DYING),
    "best": (Outcome.BEST_EFFORT,),
    "proven": (Outcome.PROVEN_ZERO,),
}
AGAIN_S, OPEN_S = 10.0, 2.0
"""How often a receipt is read again: a guard amends it later too. The second while it is open, or its return watch runs."""
_NAMES = {"all": "All", "open": "Not confirmed", "best": "Best effort", "proven": "Confirmed dead"}


class OpenBox(Card):
    """Amber, at the right of the headline: what is open. Hidden when nothing is."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("warn", parent)
        self._title = Text("", 13, fonts.SEMIBOLD, "warn", mark="triangle")
        self._first = Text("", 12)
        self._second = Text("", 12, fonts.REGULAR, "text2")
        for part in (self._title, self._first, self._second):
            self.column.addWidget(part)
        self.setFixedWidth(420)
        self.hide()

    def say(self, points: list[str]) -> None:
        self.setVisible(bool(points))
        self._title.setText(f"Open on this host: {len(points)}")
        self._first.setText(points[0] if points else "")
        self._second.setText(
            points[1] if len(points) == 2 else f"and {len(points) - 1} more, first in the table" if len(points) > 2 else ""
        )


class ReceiptReader(QObject):
    """Reads a receipt, one question at a time, again and again. ``hunt_came`` with None: the hunt did not answer."""

    came = Signal(object)
    missing = Signal()
    hunt_came = Signal(object)

    def __init__(self, desk: Desk, parent: QObject) -> None:
        super().__init__(parent)
        self._desk = desk
        self._asking = ""
        self._read_at = 0.0

    def read(self, kill_id: str) -> None:
        """Asks now, unless that very receipt is on its way."""
        if self._asking == kill_id:
            return
        self._asking, self._read_at = kill_id, self._desk.clock()
        self._desk.requests.receipt(kill_id).while_alive(self).then(self._came).failed(lambda _error: self._failed(kill_id))

    def read_again(self, kill_id: str, receipt: Receipt | None, now: float) -> None:
        """Asks when the last answer is old."""
        is_open = receipt is None or not receipt.complete or now < receipt.watch_until + OPEN_S
        if kill_id and now - self._read_at >= (OPEN_S if is_open else AGAIN_S):
            self.read(kill_id)

    def take(self, raw: object) -> None:
        """A receipt of the stream's; what cannot be read of it the next question brings."""
        if isinstance(raw, dict) and raw:
            with suppress(KeyError, TypeError, ValueError):
                self.came.emit(receipt_from_json(raw))

    def read_hunt(self) -> None:
        """Asks what could bring an agent back."""
        asked = self._desk.requests.ask(ep.PERSISTENCE).while_alive(self)
        asked.then(self.hunt_came.emit).failed(lambda _error: self.hunt_came.emit(None))

    def _came(self, receipt: Receipt) -> None:
        self._asking = "" if self._asking == receipt.kill_id else self._asking
        self.came.emit(receipt)

    def _failed(self, kill_id: str) -> None:
        self._asking = "" if self._asking == kill_id else self._asking
        self.missing.emit()


class ReceiptPage(Page):
    """``on_show(kill_id)``; without one, the kill that is latched or the last one."""

    spec = declared.RECEIPT

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self.kill_id = ""
        self.receipt: Receipt | None = None
        self.head = ReceiptHead(self)
        self.open_box = OpenBox(self)
        self.timeline = Timeline(self)
        self.reports: list[PersistenceReport] = []
        self._found: list[PersistenceReport] = []
        self._hunted = False
        """Whether the hunt has answered."""
        self._turned = False
        """Turned by Enter: the side pane is hidden when wide, shown over the targets when narrow."""
        self.pills = Pills({**_NAMES, "back": "Could come back"}, self)
        self.place_view = listing("What could bring an agent back", FOUND, lambda row: str(row.key), self, ManyRowView)
        self.places = self.place_view.row_model
        self.no_places = empty_note(self.place_view, "")
        self.view = listing("Targets", COLUMNS, lambda row: str(row.key), self, ManyRowView)
        self.no_targets = empty_note(self.view, "")
        self.model = self.view.row_model
        self.side = ReceiptSide(self)
        self._shown = Text("", 12, fonts.REGULAR, "text2", right=True)
        self.reader = ReceiptReader(desk, self)
        self._build()
        self.reader.came.connect(self._came)
        self.reader.missing.connect(self._missing)
        self.reader.hunt_came.connect(self._hunt_came)
        self.pills.changed.connect(lambda _key: self._show_targets())
        self.view.opened.connect(lambda _row: self.do("receipt.side"))
        self.place_view.opened.connect(lambda _row: self.do("receipt.side"))
        self.side.asked.connect(self.do)

    def _build(self) -> None:
        top = row((self.head, 1), margins=(16, 0, 16, 0), spacing=-1)
        top.addWidget(self.open_box, 0, Qt.AlignmentFlag.AlignVCenter)
        self._stack = QStackedWidget(self)
        self._stack.addWidget(self.view)
        self._stack.addWidget(self.place_view)
        left = column(bar(self, self.pills, STRETCH, self._shown, spacing=-1), (self._stack, 1))
        column(top, self.timeline, (beside(left, self.side, self, WIDTH), 1), on=self)

    # --- what the window tells -----------------------------------------------------------------------------------

    def on_show(self, argument: str = "") -> None:
        wanted = argument or self._latest()
        if wanted != self.kill_id:
            self.kill_id, self.receipt = wanted, None
            self.pills.pills["all"].setChecked(True)
        self.on_models()
        self._read()
        self.view.setFocus()

    def on_models(self) -> None:
        if not self.kill_id and (latest := self._latest()):
            self.kill_id = latest  # the page was opened before the list of kills had come
            self._read()
        live = self.desk.switch.receipt
        if live is not None and live.kill_id == self.kill_id:
            ended = live.complete and not (self.receipt is not None and self.receipt.complete)
            self.receipt = live
            if ended:
                self.reader.read_hunt()  # the look after the kill is over by now
        self._show()

    def on_tick(self, now: float) -> None:
        self.reader.read_again(self.kill_id, self.receipt, now)
        self._show()

    def handle(self, delta: Delta) -> None:
        if delta.kind == "kill":
            self.reader.take(delta.data.get("receipt"))

    def resync(self) -> None:
        if self.kill_id:
            self._read()

    def is_ready(self) -> bool:
        return self.receipt is not None

    def why_not(self, action_id: str) -> str:
        if action_id == "receipt.rearm":
            return "" if self._is_latched() else "This kill blocks nothing any more: it was rearmed."
        if action_id == "receipt.suspects" and not (self.receipt is not None and self.receipt.suspects):
            return "This kill has no suspects."
        if action_id == "receipt.copy" and self.receipt is None:
            return "The receipt has not been read yet."
        return ""

    def do(self, action_id: str) -> None:
        if action_id == "receipt.copy" and self.receipt is not None:
            QGuiApplication.clipboard().setText(json.dumps(self.receipt.as_json(), indent=2))  # ASCII: escapes stay visible
            self.desk.notices.say("info", "The receipt is in the clipboard as JSON.")
        elif action_id == "receipt.suspects" and self.receipt is not None and self.receipt.suspects:
            SuspectsDialog(self.desk, self.receipt, self.window()).open()
        elif action_id == "receipt.rearm":
            RearmDialog(self.desk, self.kill_id, self.window()).open()
        elif action_id == "receipt.side":
            self._turned = not self._turned
            self._show_side()
        elif action_id == "receipt.back-list":
            self.pills.pills["all" if self.pills.chosen() == "back" else "back"].setChecked(True)
            self._show_targets()
        elif action_id == "receipt.back":
            self.desk.goto("kill-switch", "")

    # --- inside ------------------------------------------------------------------------------------------------------

    def _latest(self) -> str:
        switch = self.desk.switch
        if switch.guard.kill_id and switch.is_killed:
            return switch.guard.kill_id
        if switch.view is not None:
            return switch.view.kill_id or (switch.view.receipts[0].kill_id if switch.view.receipts else "")
        return ""

    def _read(self) -> None:
        if self.kill_id:
            self.reader.read(self.kill_id)
            self.reader.read_hunt()

    def _hunt_came(self, view: PersistenceView | None) -> None:
        self.reports, self._hunted = (view.reports if view is not None else []), view is not None
        self._show()

    def _sessions(self) -> list[PersistenceReport]:
        """Reports of the sessions of this kill's targets; all of them where the fleet does not know them (any more)."""
        rows, receipt = self.desk.fleet.rows, self.receipt
        sessions = {rows[t.agent_id].view.session for t in (receipt.targets if receipt else ()) if t.agent_id in rows}
        mine = [report for report in self.reports if not sessions or report.context_id in sessions]
        return [aged(report, receipt.pressed_at) if receipt else report for report in mine]

    def _came(self, receipt: Receipt) -> None:
        if receipt.kill_id == self.kill_id:
            self.receipt = receipt
            self._show()

    def _missing(self) -> None:
        if self.receipt is None and not self.desk.switch.is_killing:
            self.head.say(self.kill_id, headline(None, self.desk.switch.guard))

    def _is_latched(self) -> bool:
        switch = self.desk.switch
        return switch.is_killed and self.kill_id in (switch.view.kill_id if switch.view else "", switch.guard.kill_id)

    def _show(self) -> None:
        seen = still_running(self.receipt, self.desk.fleet.rows.values())
        self.head.say(self.kill_id, headline(self.receipt, self.desk.switch.guard, seen, self.desk.clock()))
        self.open_box.say(open_points(self.receipt, seen))
        self.timeline.say(self.receipt)
        status = self.desk.switch.status
        self._found = self._sessions()
        self.side.say(self.receipt, summary(self._found, known=self._hunted), f"{status.state_dir}/cases" if status else "", seen)
        self.side.judge(self.why_not)
        self._show_targets()

    def _show_targets(self) -> None:
        ordered = in_order(self.receipt.targets) if self.receipt else []
        targets = sorted(ordered, key=lambda t: t.outcome is Outcome.PROVEN_ZERO and not is_late(t))  # proven later: before the quiet ones
        for key, outcomes in _FILTERS.items():
            self.pills.pills[key].setText(f"{_NAMES[key]} {sum(1 for t in targets if t.outcome in outcomes):,}")
        self._show_places()
        wanted = _FILTERS.get(self.pills.chosen(), ())
        rows = [TargetRow(t, _name(self.desk.fleet, t.agent_id)) for t in targets if t.outcome in wanted]
        if rows != self.view.order.given:
            self.view.show_rows(rows)
        self.no_targets.setText("No targets of this kind." if targets else "This kill met no agents: none was running in its scope.")
        self.no_targets.setVisible(self.receipt is not None and self.receipt.complete and not rows)
        if self.pills.chosen() != "back":
            self._shown.setText(f"{len(rows):,} of {plural(len(targets), 'target')}")

    def _show_places(self) -> None:
        rows = rows_of(self._found)
        more = sum(report.left_out for report in self._found)
        self.pills.pills["back"].setText(f"Could come back {len(rows) + more:,}" if self._hunted else "Could come back ?")
        self._stack.setCurrentIndex(1 if self.pills.chosen() == "back" else 0)
        if rows != self.place_view.order.given:
            self.place_view.show_rows(rows)
        self.no_places.setText(summary(self._found, known=self._hunted)[0].left + ".")
        self.no_places.setVisible(not rows)
        if self.pills.chosen() == "back":
            self._shown.setText(f"{len(rows):,} of {plural(len(rows) + more, 'place')}")

    def _show_side(self) -> None:
        self.side.setVisible(self._turned if self.is_narrow else not self._turned)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_side()
        self.open_box.setFixedWidth(300 if self.is_narrow else 420)


def _name(fleet: Fleet, agent_id: str) -> str:
    row = fleet.rows.get(agent_id)
    return row.name if row is not None else safe_text(agent_id, 60)
