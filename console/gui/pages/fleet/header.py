"""The head of the fleet page: title, counts by state, spend today, burn rate."""

from __future__ import annotations

from time import monotonic

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from console.gui.models.fleet import Fleet
from console.gui.theme import fonts
from console.gui.theme.tokens import PAGE_HEADER, ink
from console.gui.widgets.buttons import Button
from console.gui.widgets.marks import draw_sparkline, draw_text, faint
from console.gui.widgets.safe_text import tooltip
from console.gui.widgets.words import usd
from console.panic.marks import draw_mark

_Stat = tuple[str, int, str, str, str]
"""word, number, shape, shape colour, number colour"""
_WEIGHT = {"danger": 2, "warn": 1}
HISTORY = 24
MONEY_S = 0.9
"""A sum that changes more often than once a second is not read."""


class FleetHeader(QWidget):
    """Counts stay quiet; what is wrong has a shape, a colour and a word."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(PAGE_HEADER)
        self.new = Button("New agent…", "play", keys="N", small=True, parent=self)
        self.new.move(76, 10)
        self._stats: list[_Stat] = []
        self._spend = self._burn = self._said_at = 0.0
        self._day = self._lacks = self._unread = self._load = ""
        self._history: list[float] = []

    def take(self, fleet: Fleet, *, old: bool = False) -> None:
        """Reads the fleet again; ``old``: the data is stale, and nothing is green."""
        new = (_stats(fleet, old), fleet.spend_today_usd, hourly(fleet), fleet.day_words, self._unread, fleet.load_words)
        if new == (self._stats, self._spend, self._burn, self._day, self._lacks, self._load):
            return
        if new[0] == self._stats and monotonic() - self._said_at < MONEY_S:
            return  # the page looks again every second
        self._said_at = monotonic()
        self._stats, self._spend, self._burn, self._day, self._lacks, self._load = new
        counts = [f"{word} {number}" for word, number, *_ in self._stats]
        spend = f"spend today {self._money(self._spend)} {self._day}".rstrip()
        self.setAccessibleName(", ".join(part for part in (*counts, spend, self._lacks, self._load) if part))
        self.setToolTip(tooltip(f"Spend of {self._lacks}, and in no sum") if self._lacks else "")
        self.update()

    def _money(self, value: float) -> str:
        """Nothing spent is no zero while there are agents whose spend nothing reads."""
        return usd(None if self._lacks and not value else value)

    def set_unread(self, agents: str) -> None:
        """Agents of the day with unknown spend in words, or empty, for the next ``take``."""
        self._unread = f"{agents} unknown" if agents else ""

    def sample(self, slices: list[float]) -> None:
        """Spend of all agents in slices of time, oldest first, for the line under the burn rate."""
        if slices[-HISTORY:] != self._history:
            self._history = slices[-HISTORY:]
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(colours.bg0))
        painter.fillRect(QRectF(0, self.height() - 1, self.width(), 1), QColor(colours.line))
        draw_text(painter, QRectF(16, 12, 300, 24), "Fleet", fonts.ui(17, fonts.SEMIBOLD), colours.text)
        wide = self.width() >= 640
        self._paint_load(painter, self.width() - (328 if wide else 16))
        limit = self.width() - (320 if wide else 16)
        x = 16.0
        for word, number, shape, role, number_role in fitting(self._stats, limit + 7):
            words, figure = _widths(word, number)
            draw_mark(painter, shape, QRectF(x + 1, 64, 9, 9), getattr(colours, role))
            draw_text(painter, QRectF(x + 17, 58, words + 2, 20), word, fonts.ui(12), colours.text)
            draw_text(
                painter,
                QRectF(x + 25 + words, 56, figure + 4, 24),
                f"{number:,}",
                fonts.ui(18, fonts.MEDIUM),
                getattr(colours, number_role),
            )
            x += words + figure + 53
        if wide:
            self._paint_money(painter)
        painter.end()

    def _paint_load(self, painter: QPainter, right: float) -> None:
        """How much people are asked, beside the button, where it has room as a whole."""
        left, face = self.new.geometry().right() + 16.0, fonts.ui(11)
        if fonts.metrics(face).horizontalAdvance(self._load) <= right - left:
            draw_text(painter, QRectF(left, 14, right - left, 20), self._load, face, ink().text2)

    def _paint_money(self, painter: QPainter) -> None:
        colours = ink()
        spend, burn = self.width() - 316.0, self.width() - 144.0
        draw_text(painter, QRectF(spend, 14, 140, 18), "Spend today", fonts.ui(12), colours.text2)
        draw_text(painter, QRectF(spend, 33, 160, 24), self._money(self._spend), fonts.ui(18, fonts.SEMIBOLD), colours.text)
        below = self._lacks or self._day
        draw_text(painter, QRectF(spend, 58, 165, 18), below, fonts.ui(11), colours.warn if self._lacks else colours.text3)
        draw_text(painter, QRectF(burn, 14, 130, 18), "Burn, last 5 min", fonts.ui(12), colours.text2)
        burning = self._money(self._burn)
        burning += "" if burning == "unknown" else "/h"
        draw_text(painter, QRectF(burn, 33, 130, 24), burning, fonts.ui(18, fonts.SEMIBOLD), colours.text)
        draw_sparkline(painter, QRectF(burn, 62, 128, 18), self._history, colours.bar, faint(colours.bar))


def _widths(word: str, number: int) -> tuple[int, int]:
    figure = fonts.metrics(fonts.ui(18, fonts.MEDIUM)).horizontalAdvance(f"{number:,}")
    return fonts.metrics(fonts.ui(12)).horizontalAdvance(word), figure


def fitting(stats: list[_Stat], room: float) -> list[_Stat]:
    """The counts for which there is room, in their order: zeros go first, then what is no warning, the last ones before others."""
    left = list(stats)
    while left and 16 + sum(sum(_widths(word, number)) + 53 for word, number, *_ in left) > room + 16:
        left.remove(min(reversed(left), key=lambda one: (one[1] > 0, _WEIGHT.get(one[4], 0))))
    return left


def hourly(fleet: Fleet) -> float:
    """What is spent in an hour; after a press nothing is told any more, and the dead spend nothing."""
    if not fleet.killed:
        return fleet.burn_usd_per_h if fleet.live() else 0.0
    return sum(row.view.burn_usd_per_h for row in fleet.rows.values() if row.is_live)


def _stats(fleet: Fleet, old: bool) -> list[_Stat]:
    states = fleet.states()
    killed = states.get("killed", 0)
    unconfirmed = states.get("alive_after_kill", 0)
    alive = fleet.live() if fleet.killed else unconfirmed
    if fleet.killed or alive:
        out: list[_Stat] = [("Killed", killed, "cross", "text2", "text")]
        if alive:
            out.append(("Still alive" if alive > unconfirmed else "Not confirmed", alive, "pause", "warn", "warn"))
    else:
        out = [
            ("Running", states.get("running", 0) + states.get("starting", 0), *(("ring", "text2") if old else ("dot", "ok")), "text"),
            ("Waiting", states.get("waiting", 0), "ring", "text2", "text"),
        ]
    if fleet.killed:
        return out
    for state, word, shape, role in (
        ("frozen", "Frozen", "pause", "text2"),
        ("needs_ok", "Needs OK", "triangle", "warn"),
        ("over_budget", "Over budget", "diamond", "danger"),
        ("lost", "Lost", "triangle", "warn"),
    ):
        if states.get(state):
            out.append((word, states[state], shape, role, role if role != "text2" else "text"))
    return out
