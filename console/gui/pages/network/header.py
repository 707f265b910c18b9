"""The head of the network page: agents by network mode, what was blocked, and whether Envoy holds."""

from __future__ import annotations

from dataclasses import dataclass, field

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from console.api.messages import AllowlistView
from console.gui.models.fleet import Fleet
from console.gui.models.row import is_exposed, view_mode
from console.gui.theme import fonts
from console.gui.theme.tokens import PAGE_HEADER, ink
from console.gui.widgets.marks import draw_sparkline, draw_text, faint
from console.gui.widgets.safe_text import safe_text, tooltip
from console.gui.widgets.words import clock, plural
from console.panic.marks import draw_mark

ENVOY = {
    "healthy": ("Healthy", "dot", "ok"),
    "starting": ("Starting", "ring", "text2"),
    "failed": ("Failed", "diamond", "danger"),
    "unavailable": ("Unavailable", "triangle", "warn"),
}
NOT_KNOWN = ("Not known", "triangle", "warn")


@dataclass(frozen=True, slots=True)
class Facts:
    """What the head shows beside the counts of agents."""

    envoy: tuple[str, str, str] = NOT_KNOWN
    """(word, shape, colour)."""
    envoy_line: str = ""
    envoy_detail: str = ""
    blocked: int = 0
    seen: int = 0
    since: str = ""
    slices: list[float] = field(default_factory=list)
    """Blocked requests in equal slices of time, oldest first."""
    old: bool = False
    """The data is stale: nothing is green."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """What the egress log holds."""

    number: int
    seen: int
    oldest: float | None
    slices: list[float]


def head_facts(view: AllowlistView | None, problem: str, unknown: bool, log: Blocked) -> Facts:
    """``unknown``: the news is old, so nothing is green."""
    envoy = NOT_KNOWN if view is None or problem or unknown else ENVOY.get(view.envoy, NOT_KNOWN)
    detail = problem or (view.envoy_detail if view else "")
    line = detail if envoy[2] in ("warn", "danger") and detail else live_line(view.version, view.sandboxes, unknown) if view else ""
    since = f" since {clock(log.oldest)[:5]}" if log.oldest is not None else ""
    return Facts(envoy, line, detail, log.number, log.seen, since, log.slices, unknown)


def modes(fleet: Fleet) -> dict[str, int]:
    """Live agents by the mode in force; what is not enforced counts as FULL."""
    out = {"PROXIED": 0, "NONE": 0, "FULL": 0}
    for row in fleet.rows.values():
        if row.is_live:
            out[view_mode(row.view)] += 1
    return out


class NetworkHeader(QWidget):
    """Counts stay quiet; FULL is amber, with a triangle, while an agent with SECRET or CONFIDENTIAL data has it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(PAGE_HEADER)
        self.modes = {"PROXIED": 0, "NONE": 0, "FULL": 0}
        self.exposed = 0
        self.facts = Facts()

    def take(self, fleet: Fleet, facts: Facts) -> None:
        """Newer numbers."""
        counted, exposed = modes(fleet), sum(is_exposed(row.view) for row in fleet.rows.values())
        if (counted, exposed, facts) == (self.modes, self.exposed, self.facts) and self.accessibleName():
            return
        self.modes, self.exposed, self.facts = counted, exposed, facts
        counts = ", ".join(f"{word} {self.modes[key]}" for key, word in (("PROXIED", "Proxied"), ("NONE", "None"), ("FULL", "FULL")))
        blocked = f"blocked {facts.blocked} of {facts.seen}{facts.since}"
        self.setAccessibleName(f"{counts}; {blocked}; Envoy {facts.envoy[0]}. {safe_text(facts.envoy_line)}")
        self.setToolTip(tooltip(facts.envoy_detail))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(colours.bg0))
        painter.fillRect(QRectF(0, self.height() - 1, self.width(), 1), QColor(colours.line))
        draw_text(painter, QRectF(16, 12, 300, 24), "Network", fonts.ui(17, fonts.SEMIBOLD), colours.text)
        self._paint_modes(painter)
        if self.width() >= 700:
            self._paint_blocked(painter)
        if self.width() >= 480:
            self._paint_envoy(painter, self.width() - 172.0, 160)
        painter.end()

    def _paint_modes(self, painter: QPainter) -> None:
        colours = ink()
        x = 16.0
        for key, word, shape, role in (
            ("PROXIED", "Proxied", "dot", "ok"),
            ("NONE", "None", "ring", "text2"),
            ("FULL", "FULL", *(("triangle", "warn") if self.exposed else ("ring", "text2"))),
        ):
            number = self.modes[key]
            loud = key == "FULL" and self.exposed > 0
            words = fonts.metrics(fonts.ui(12, fonts.MEDIUM)).horizontalAdvance(word)
            figure = fonts.metrics(fonts.ui(18, fonts.MEDIUM)).horizontalAdvance(f"{number:,}")
            quiet = number == 0
            shape, role = ("ring", "text2") if self.facts.old and role == "ok" else (shape, role)
            draw_mark(painter, "ring" if quiet else shape, QRectF(x + 1, 64, 9, 9), getattr(colours, "text3" if quiet else role))
            draw_text(painter, QRectF(x + 17, 58, words + 2, 20), word, fonts.ui(12, fonts.MEDIUM), colours.warn if loud else colours.text)
            draw_text(
                painter,
                QRectF(x + 25 + words, 56, figure + 4, 24),
                f"{number:,}",
                fonts.ui(18, fonts.MEDIUM),
                colours.warn if loud else colours.text,
            )
            x += words + figure + 49

    def _paint_blocked(self, painter: QPainter) -> None:
        colours, facts = ink(), self.facts
        x = self.width() - 348.0
        draw_text(painter, QRectF(x, 14, 160, 18), f"Blocked{facts.since}", fonts.ui(12), colours.text2)
        figure = f"{facts.blocked:,}"
        face = fonts.ui(18, fonts.SEMIBOLD)
        width = fonts.metrics(face).horizontalAdvance(figure)
        draw_text(painter, QRectF(x, 33, width + 4, 24), figure, face, colours.text)
        draw_text(painter, QRectF(x + width + 8, 35, 140 - width, 22), f"of {facts.seen:,}", fonts.ui(12), colours.text2)
        if facts.blocked:
            draw_sparkline(painter, QRectF(x, 62, 142, 18), facts.slices, colours.bar, faint(colours.bar))

    def _paint_envoy(self, painter: QPainter, x: float, width: float) -> None:
        colours = ink()
        word, shape, role = self.facts.envoy
        draw_text(painter, QRectF(x, 14, width, 18), "Envoy", fonts.ui(12), colours.text2)
        draw_mark(painter, shape, QRectF(x + 1, 41, 9, 9), getattr(colours, role))
        colour = getattr(colours, role) if role in ("warn", "danger") else colours.text
        draw_text(painter, QRectF(x + 18, 34, width - 18, 24), word, fonts.ui(13, fonts.MEDIUM), colour)
        draw_text(painter, QRectF(x, 58, width, 18), safe_text(self.facts.envoy_line), fonts.ui(11), colours.text2)


def live_line(version: int, sandboxes: int, old: bool = False) -> str:
    """``List v118 live in 14 sandboxes``; old news says nothing of what is live."""
    where = plural(sandboxes, "sandbox", "sandboxes")
    return f"Last heard: v{version}, {where}" if old else f"List v{version} live in {where}"
