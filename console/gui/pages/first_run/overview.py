"""Shown while no agent has ever been seen; the first sighting replaces it without a click."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication, QHideEvent, QKeyEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QBoxLayout, QWidget

from console.api import endpoints as ep
from console.api.agents.first_run import FirstRunView
from console.api.messages import SourceView
from console.domain.errors import ConsoleError
from console.gui.kit.layout import STRETCH, column, fill, row, scrolled
from console.gui.pages.first_run.cards import ArmedCard, DefaultsCard, EnginesCard, ModeCard
from console.gui.pages.first_run.hook import HookDialog
from console.gui.pages.first_run.setup import SetupDialog
from console.gui.pages.first_run.sources import SourceTable, tally
from console.gui.pages.interface import Desk
from console.gui.theme import fonts
from console.gui.timers import every
from console.gui.widgets.buttons import Button
from console.gui.widgets.facts import Card
from console.gui.widgets.text import Text
from console.wording.agent_kinds import EXAMPLE, PLACES, STARTABLE

FIRST_KEYS = (("Enter", "new agent…"), ("D", "copy demo"), ("H", "install hook…"), ("U", "set up…"), ("K", "kill switch"))
"""What the status bar shows before the first agent."""
READ_MS = 3000
STACKED = 1000
"""Narrower than this the cards stand below the table."""
UNREAD = ("agent_sockets", *(f"hook_{program}" for program in PLACES), "remote_file")
_DEMO = "watchfloor demo"
_WHY_TERMINAL = "starts harmless agents to watch, stop and roll back: in a terminal, where Ctrl C ends it all"


def unread(why: str) -> FirstRunView:
    """The same rows where their state is not known."""
    return FirstRunView(looks=[SourceView(source=name, available=False, reason=why, state="unknown") for name in UNREAD])


class FirstRun(QWidget):
    """``asked`` carries an action id of the fleet page."""

    asked = Signal(str)

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._desk = desk
        self._told = unread("not asked yet")
        self._why = "not asked yet"
        """Why ``_told`` is not known, or empty."""
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._halves = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._halves.setContentsMargins(40, 26, 40, 14)
        self._halves.setSpacing(24)
        fill(self._halves, (self._build_left(), 68), (self._build_right(), 32))
        column(scrolled(self, self._halves, fills=True), on=self)
        self._poll = every(self, READ_MS, self.read)

    def _build_left(self) -> QBoxLayout:
        self._title = Text("", 22, fonts.MEDIUM)
        self._line = Text("", 13, fonts.REGULAR, "text2", wrap=True)
        start = self._start_card()
        self._tally = Text("", 12, fonts.REGULAR, "text2", right=True)
        head = row(Text("Where it looks", 13, fonts.SEMIBOLD), (self._tally, 1), spacing=-1)
        self.sources = SourceTable()
        self.sources.hook_asked.connect(self.show_hook)
        box = Card()
        box.column.setContentsMargins(1, 2, 1, 2)
        box.column.addWidget(self.sources)
        live = "A tick is a live look, repeated at least every few seconds; a file or socket that appears later is found without a restart."
        looks = (head, 8, box, 10, Text(live, 12, fonts.REGULAR, "text2", wrap=True))
        self.setup = Button("Set up, in four steps…", "check", keys="U", small=True)
        self.setup.clicked.connect(self.show_setup)
        setup = _offer(self.setup, "shows what was found, and asks for rules, a limit for the day and a test of the kill switch")
        self.hook = Button("Show what the hook would change…", "key", keys="H", small=True)
        self.hook.clicked.connect(lambda: self.show_hook())
        hook = _offer(self.hook, f"has each tool call of your own {' or '.join(STARTABLE.values())} checked before it happens")
        self.demo = Button(_DEMO, "copy", keys="D", small=True)
        self.demo.setToolTip("Copies the command")
        self.demo.setAccessibleDescription("Copies the command, for a terminal")
        self.demo.clicked.connect(self.copy_demo)
        demo = _offer(self.demo, _WHY_TERMINAL)
        return column(self._title, 6, self._line, 16, start, 18, *looks, 10, setup, 8, hook, 8, demo, STRETCH)

    def _start_card(self) -> Card:
        words = column(
            Text("Start your first agent, in a sandbox and with limits", 15, fonts.SEMIBOLD),
            Text("Its own workspace and namespaces, a cost limit, no way to loosen it by itself", 12, fonts.REGULAR, "text2"),
            4,
            Text(f"watchfloor run --agent {EXAMPLE} -- PROMPT", 12, mono=True),
            spacing=-1,
        )
        self.run = Button("New agent…", "play", "primary", keys="Enter")
        self.run.clicked.connect(lambda: self.asked.emit("fleet.run"))
        card = Card("accent")
        card.column.addLayout(row((words, 1), self.run, spacing=-1))
        return card

    def _build_right(self) -> QBoxLayout:
        self.armed, self.mode, self.defaults, self.engines = ArmedCard(), ModeCard(), DefaultsCard(), EnginesCard()
        self._cards = QBoxLayout(QBoxLayout.Direction.TopToBottom)
        self._cards.setSpacing(16)
        for cards in ((self.armed, self.mode), (self.defaults, self.engines)):
            self._cards.addLayout(column(*cards, STRETCH, spacing=16), 1)
        return self._cards

    def read(self) -> None:
        """Asks once how the rest of the rows are, and what holds."""
        self._desk.requests.ask(ep.FIRST_RUN).while_alive(self).then(self._came).failed(self._not_known)

    def _came(self, view: FirstRunView) -> None:
        self._told, self._why = view, ""
        self.on_models()

    def _not_known(self, error: ConsoleError) -> None:
        self._told, self._why = unread(error.what), error.what
        self.on_models()

    def copy_demo(self) -> None:
        """The command that starts the demo, for a terminal: it holds the terminal until it has cleaned up."""
        QGuiApplication.clipboard().setText(_DEMO)
        what = "It starts harmless agents in a folder of its own, and ends clean."
        self._desk.notices.say("info", f"Copied, for a terminal: {_DEMO}. {what}")

    def show_setup(self) -> None:
        """The four steps; one dialog at a time."""
        if (open_one := self.window().findChild(SetupDialog)) is not None and open_one.is_open:
            open_one.raise_()
            return
        SetupDialog(self._desk, self.window()).show()

    def show_hook(self, program: str = EXAMPLE) -> None:
        """What installing the hook would change: it is the person's own settings that it changes."""
        HookDialog(self._desk, program, self.window()).open()

    def on_models(self) -> None:
        """Refresh; unknown items are shown unchecked."""
        switch, now = self._desk.switch, self._desk.clock()
        state, words = switch.light(now)
        known = state != "unknown"
        if known:
            self._title.say("Watching. No agents yet.", "text", "")
            self._line.say(
                "Nothing needs setting up. An agent shows here within about a second of its start, wherever it was started from."
            )
        elif switch.preparation.step and switch.heard_at is None:
            self._title.say("The demo is being prepared.", "text", "")
            self._line.say(f"This takes some seconds. Now: {switch.preparation.step}")
        else:
            self._title.say("Watchfloor is not running. Agents may still be.", "warn", "triangle")
            self._line.say("Start it with: watchfloor supervisor. Then this page fills automatically.")
        self.run.allow(words if not known else "Killed: nothing starts until you rearm." if switch.is_killed else "")
        rows = [*(switch.status.sources if switch.status else []), *self._told.looks]
        self.sources.say(rows, now, known=known)
        self._tally.setText(tally(rows, known=known))
        self.armed.say(switch, state, words, now)
        self.mode.say(switch)
        self.defaults.say(self._told.defaults, switch.status, now, self._why if known else words)
        self.engines.say(switch.status, known=known)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.asked.emit("fleet.run")
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        stacked = self.width() < STACKED
        across, down = QBoxLayout.Direction.LeftToRight, QBoxLayout.Direction.TopToBottom
        self._halves.setDirection(down if stacked else across)
        self._halves.setStretch(0, 0 if stacked else 68)
        self._halves.setStretch(1, 1 if stacked else 32)
        self._halves.setContentsMargins(*((24, 18, 24, 14) if stacked else (40, 26, 40, 14)))
        self._cards.setDirection(across if stacked else down)
        self._cards.setStretch(0, 1 if stacked else 0)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.read()
        self._poll.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._poll.stop()


def _offer(button: Button, words: str) -> QBoxLayout:
    """A button, and beside it what it is for."""
    made = row(spacing=10)
    made.addWidget(button, 0, Qt.AlignmentFlag.AlignTop)
    made.addWidget(Text(words, 12, fonts.REGULAR, "text2", wrap=True), 1, Qt.AlignmentFlag.AlignVCenter)
    return made
