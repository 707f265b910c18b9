"""Where agents are looked for: each source with its places, what it finds now, and what it can see and stop in its own words."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QHelpEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QToolTip, QWidget

from console.api.messages import SourceView
from console.gui.theme import fonts
from console.gui.theme.icons import icon_pixmap
from console.gui.theme.tokens import ink
from console.gui.widgets.marks import draw_text
from console.gui.widgets.safe_text import safe_text, tooltip
from console.gui.widgets.words import age, plural
from console.panic.marks import draw_mark
from console.wording.agent_kinds import PLACES, TITLES

HEAD, ROW = 30, 46
_TITLES = {
    "watchfloor": ("Watchfloor run", "terminal"),
    **{program.replace("-", "_"): (title, "terminal") for program, title in TITLES.items()},
    "docker": ("Docker", "box"),
    "processes": ("Processes", "fleet"),
    "otlp": ("OTLP receiver", "network"),
    "agent_sockets": ("Agent sockets", "chain"),
    **{f"hook_{program}": (f"{TITLES[program].split()[0]} hook", "key") for program in PLACES},
    "remote_file": ("Remote kill file", "cloud"),
}
_STATES = {
    "watching": ("Watching", "check", "ok"),
    "polling": ("Looking", "check", "ok"),
    "listening": ("Listening", "check", "ok"),
    "broken": ("Broken", "triangle", "warn"),
    "silent": ("Silent", "triangle", "warn"),
    "absent": ("Not available", "ring", "text2"),
    "ready": ("Ready", "check", "ok"),
    "heard": ("Judging", "check", "ok"),
    "installed": ("Installed", "ring", "text2"),
    "not_installed": ("Not installed", "triangle", "warn"),
    "no_program": ("Not installed", "ring", "text2"),
    "skipped": ("Skipped", "triangle", "warn"),
    "unreadable": ("Not readable", "triangle", "warn"),
    "proven": ("Ready", "check", "ok"),
    "in_doubt": ("Not ready", "triangle", "warn"),
    "not_configured": ("Not configured", "ring", "text2"),
    "unavailable": ("Unavailable", "triangle", "warn"),
}
_NOT_KNOWN = ("Not known", "triangle", "warn")
HOOKS = "hook_"
"""How the rows of hooks begin; the program's name follows."""
INSTALLED = ("installed", "heard", "skipped")
"""States of a hook that stands in the program's settings."""
_LOOKS = ("agent_sockets", "remote_file")


def now_words(source: SourceView, *, known: bool = True) -> tuple[str, str, str]:
    """(word, shape, colour) of a source. Only one that looks and can is a tick; stale data, or an unknown state, is doubt."""
    word, shape, role = _STATES.get(source.state or "watching", _NOT_KNOWN) if known else _NOT_KNOWN
    return ("Not found", "ring", "text2") if shape == "check" and not source.available else (word, shape, role)


def tally(sources: Sequence[SourceView], *, known: bool = True) -> str:
    """``5 watching · 2 not found · 1 needs you``."""
    shapes = [now_words(source, known=known)[1] for source in sources]
    amber = shapes.count("triangle")
    parts = [(shapes.count("check"), "watching"), (shapes.count("ring"), "not found"), (amber, "needs you" if amber == 1 else "need you")]
    return " · ".join(f"{number} {words}" for number, words in parts if number)


def whole_words(source: SourceView, *, known: bool = True) -> str:
    """All of it, for a tooltip and a screen reader."""
    title = _TITLES.get(source.source, (source.source, ""))[0]
    places = ", ".join(source.looks_in)
    parts = (f"{title}: {now_words(source, known=known)[0]}.", source.reason, f"Looks in {places}." if places else "", source.watching)
    told = (f"Sees: {source.can_see}" if source.can_see else "", f"Stops: {source.can_stop}" if source.can_stop else "")
    return " ".join(part for part in (*parts, *told) if part)


