"""Shown while no agent has ever been seen; the first sighting replaces it without a click."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from console.gui.pages.fleet.hooks import HookCard
from console.gui.pages.fleet.sources_table import SourceTable, tally
from console.gui.pages.interface import Desk
from console.gui.theme import fonts
from console.gui.widgets.buttons import Button
from console.gui.widgets.facts import Card, Fact, Facts
from console.gui.widgets.text import Text

PATH_TITLES = {"local": "Local kill", "engine": "Docker engine", "remote": "Remote file", "secrets": "Secrets"}
PATH_STATES = {
    "proven": ("Proven", "check", "ok"),
    "in_doubt": ("In doubt", "triangle", "warn"),
    "not_configured": ("Not configured", "ring", "text2"),
    "unavailable": ("Unavailable", "triangle", "warn"),
}


FIRST_KEYS = (("Enter", "new agent…"), ("D", "demo"), ("H", "install hook"), ("K", "kill switch"))
"""What the status bar shows before the first agent."""
_DEMO, _HOOK = "watchfloor demo", "watchfloor install-hook claude-code"


class FirstRun(QWidget):
    """``asked`` carries an action id of the fleet page."""

    asked = Signal(str)

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._desk = desk
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        scroll = QScrollArea(self)
        scroll.setWidgetResizable(True)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(scroll)
        inner = QWidget(scroll)
        scroll.setWidget(inner)
        row = QHBoxLayout(inner)
        row.setContentsMargins(40, 34, 40, 20)
        row.setSpacing(24)
        left = QVBoxLayout()
        left.setSpacing(0)
        right = QVBoxLayout()
        right.setSpacing(16)
        row.addLayout(left, 68)
        row.addLayout(right, 32)
        self._build_left(left)
        self._build_right(right)

    def _build_left(self, column: QVBoxLayout) -> None:
        self._title = Text("", 22, fonts.MEDIUM)
        self._line = Text("", 13, fonts.REGULAR, "text2")
        column.addWidget(self._title)
        column.addSpacing(6)
        column.addWidget(self._line)
        column.addSpacing(16)
        card = Card("accent")
        inside = QHBoxLayout()
        words = QVBoxLayout()
        words.addWidget(Text("Start your first agent, held and capped", 15, fonts.SEMIBOLD))
        words.addWidget(Text("Its own workspace and namespaces, a cost limit, no way to loosen it by itself", 12, fonts.REGULAR, "text2"))
        words.addSpacing(4)
        words.addWidget(Text("watchfloor run --agent claude-code -- PROMPT", 12, mono=True))
        inside.addLayout(words, 1)
        self.run = Button("New agent…", "play", "primary", keys="Enter")
        self.run.clicked.connect(lambda: self.asked.emit("fleet.run"))
        inside.addWidget(self.run)
        card.column.addLayout(inside)
        column.addWidget(card)
        column.addSpacing(22)
        head = QHBoxLayout()
        head.addWidget(Text("Where it looks", 13, fonts.SEMIBOLD))
        self._tally = Text("", 12, fonts.REGULAR, "text2", right=True)
        head.addWidget(self._tally, 1)
        column.addLayout(head)
        column.addSpacing(8)
        self.sources = SourceTable()
        box = Card()
        box.column.setContentsMargins(1, 2, 1, 2)
        box.column.addWidget(self.sources)
        column.addWidget(box)
        column.addSpacing(10)
        live = "A tick is a live look, repeated at least every few seconds; a file or socket that appears later is found without a restart."
        column.addWidget(Text(live, 12, fonts.REGULAR, "text2", wrap=True))
        column.addSpacing(10)
        demo = QHBoxLayout()
        demo.setSpacing(10)
        demo.addWidget(Text("Nothing at hand?", 13, fonts.REGULAR, "text2"))
        copy = Button("watchfloor demo", "copy", keys="D", small=True)
        copy.setToolTip("Copies the command")
        copy.clicked.connect(self.copy_demo)
        demo.addWidget(copy)
        demo.addWidget(Text("starts harmless agents to watch, cap, stop and roll back", 13, fonts.REGULAR, "text2"))
        demo.addStretch(1)
        column.addLayout(demo)
        column.addStretch(1)

    def _build_right(self, column: QVBoxLayout) -> None:
        card = Card()
        self._light = Text("Not known yet", 17, fonts.SEMIBOLD, mark="triangle")
        self._worst = Text("", 12, fonts.REGULAR, "text2")
        self._paths = Facts(34, ruled=True)
        card.column.addWidget(self._light)
        card.column.addSpacing(4)
        card.column.addWidget(self._worst)
        card.column.addSpacing(10)
        card.column.addWidget(self._paths)
        column.addWidget(card)
        self._mode = Card("warn")
        self._mode_text = Text("", 12, fonts.REGULAR, "warn", wrap=True, mark="triangle")
        self._mode.column.addWidget(self._mode_text)
        column.addWidget(self._mode)
        engines = Card()
        engines.column.addWidget(Text("What works here", 13, fonts.SEMIBOLD))
        engines.column.addSpacing(6)
        self._engines = Facts(28, ruled=True)
        engines.column.addWidget(self._engines)
        column.addWidget(engines)
        self.hooks = HookCard(self._desk.requests, self._desk.clock)
        column.addWidget(self.hooks)
        column.addStretch(1)

    def copy_demo(self) -> None:
        """The command that starts the demo, for a terminal."""
        self._copy(_DEMO, "It starts harmless agents in a folder of its own, and ends clean.")

    def copy_hook(self) -> None:
        """The command that installs the hook, for a terminal: it is the person's own settings that it changes."""
        self._copy(_HOOK, "It shows the diff first; --undo takes it out again. For Codex: install-hook codex.")

    def _copy(self, command: str, what: str) -> None:
        QGuiApplication.clipboard().setText(command)
        self._desk.notices.say("info", f"Copied, for a terminal: {command}. {what}")

    def on_models(self) -> None:
        """Reads the models again."""
        switch = self._desk.switch
        state, words = switch.light(self._desk.clock())
        if state == "unknown":
            self._title.say("Nothing is known: no supervisor answers.", "warn", "triangle")
            self._line.say("Agents may run all the same. Start one with: watchfloor supervisor; this page fills by itself.")
        else:
            self._title.say("Watching. No agents yet.", "text", "")
            self._line.say(
                "Nothing needs setting up. An agent shows here within about a second of its start, wherever it was started from."
            )
        self.run.allow(words if state == "unknown" else "Killed: nothing starts until rearm." if switch.is_killed else "")
        self._light.say(words, "text" if state == "armed" else "warn", "dot" if state == "armed" else "triangle")
        if state == "armed" and switch.view is not None and switch.view.worst_s is not None:
            self._worst.setText(f"A press would work now: {switch.view.worst_s:.1f} s at worst")
        else:
            self._worst.setText("")
        paths = switch.view.paths if switch.view else []
        lines = []
        for path in paths:
            word, shape, role = PATH_STATES[path.state]
            lines.append(Fact(PATH_TITLES.get(path.name, path.name), word, shape, role, right_role=role))
        self._paths.say(lines)
        note = (switch.view.mode_note if switch.view else "") or (switch.status.mode_note if switch.status else "")
        self._mode_text.setText(note)
        self._mode.setVisible(bool(note))
        if switch.status is not None:
            self.sources.say(switch.status.sources, self._desk.clock())
            self._tally.setText(tally(switch.status.sources))
            engines = switch.status.engines.items()
            self._engines.say([Fact(n, w or "works", "ring" if w else "check", right_role="text2" if w else "text") for n, w in engines])

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.asked.emit("fleet.run")
        else:
            super().keyPressEvent(event)
