"""Where agents are looked for: each source with its places, what it finds now, and what it can see and stop in its own words."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QRectF
from PySide6.QtGui import QColor, QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QToolTip, QWidget

from console.api.messages import SourceView
from console.gui.theme import fonts
from console.gui.theme.icons import icon_pixmap
from console.gui.theme.tokens import ink
from console.gui.widgets.marks import draw_mark, draw_text
from console.gui.widgets.safe_text import safe_text, tooltip
from console.gui.widgets.words import age, plural

HEAD, ROW = 30, 50
_TITLES = {
    "watchfloor": ("Watchfloor run", "terminal"),
    "claude_code": ("Claude Code", "terminal"),
    "codex": ("Codex", "terminal"),
    "docker": ("Docker", "box"),
    "processes": ("Processes", "fleet"),
    "otlp": ("OTLP receiver", "network"),
}
_STATES = {
    "watching": ("Watching", "check", "ok"),
    "polling": ("Looking", "check", "ok"),
    "listening": ("Listening", "check", "ok"),
    "broken": ("Broken", "triangle", "warn"),
    "silent": ("Silent", "triangle", "warn"),
    "absent": ("Not available", "ring", "text2"),
}


def now_words(source: SourceView) -> tuple[str, str, str]:
    """(word, shape, colour) of a source. Only one that looks and can is a tick; a state nobody knows is doubt."""
    if source.state in ("broken", "silent") or (source.state and source.state not in _STATES):
        return _STATES.get(source.state, ("Not known", "triangle", "warn"))
    if not source.available:
        return ("Not available" if source.state == "absent" else "Not found"), "ring", "text2"
    return _STATES.get(source.state, _STATES["watching"])


def tally(sources: Sequence[SourceView]) -> str:
    """``5 watching · 2 not found · 1 needs you``."""
    shapes = [now_words(source)[1] for source in sources]
    parts = [(shapes.count("check"), "watching"), (shapes.count("ring"), "not found"), (shapes.count("triangle"), "in trouble")]
    return " · ".join(f"{number} {words}" for number, words in parts if number)


def whole_words(source: SourceView) -> str:
    """All of it, for a tooltip and a screen reader."""
    title = _TITLES.get(source.source, (source.source, ""))[0]
    places = ", ".join(source.looks_in)
    parts = (f"{title}: {now_words(source)[0]}.", source.reason, f"Looks in {places}." if places else "", source.watching)
    told = (f"Sees: {source.can_see}" if source.can_see else "", f"Stops: {source.can_stop}" if source.can_stop else "")
    return " ".join(part for part in (*parts, *told) if part)


class SourceTable(QWidget):
    """Two-line rows of 50."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._sources: list[SourceView] = []
        self._now = 0.0
        self.setFixedHeight(HEAD + ROW)

    def say(self, sources: list[SourceView], now: float) -> None:
        """``now`` in seconds since the epoch: how old each look is."""
        if sources == self._sources and int(now) == int(self._now):
            return
        if sources != self._sources:
            self._sources = list(sources)
            self.setFixedHeight(ROW * max(1, len(sources)) + HEAD)
            self.setAccessibleName(safe_text("; ".join(whole_words(s) for s in sources), 4000))
        self._now = now
        self.update()

    def _columns(self) -> tuple[float, float, float, float]:
        """Left edges: title, where, now, what it sees."""
        where = max(132.0, self.width() * 0.19)
        return 38.0, where, where + (self.width() - where) * 0.34, where + (self.width() - where) * 0.58

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            number = (event.pos().y() - HEAD) // ROW
            known = 0 <= number < len(self._sources)
            QToolTip.showText(event.globalPos(), tooltip(whole_words(self._sources[number])) if known else "", self)
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        _, where, at, sees = self._columns()
        for x, words in ((14.0, "Source"), (where, "Where"), (at, "Now"), (sees, "Sees and stops")):
            draw_text(painter, QRectF(x, 0, 120, HEAD - 2), words, fonts.ui(11, fonts.MEDIUM), colours.text2)
        for number, source in enumerate(self._sources):
            painter.fillRect(QRectF(0, HEAD + ROW * number, self.width(), 1), QColor(colours.line))
            self._paint_source(painter, source, HEAD + ROW * number)
        if not self._sources:
            draw_text(painter, QRectF(14, HEAD, self.width() - 20, 28), "No supervisor has answered yet.", fonts.ui(12), colours.text2)
        painter.end()

    def _paint_source(self, painter: QPainter, source: SourceView, y: float) -> None:
        colours = ink()
        left, where, at, sees = self._columns()
        title, icon = _TITLES.get(source.source, (safe_text(source.source, 40), "eye"))
        word, shape, role = now_words(source)
        quiet = shape == "ring"
        painter.drawPixmap(14, int(y + 17), icon_pixmap(icon, colours.text2, 16))
        face = fonts.ui(13, fonts.MEDIUM)
        draw_text(painter, QRectF(left, y, where - left - 8, ROW), title, face, colours.text2 if quiet else colours.text)
        places = ", ".join(source.looks_in)
        first, second = (places, source.watching or source.reason) if places else (source.reason, source.watching)
        self._two(painter, where, at - 14, y, (safe_text(first), safe_text(second)), mono=bool(places))
        draw_mark(painter, shape, QRectF(at, y + 12, 10, 10), getattr(colours, role))
        box = QRectF(at + 18, y + 8, sees - at - 26, 17)
        draw_text(painter, box, word, fonts.ui(12, fonts.MEDIUM), getattr(colours, role))
        draw_text(painter, box.translated(0, 17), self._fine(source, shape), fonts.ui(11), colours.text2)
        self._two(painter, sees, self.width() - 10, y, (safe_text(source.can_see), safe_text(source.can_stop)))

    def _fine(self, source: SourceView, shape: str) -> str:
        if shape == "triangle":
            return safe_text(source.reason)
        looked = f", {age(source.looked_at, self._now)}" if source.looked_at else ""
        return f"{plural(source.sees, 'agent')}{looked}" if source.available else "" if source.state == "absent" else "looks again"

    def _two(self, painter: QPainter, left: float, right: float, y: float, lines: tuple[str, str], *, mono: bool = False) -> None:
        colours = ink()
        box = QRectF(left, y + 8, right - left, 17)
        draw_text(painter, box, lines[0], fonts.mono(11) if mono else fonts.ui(12), colours.text)
        draw_text(painter, box.translated(0, 17), lines[1], fonts.ui(11), colours.text2)
