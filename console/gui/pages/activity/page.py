"""The activity page: whose it is, its feed, one entry whole. Reached from an agent in the fleet; one can talk to started programs."""

from __future__ import annotations

from PySide6.QtGui import QColor, QGuiApplication, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from console.api import endpoints as ep
from console.api.agents.activity import ActivityEntryView
from console.api.messages import Delta, OutputView
from console.domain.errors import ConsoleError
from console.gui.kit.layout import STRETCH, column, row
from console.gui.pages import declared
from console.gui.pages.activity.book import Item
from console.gui.pages.activity.detail import EntryPane, whole_text
from console.gui.pages.activity.feed import Feed
from console.gui.pages.activity.talk import TalkBar
from console.gui.pages.interface import Desk
from console.gui.pages.list_page import ListPage
from console.gui.requests import Requests
from console.gui.theme import fonts
from console.gui.theme.tokens import ink
from console.gui.timers import every
from console.gui.widgets.buttons import Button
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.reading import PlainView
from console.gui.widgets.text import Text
from console.gui.widgets.words import count, usd

HEADER = 58
_RETRY_S = 3.0
_GONE = "Kept here: the program's own file is gone."
"""Nothing is wrong with that."""
_ON_AN_ENTRY = ("activity.agent", "activity.audit", "activity.rollback", "activity.copy", "activity.open")


TAIL = 48_000
"""Bytes shown, the last there are; one answer of the supervisor holds more."""
_LOOK_MS = 1000


class OutputDialog(Dialog):
    """Reads on once a second until it is closed."""

    def __init__(self, requests: Requests, agent_id: str, name: str, size: int, parent: QWidget) -> None:
        super().__init__(f"Output of {name}", "Close", "primary", parent, width=760)
        self._requests, self._agent_id = requests, agent_id
        self._offset, self._text = max(0, size - TAIL), ""
        self._asked = False
        self.about = Text("Reading…", 12, fonts.REGULAR, "text2")
        self.view = PlainView("Output", parent=self)
        self.view.setMinimumHeight(420)
        self.body.addWidget(self.about)
        self.body.addWidget(self.view)
        self.cancel.hide()
        self.main.clicked.connect(self.accept)
        self._look = every(self, _LOOK_MS, self._read)
        self._look.start()
        self._read()

    def _read(self) -> None:
        if not self._asked:
            self._asked = True
            self._requests.ask(ep.OUTPUT, self._agent_id, offset=self._offset).while_alive(self).then(self._came).failed(self._failed)

    def _came(self, view: OutputView) -> None:
        self._asked = False
        if view.text:
            self._text = (self._text + view.text)[-TAIL:]
            self._offset = view.offset
            bar = self.view.verticalScrollBar()
            place, at_end = bar.value(), bar.value() >= bar.maximum()
            self.view.setPlainText(whole_text(self._text))
            bar.setValue(bar.maximum() if at_end else place)
        shown = len(self._text)
        before = f"the last {shown:,} of {view.total:,} bytes" if view.total > shown else f"{view.total:,} bytes"
        self.about.setText(f"{before} · {'it runs' if view.live else view.state.replace('_', ' ')}")

    def _failed(self, error: ConsoleError) -> None:
        self._asked = False
        self.about.setText(str(error))


