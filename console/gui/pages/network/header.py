"""The head of the network page: agents by network mode, what was blocked, and whether Envoy holds."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

from console.api.messages import AllowlistView
from console.gui.kit.head import PageHead, paint_count, paint_figure, paint_state
from console.gui.models.fleet import Fleet
from console.gui.models.row import is_exposed, view_mode
from console.gui.theme import fonts
from console.gui.theme.tokens import Ink
from console.gui.widgets.marks import draw_sparkline, draw_text, faint
from console.gui.widgets.safe_text import safe_text, tooltip
from console.gui.widgets.words import clock, plural

ENVOY = {
    "healthy": ("Healthy", "dot", "ok"),
    "starting": ("Starting", "ring", "text2"),
    "failed": ("Failed", "diamond", "danger"),
    "unavailable": ("Unavailable", "triangle", "warn"),
}
NOT_KNOWN = ("Not known", "triangle", "warn")


@dataclass(frozen=True, slots=True)
class Blocked:
    """What the egress log holds."""

    number: int
    seen: int
    oldest: float | None
    slices: list[float]
    """Blocked requests in equal slices of time, oldest first."""

    @property
    def since(self) -> str:
        """`` since 14:02``; empty where there is none."""
        return f" since {clock(self.oldest)[:5]}" if self.oldest is not None else ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the head shows beside the counts of agents."""

    envoy: tuple[str, str, str] = NOT_KNOWN
    """(word, shape, colour)."""
    envoy_line: str = ""
    envoy_detail: str = ""
    log: Blocked | None = None
    """None: it was not read."""
    old: bool = False
    """The data is stale: nothing is green."""


def head_facts(view: AllowlistView | None, problem: str, unknown: bool, log: Blocked | None) -> Facts:
    """``unknown``: the news is old, so nothing is green."""
    envoy = NOT_KNOWN if view is None or problem or unknown else ENVOY.get(view.envoy, NOT_KNOWN)
    detail = problem or (view.envoy_detail if view else "")
    line = detail if envoy[2] in ("warn", "danger") and detail else live_line(view.version, view.sandboxes, unknown) if view else ""
    return Facts(envoy, line, detail, log, unknown)


def modes(fleet: Fleet) -> dict[str, int]:
    """Live agents by the mode in force; what is not enforced counts as FULL. Empty before the fleet was read."""
    if not fleet.loaded:
        return {}
    out = {"PROXIED": 0, "NONE": 0, "FULL": 0}
    for row in fleet.rows.values():
        if row.is_live:
            out[view_mode(row.view)] += 1
    return out


class NetworkHeader(PageHead):
    """Counts stay quiet; FULL is amber, with a triangle, while an agent with SECRET or CONFIDENTIAL data has it."""

    title = "Network"

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.modes: dict[str, int] = {}
        self.exposed = 0
        self.facts = Facts()

    def take(self, fleet: Fleet, facts: Facts) -> None:
        """Newer numbers."""
        counted, exposed = modes(fleet), sum(is_exposed(row.view) for row in fleet.rows.values())
        if (counted, exposed, facts) == (self.modes, self.exposed, self.facts) and self.accessibleName():
            return
        self.modes, self.exposed, self.facts = counted, exposed, facts
        counts = ", ".join(
            f"{word} {self.modes.get(key, '?')}" for key, word in (("PROXIED", "Proxied"), ("NONE", "None"), ("FULL", "FULL"))
        )
        blocked = f"blocked {facts.log.number} of {facts.log.seen}{facts.log.since}" if facts.log else "blocked ?"
        self.setAccessibleName(f"{counts}; {blocked}; Envoy {facts.envoy[0]}. {safe_text(facts.envoy_line)}")
        self.setToolTip(tooltip(facts.envoy_detail))
        self.update()

    def paint_parts(self, painter: QPainter, colours: Ink) -> None:
        x = 16.0
        for key, word, shape, role in (
            ("PROXIED", "Proxied", "dot", "ok"),
            ("NONE", "None", "ring", "text2"),
            ("FULL", "FULL", *(("triangle", "warn") if self.exposed else ("ring", "text2"))),
        ):
            number = self.modes.get(key)
            shape, role = ("ring", "text2") if self.facts.old and role == "ok" else (shape, role)
            mark = (shape, role) if number else ("ring", "text3")
            text = "warn" if key == "FULL" and self.exposed else "text"
            x = paint_count(painter, x, word, "?" if number is None else f"{number:,}", (*mark, text))
        if self.width() >= 700:
            self._paint_blocked(painter, colours, self.width() - 348.0)
        if self.width() >= 480:
            paint_state(painter, self.width() - 172.0, 160, "Envoy", self.facts.envoy, self.facts.envoy_line)

    def _paint_blocked(self, painter: QPainter, colours: Ink, x: float) -> None:
        log = self.facts.log
        if log is None:
            paint_figure(painter, x, 160, "Blocked", "?")
            return
        end = paint_figure(painter, x, 160, f"Blocked{log.since}", f"{log.number:,}")
        draw_text(painter, QRectF(end + 8, 35, 140 + x - end, 22), f"of {log.seen:,}", fonts.ui(12), colours.text2)
        if log.number:
            draw_sparkline(painter, QRectF(x, 62, 142, 18), log.slices, colours.bar, faint(colours.bar))


def live_line(version: int, sandboxes: int, old: bool = False) -> str:
    """``List v118 live in 14 sandboxes``; old news says nothing of what is live."""
    where = plural(sandboxes, "sandbox", "sandboxes")
    return f"Last heard: v{version}, {where}" if old else f"List v{version} live in {where}"
