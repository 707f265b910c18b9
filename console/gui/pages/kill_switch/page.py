"""The kill switch page: state, paths, what a press will do now, the ladder, earlier kills, hosts."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QWidget

from console.api import endpoints as ep
from console.api.armed import PathView
from console.api.secrets import RotationView
from console.domain.words import listed
from console.gui.kit.layout import STRETCH, column, fill, row, scrolled
from console.gui.kit.table import listing
from console.gui.models.operators import person
from console.gui.models.switch import Switch
from console.gui.pages import declared
from console.gui.pages.declared import ACTIONS
from console.gui.pages.interface import Badge, Desk, Page
from console.gui.pages.kill_switch.cards import PathCard, PressTable, SwitchHead
from console.gui.pages.kill_switch.ladder import Ladder, titled
from console.gui.pages.kill_switch.lists import HOSTS, RECEIPTS, confirmed_after, hosts_note
from console.gui.pages.kill_switch.passphrase import PassphraseDialog
from console.gui.pages.kill_switch.rearm import RearmDialog
from console.gui.pages.kill_switch.rotation import RotationDialog, card_fact
from console.gui.pages.kill_switch.words import result_words
from console.gui.theme import fonts
from console.gui.theme.tokens import NARROW, ROW
from console.gui.widgets.buttons import Button
from console.gui.widgets.facts import Card
from console.gui.widgets.rows import ManyRowView, RowView
from console.gui.widgets.text import Text
from console.gui.widgets.words import day_clock, plural

_SHOWN = 6
ROTATION_S = 10.0
"""How often the secrets card asks how the last rotation ended."""
_RUNGS = tuple(f"switch.{action}" for action in ACTIONS)
_PASSPHRASE = {
    "not_set": "no passphrase is set for rearm (O sets one): the typed id of the kill is enough",
    "broken": "the passphrase for rearm cannot be checked: its owner resets it at a terminal",
}


class KillSwitchPage(Page):
    """Shows and asks; the kill itself has only the panic plate."""

    spec = declared.KILL_SWITCH

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self._rotation: RotationView | None = None
        self._rotation_asked = 0.0
        self.head = SwitchHead(self)
        self.rearm = Button("Rearm…", "lock", "danger", keys="R", parent=self)
        self.rearm.clicked.connect(lambda: self.do("switch.rearm"))
        self.cards = {name: PathCard(name, self) for name in ("local", "engine", "remote", "secrets")}
        self.press = PressTable(self)
        self.receipt_view = listing("Earlier kills", RECEIPTS, lambda row: str(row.kill_id), self, ManyRowView)
        self.host_view = listing("Other hosts", HOSTS, lambda row: str(row.host), self, ManyRowView)
        self.ladder = Ladder(desk, self)
        self._build()
        self.receipt_view.opened.connect(lambda _row: self.do("switch.receipt"))

    def _build(self) -> None:
        self._paths, self._middle = QGridLayout(), QGridLayout()
        for grid in (self._paths, self._middle):
            grid.setSpacing(12)
        self._mode = Text("", 12, fonts.REGULAR, "warn", wrap=True, mark="triangle")
        top = row((self.head, 1), self.rearm, spacing=-1)
        self._scroll = scrolled(self, top, self._paths, self._mode, self._middle, margins=(16, 14, 16, 12), spacing=12)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self._scroll.setAccessibleName("The whole page: the arrows scroll it")
        column(self._scroll, on=self)
        self._parts = [self._press_card(), self.ladder, self._list_card("Last receipts", self.receipt_view), self._hosts_card()]
        self._arrange(wide=True)

    def _press_card(self) -> Card:
        card = Card(parent=self)
        self._press_total = Text("", 12, fonts.REGULAR, "text2", right=True)
        self._press_then = Text("", 12, fonts.REGULAR, "text2")
        title = titled("What a panic will do now", self._press_total)
        fill(card.column, title, 6, self.press, 6, self._press_then, STRETCH)
        return card

    def _list_card(self, title: str, view: RowView) -> Card:
        card = Card(parent=self)
        card.column.setContentsMargins(1, 10, 1, 6)
        line = titled(title, Text("", 12))
        line.setContentsMargins(14, 0, 14, 0)
        view.setFixedHeight(ROW * (_SHOWN + 1) + 2)
        view.lie_on("bg2")
        fill(card.column, line, 4, view)
        return card

    def _hosts_card(self) -> Card:
        card = self._list_card("Hosts", self.host_view)
        self._no_hosts = Text("Not read yet.", 12, fonts.REGULAR, "text2", wrap=True)
        fill(card.column, row(self._no_hosts, margins=(14, 0, 14, 0), spacing=-1), STRETCH)
        return card

    def _arrange(self, *, wide: bool) -> None:
        across = 4 if wide else 2
        for number, card in enumerate(self.cards.values()):
            self._paths.addWidget(card, number // across, number % across)
        for number, part in enumerate(self._parts):
            self._middle.addWidget(part, number // 2 if wide else number, number % 2 if wide else 0)

    # --- what the window tells -----------------------------------------------------------------------------------

    def on_show(self, argument: str = "") -> None:
        self.on_models()
        self._read_rotation()
        self.receipt_view.setFocus()
        self._scroll.verticalScrollBar().setValue(0)

    def _read_rotation(self) -> None:
        self._rotation_asked = self.desk.clock()
        asked = self.desk.requests.ask(ep.ROTATION).while_alive(self)
        asked.then(self._rotation_came).failed(lambda _error: self._rotation_came(None))

    def _rotation_came(self, view: RotationView | None) -> None:
        self._rotation = view
        self.on_models()

    def on_models(self) -> None:
        switch, now = self.desk.switch, self.desk.clock()
        view = switch.view
        self._show_head(switch, now)
        self.rearm.setVisible(switch.is_killed)
        self.rearm.allow(self.why_not("switch.rearm"))
        self.ladder.allow()
        note = (view.mode_note if view else "") or (switch.status.mode_note if switch.status else "")
        doubts = switch.status.armed.why if switch.status and switch.status.armed else []
        note = listed([*doubts, note, _PASSPHRASE.get(view.passphrase if view else "", "")])
        self._mode.setText(note)
        self._mode.setVisible(bool(note))
        if view is None:
            return
        said_at = switch.tests.at if switch.tests else now
        for path in switch.paths(now):
            if path.name in self.cards:
                self.cards[path.name].say(self._with_rotation(path, now), now, said_at, old=switch.is_old(now))
        self.press.say(view.press)
        self._press_total.setText(self.press.total())
        left = sum(row.get("left_alone", 0) for row in view.press.values())
        unproven = sum(view.press.get(level, {}).get("agents", 0) for level in ("observed", "best_effort")) - left
        then = ["New agents stay blocked until you rearm, also after a restart"]
        then += [f"{plural(unproven, 'agent')} best effort at most"] if unproven else []
        then += [f"{plural(left, 'agent')} only observed: a panic does not stop {'it' if left == 1 else 'them'}"] if left else []
        self._press_then.setText("; ".join(then))
        if self.receipt_view.order.given != list(view.receipts):
            self.receipt_view.show_rows(list(view.receipts))
        doubtful = sorted(view.hosts, key=lambda host: host.acknowledged and host.exit_code == 0)
        self.host_view.show_rows(list(doubtful))
        self._no_hosts.say(*hosts_note(view))
        self._no_hosts.setVisible(not view.hosts)
        self.host_view.setVisible(bool(view.hosts))

    def _with_rotation(self, path: PathView, now: float) -> PathView:
        """The secrets card also says how the last rotation ended."""
        if path.name != "secrets" or self._rotation is None or path.state == "not_configured":
            return path
        return path.replaced(facts=[card_fact(self._rotation, now), *path.facts])

    def _show_head(self, switch: Switch, now: float) -> None:
        light, words = switch.light(now)
        view = switch.view
        word = {"armed": "Ready", "killing": "Killing", "killed": "Everything stopped", "in_doubt": "Not ready"}.get(light, "Not known")
        line = words
        if light == "armed":
            worst = f", in {view.worst_s:.1f} s at worst" if view and view.worst_s is not None else ""
            line = f"Every agent this host controls can be stopped now{worst}"
        elif light == "killed" and view is not None:
            line = f"By {person(view.by) or 'an unknown person'}: “{view.reason}”. Nothing can start until you rearm."
        last = view.receipts[0] if view and view.receipts else None
        fine = "Last kill: not known" if view is None else "No kill was ever made here"
        if last is not None:
            took = f", {confirmed_after(last)}" if last.proven_ms is not None else ""
            fine = f"Last kill: {day_clock(last.pressed_at)}, {result_words(last)[0]}{took}"
        hosts = view.hosts if view else []
        silent = sum(1 for host in hosts if not host.acknowledged)
        self.head.say(light, word, line, fine, f"{silent} of {plural(len(hosts), 'host')} unknown" if silent else "")

    def on_tick(self, now: float) -> None:
        if abs(now - self._rotation_asked) > ROTATION_S:
            self._read_rotation()
        self.on_models()

    def badge(self) -> Badge | None:
        switch = self.desk.switch
        if switch.is_killed:
            return Badge("blocked", "danger", "alert")
        state, _ = switch.light(self.desk.clock())
        return Badge("check", "warn", "warning") if state in ("in_doubt", "unknown") else None

    def is_ready(self) -> bool:
        return self.desk.switch.view is not None

    # --- actions -----------------------------------------------------------------------------------------------------

    def why_not(self, action_id: str) -> str:
        switch = self.desk.switch
        if action_id == "switch.rearm":
            return "" if switch.is_killed else "Nothing is blocked."
        if action_id in _RUNGS:
            return self.ladder.why_not(action_id)
        if action_id == "switch.receipt" and self.receipt_view.current() is None:
            return "No receipt is selected."
        return ""

    def do(self, action_id: str) -> None:
        if action_id == "switch.rearm":
            RearmDialog(self.desk, self._latched_id(), self.window()).open()
        elif action_id == "switch.passphrase":
            PassphraseDialog(self.desk, self.window()).open()
        elif action_id == "switch.rotation":
            dialog = RotationDialog(self.desk, self.window())
            dialog.finished.connect(lambda _result: self._read_rotation())
            dialog.open()
        elif action_id == "switch.receipt":
            self.desk.goto("receipt", self.receipt_view.current().kill_id)
        elif action_id in _RUNGS:
            self.ladder.do(action_id)

    def _latched_id(self) -> str:
        switch = self.desk.switch
        return (switch.view.kill_id if switch.view else "") or switch.guard.kill_id

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange(wide=self.window().width() >= NARROW)
