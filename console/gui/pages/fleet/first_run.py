"""Shown while no agent has ever been seen; the first sighting replaces it without a click."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QColor, QGuiApplication, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from console.api.messages import SourceView
from console.gui.pages.interface import Desk
from console.gui.theme import fonts
from console.gui.theme.icons import icon_pixmap
from console.gui.theme.tokens import ink
from console.gui.widgets.buttons import Button
from console.gui.widgets.facts import Card, Fact, Facts
from console.gui.widgets.marks import draw_mark, draw_text
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.text import Text

_SOURCES = {
    "watchfloor": ("Watchfloor run", "terminal", "Sees and stops, proven"),
    "claude_code": ("Claude Code", "terminal", "Sees sessions and cost"),
    "codex": ("Codex", "terminal", "Sees sessions and cost"),
    "docker": ("Docker", "box", "Sees and stops containers"),
    "processes": ("Processes", "fleet", "Sees; best effort"),
    "otlp": ("OTLP receiver", "network", "Sees tokens and cost"),
}
PATH_TITLES = {"local": "Local kill", "engine": "Docker engine", "remote": "Remote file", "secrets": "Secrets"}
PATH_STATES = {
    "proven": ("Proven", "check", "ok"),
    "in_doubt": ("In doubt", "triangle", "warn"),
    "not_configured": ("Not configured", "ring", "text2"),
    "unavailable": ("Unavailable", "triangle", "warn"),
}


class SourceTable(QWidget):
    """Two-line rows of 50: where each source looks, whether it can, what it sees."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._sources: list[SourceView] = []
        self.setFixedHeight(60)

    def say(self, sources: list[SourceView]) -> None:
        if sources != self._sources:
            self._sources = list(sources)
            self.setFixedHeight(50 * max(1, len(sources)) + 30)
            self.setAccessibleName("; ".join(f"{s.source}: {'watching' if s.available else 'not found'}" for s in sources))
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        left, middle, right = 38.0, self.width() * 0.2 + 40, self.width() * 0.7
        for x, words in ((14.0, "Source"), (middle, "Where"), (right, "Now")):
            draw_text(painter, QRectF(x, 0, 120, 28), words, fonts.ui(11, fonts.MEDIUM), colours.text2)
        for number, source in enumerate(self._sources):
            y = 30.0 + 50 * number
            painter.fillRect(QRectF(0, y, self.width(), 1), QColor(colours.line))
            title, icon, sees = _SOURCES.get(source.source, (safe_text(source.source, 40), "eye", ""))
            painter.drawPixmap(14, int(y + 17), icon_pixmap(icon, colours.text2, 16))
            draw_text(painter, QRectF(left, y, middle - left - 8, 50), title, fonts.ui(13, fonts.MEDIUM), colours.text)
            where = QRectF(middle, y + 7, right - middle - 12, 18)
            draw_text(painter, where, safe_text(source.reason), fonts.mono(11), colours.text if source.available else colours.text2)
            draw_text(painter, where.translated(0, 18), sees, fonts.ui(11), colours.text2)
            shape, role = ("check", "ok") if source.available else ("ring", "text2")
            draw_mark(painter, shape, QRectF(right, y + 11, 10, 10), getattr(colours, role))
            now = QRectF(right + 20, y + 7, self.width() - right - 26, 18)
            draw_text(painter, now, "Watching" if source.available else "Not found", fonts.ui(12, fonts.MEDIUM), getattr(colours, role))
            words = f"{source.sees} seen now" if source.available else "looks again"
            draw_text(painter, now.translated(0, 18), words, fonts.ui(11), colours.text2)
        if not self._sources:
            draw_text(painter, QRectF(14, 30, self.width() - 20, 28), "No supervisor has answered yet.", fonts.ui(12), colours.text2)
        painter.end()


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
        words.addWidget(Text("watchfloor run -- python3 agent.py", 12, mono=True))
        inside.addLayout(words, 1)
        self.run = Button("Run an agent…", "play", "primary", keys="Enter")
        self.run.clicked.connect(lambda: self.asked.emit("fleet.run"))
        inside.addWidget(self.run)
        card.column.addLayout(inside)
        column.addWidget(card)
        column.addSpacing(22)
        column.addWidget(Text("Where it looks", 13, fonts.SEMIBOLD))
        column.addSpacing(8)
        self.sources = SourceTable()
        box = Card()
        box.column.setContentsMargins(1, 2, 1, 2)
        box.column.addWidget(self.sources)
        column.addWidget(box)
        column.addSpacing(14)
        demo = QHBoxLayout()
        demo.setSpacing(10)
        demo.addWidget(Text("Nothing at hand?", 13, fonts.REGULAR, "text2"))
        copy = Button("watchfloor demo", "copy", small=True)
        copy.setToolTip("Copies the command")
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText("watchfloor demo"))
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
        column.addStretch(1)

    def on_models(self) -> None:
        """Reads the models again."""
        switch = self._desk.switch
        state, words = switch.light(self._desk.clock())
        if state == "unknown":
            self._title.say("Nothing is known: no supervisor answers.", "warn", "triangle")
            self._line.say("Agents may run all the same. Start one with: watchfloor supervisor; this page fills by itself.")
        else:
            self._title.say("Watching. No agents yet.", "text", "")
            self._line.say("An agent shows here within a second of its start, wherever it was started from.")
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
            self.sources.say(switch.status.sources)
            engines = switch.status.engines.items()
            self._engines.say([Fact(n, w or "works", "ring" if w else "check", right_role="text2" if w else "text") for n, w in engines])

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.asked.emit("fleet.run")
        else:
            super().keyPressEvent(event)