class ActivityPageView(ListPage):
    """Reads everything; what a person says to a started program is all that it sends."""

    spec = declared.ACTIVITY

    pane: EntryPane

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self.feed = Feed(desk.requests, self._failed, self)
        self.view = self.feed.view
        self._retry_at = 0.0
        self.talk = TalkBar(desk, self)
        self.talk.field.left.connect(self.view.setFocus)
        self.lay(column((self.feed, 1), self.talk), EntryPane(self), 388, self._build_head())
        self.feed.chosen.connect(lambda _item: self._chose())
        self.feed.changed.connect(self._chose)
        self.view.opened.connect(lambda _item: self.turn_pane())
        self.pane.whole_asked.connect(self._read_whole)
        self.handlers = {
            "activity.newest": self.feed.to_newest,
            "activity.filter": self.feed.search.setFocus,
            "activity.back": lambda: self.desk.goto("fleet", self.feed.agent_id),
            "activity.agent": lambda: self.desk.goto("fleet", self._child_of(self.current())),
            "activity.open": lambda: self.desk.goto("activity", self._child_of(self.current())),
            "activity.audit": lambda: self._go_behind("audit"),
            "activity.rollback": lambda: self._go_behind("rollback"),
            "activity.output": self._show_output,
            "activity.say": self.talk.field.setFocus,
            "activity.interrupt": self.talk.interrupt,
            "activity.copy": self._copy,
            "activity.detail": self.turn_pane,
        }

    def _build_head(self) -> QWidget:
        self.head = QWidget(self)
        self.head.setFixedHeight(HEADER)
        self.back = Button("Fleet", small=True, parent=self.head)
        self.back.clicked.connect(lambda: self.do("activity.back"))
        self.name = Text("", 17, fonts.SEMIBOLD)
        self.about = Text("", 12, role="text2")
        self.words = Text("", 12, role="text2", mark="ring")
        names = column(self.name, self.about, margins=(0, 8, 0, 6), spacing=1)
        row(self.back, (names, 3), STRETCH, self.words, margins=(16, 0, 16, 0), spacing=12, on=self.head)
        return self.head

    # --- what the window tells -----------------------------------------------------------------------------------

    def on_show(self, argument: str = "") -> None:
        wanted = argument or self.feed.agent_id or next(iter(self.desk.fleet.rows), "")
        if wanted != self.feed.agent_id:
            self.pane.item = None
            self.pane.hide()
        if wanted:
            self.feed.show_agent(wanted)
        self.on_models()
        self.talk.watch(on=True)
        self.view.setFocus()

    def on_hide(self) -> None:
        self.talk.watch(on=False)

    def on_models(self) -> None:
        if not self.feed.agent_id and self.desk.fleet.rows:
            self.feed.show_agent(next(iter(self.desk.fleet.rows)))
        self._show_head()
        if self.talk.agent_id != self.feed.agent_id:
            self.talk.show_agent(self.feed.agent_id)

    def on_tick(self, now: float) -> None:
        if self.feed.problem and now >= self._retry_at:
            self._retry_at = now + _RETRY_S
            self.feed.read()

    def handle(self, delta: Delta) -> None:
        if delta.kind != "activity":
            return
        agents = delta.data.get("agents")
        found = agents.get(self.feed.agent_id) if isinstance(agents, dict) else None
        if isinstance(found, list) and len(found) == 2 and all(isinstance(n, int) for n in found):
            self.feed.told(found[0], found[1])
        elif delta.data.get("more") is True:
            self.feed.told(self.feed.book.newest + 1, 1)  # too many changed to be named: perhaps this one

    def resync(self) -> None:
        if self.feed.loaded:
            self.feed.told(self.feed.book.newest + 1, 0)

    def is_ready(self) -> bool:
        return self.feed.loaded or not self.feed.agent_id or bool(self.feed.problem)

    # --- actions ---------------------------------------------------------------------------------------------------

    def why_not(self, action_id: str) -> str:
        item = self.current()
        if action_id in _ON_AN_ENTRY and item is None:
            return "No entry is selected."
        if action_id in ("activity.agent", "activity.open") and self._child_of(item) not in self.desk.fleet.rows:
            return "This entry started no agent that is in the fleet."
        if action_id == "activity.output" and not self._output_size():
            return "Nothing its program wrote is kept here: only of agents that Watchfloor started."
        if action_id == "activity.audit" and item is not None and not item.audit:
            return "No audit record is behind this entry: it is from the program's own file."
        if action_id == "activity.rollback" and item is not None and not item.rollback_id:
            return "Nothing of this entry can be restored: no record was written before it."
        if action_id in ("activity.say", "activity.interrupt"):
            return self.talk.why_not(action_id.removeprefix("activity."))
        return ""

    def current(self) -> Item | None:
        """The selected entry."""
        found: Item | None = self.view.current()
        return found

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.pane.plain())
        self.desk.notices.say("info", "Copied as it is shown: what was hidden in it is visible.")

    def _show_output(self) -> None:
        OutputDialog(self.desk.requests, self.feed.agent_id, self.name.text(), self._output_size(), self.window()).open()

    def _go_behind(self, page: str) -> None:
        """To the record that is behind the entry."""
        if (item := self.current()) is not None:
            self.desk.goto(page, f"#{item.audit}" if page == "audit" else item.rollback_id)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _output_size(self) -> int:
        page = self.feed.page
        return page.output_bytes if page is not None and page.agent_id == self.feed.agent_id else 0

    def _child_of(self, item: Item | None) -> str:
        return item.row.ref if item is not None and item.row.kind == "spawn" else ""

    def _failed(self, error: ConsoleError) -> None:
        self._retry_at = self.desk.clock() + _RETRY_S
        self._show_head()

    def _chose(self) -> None:
        item = self.current()
        if item is not None:
            self.pane.show_item(item)
        self.show_pane()
        self._show_head()

    def _read_whole(self, seq: int) -> None:
        asked = self.desk.requests.ask(ep.ACTIVITY_ENTRY, self.feed.agent_id, seq).while_alive(self)
        asked.then(self._whole_came).failed(self.desk.notices.fail)

    def _whole_came(self, view: ActivityEntryView) -> None:
        self.pane.show_whole(view.row)

    def _show_head(self) -> None:
        page, agent = self.feed.page, self.desk.fleet.rows.get(self.feed.agent_id)
        self.name.setText(agent.name if agent is not None else self.feed.agent_id or "No agent yet")
        about = []
        if agent is not None:
            view = agent.view
            about = [view.control_level, view.state.replace("_", " "), usd(view.cost_usd) if view.cost_usd else "", self.feed.agent_id]
        if size := self._output_size():
            about.append(f"output {count(size)} bytes")
        self.about.setText("  ·  ".join(part for part in about if part))
        said = []
        if page is not None and page.agent_id == self.feed.agent_id:
            said = [page.words] if page.words else []
            said += [f"{page.dropped:,} older entries were dropped: only so many are kept."] if page.dropped else []
        if self.feed.problem:
            said = ["Activity cannot be read; it is tried again."]
        is_odd = bool(self.feed.problem) or " ".join(said) not in ("", _GONE)
        self.words.say(" ".join(said), "warn" if is_odd else "text2", "triangle" if is_odd else "ring")
        self.words.setVisible(bool(said))

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        colours = ink()
        painter = QPainter(self)
        painter.fillRect(0, 0, self.width(), HEADER, QColor(colours.bg0))
        painter.fillRect(0, HEADER - 1, self.width(), 1, QColor(colours.line))
        painter.end()