class SourceTable(QWidget):
    """Two-line rows of 46. ``hook_asked`` carries the program whose hook's row was clicked."""

    hook_asked = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._sources: list[SourceView] = []
        self._now = 0.0
        self._known = True
        self.setMouseTracking(True)
        self.setFixedHeight(HEAD + ROW)

    def say(self, sources: list[SourceView], now: float, *, known: bool = True) -> None:
        """``now`` in seconds since the epoch: how old each look is. Not ``known``: old news, of which nothing is ticked."""
        changed = sources != self._sources or known != self._known
        if not changed and int(now) == int(self._now):
            return
        if changed:
            self._sources, self._known = list(sources), known
            self.setFixedHeight(ROW * max(1, len(sources)) + HEAD)
            self.setAccessibleName(safe_text("; ".join(whole_words(s, known=known) for s in sources), 6000))
        self._now = now
        self.update()

    def _at(self, y: float) -> SourceView | None:
        number = int(y - HEAD) // ROW
        return self._sources[number] if 0 <= number < len(self._sources) else None

    def _hook_at(self, y: float) -> str:
        source = self._at(y)
        is_hook = source is not None and source.source.startswith(HOOKS) and self._known
        return source.source.removeprefix(HOOKS) if is_hook and source is not None else ""

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        at = self._hook_at(event.position().y())
        self.setCursor(Qt.CursorShape.PointingHandCursor if at else Qt.CursorShape.ArrowCursor)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        program = self._hook_at(event.position().y())
        if program and event.button() is Qt.MouseButton.LeftButton:
            self.hook_asked.emit(program)

    def _columns(self) -> tuple[float, float, float, float]:
        """Left edges: title, where, now, what it sees."""
        where = max(132.0, self.width() * 0.19)
        return 38.0, where, where + (self.width() - where) * 0.34, where + (self.width() - where) * 0.58

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            source = self._at(event.pos().y())
            words = whole_words(source, known=self._known) if source is not None else ""
            QToolTip.showText(event.globalPos(), tooltip(words), self)
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
        word, shape, role = now_words(source, known=self._known)
        quiet = shape == "ring"
        painter.drawPixmap(14, int(y + 15), icon_pixmap(icon, colours.text2, 16))
        face = fonts.ui(13, fonts.MEDIUM)
        draw_text(painter, QRectF(left, y, where - left - 8, ROW), title, face, colours.text2 if quiet else colours.text)
        self._two(painter, (where, at - 14), y, self._where(source, shape), mono=bool(source.looks_in), quiet=quiet)
        draw_mark(painter, shape, QRectF(at, y + 10, 10, 10), getattr(colours, role))
        box = QRectF(at + 18, y + 6, sees - at - 26, 17)
        draw_text(painter, box, word, fonts.ui(12, fonts.MEDIUM), getattr(colours, role))
        asks = bool(self._hook_at(y + 1))
        offer = "Take the hook out…" if source.state in INSTALLED else "Install hook…"
        fine = offer if asks else self._fine(source, shape)
        draw_text(painter, box.translated(0, 17), fine, fonts.ui(11), colours.accent if asks else colours.text2)
        self._two(painter, (sees, self.width() - 10), y, (source.can_see, source.can_stop))

    @staticmethod
    def _where(source: SourceView, shape: str) -> tuple[str, str]:
        """Its places, and below what was found there, or why not."""
        places = source.looks_in[0] if source.looks_in else ""
        places += f" and {len(source.looks_in) - 1} more" if len(source.looks_in) > 1 else ""
        if not places:
            return source.reason, source.watching
        told_beside = shape == "triangle" and not _is_look(source)
        return places, source.watching if told_beside else source.reason or source.watching

    def _fine(self, source: SourceView, shape: str) -> str:
        if not self._known:
            return ""
        if _is_look(source):
            looked = f", {age(source.looked_at, self._now)}" if source.state == "heard" else ""
            return safe_text(f"{source.watching}{looked}")
        if shape == "triangle":
            return safe_text(source.reason)
        looked = f", {age(source.looked_at, self._now)}" if source.looked_at else ""
        return f"{plural(source.sees, 'agent')}{looked}" if source.available else "" if source.state == "absent" else "looks again"

    def _two(
        self, painter: QPainter, span: tuple[float, float], y: float, lines: tuple[str, str], *, mono: bool = False, quiet: bool = False
    ) -> None:
        colours = ink()
        box = QRectF(span[0], y + 6, span[1] - span[0], 17)
        draw_text(painter, box, safe_text(lines[0]), fonts.mono(11) if mono else fonts.ui(12), colours.text2 if quiet else colours.text)
        draw_text(painter, box.translated(0, 17), safe_text(lines[1]), fonts.ui(11), colours.text2)


def _is_look(source: SourceView) -> bool:
    """Whether it is no source of sightings: then ``reason`` says what it is, and ``watching`` what was found."""
    return source.source in _LOOKS or source.source.startswith(HOOKS)
