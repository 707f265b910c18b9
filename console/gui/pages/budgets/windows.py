"""Subscription windows: how much of each is used and when it is renewed, or why that is not known."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from console.api.budgets import WindowView
from console.gui.pages.budgets.words import hour_minute
from console.gui.theme import fonts
from console.gui.theme.tokens import ink
from console.gui.widgets.marks import draw_gauge, draw_text, share_colours
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.words import age, share_words
from console.panic.marks import draw_mark

OLD_S = 900.0
"""A window that was seen longer ago says when."""
_LINE = 25
_MOST = 8
HEIGHT = 116


def renewal(at: float | None, now: float) -> str:
    """``at 16:00`` within a day, else ``Mon 09:00``; or that it is over."""
    if at is None or not math.isfinite(at):
        return ""
    if at <= now:
        return "renewed since"
    try:
        return f"at {hour_minute(at)}" if at - now < 86400 else time.strftime("%a %H:%M", time.localtime(at))
    except (OverflowError, ValueError, OSError):
        return "?"


def grouped(windows: Sequence[WindowView]) -> tuple[list[WindowView], list[tuple[str, str]]]:
    """(those that are known, (``Vendor, 5 h and week``, why not) of the others: one line for each reason)."""
    known = [w for w in windows if w.share is not None and not w.why_not]
    others: dict[tuple[str, str], list[str]] = {}
    for w in windows:
        if w not in known:
            others.setdefault((w.program, w.why_not or "not available, for an unknown reason"), []).append(w.window)
    return known[:_MOST], [(f"{program}, {' and '.join(names)}", why) for (program, why), names in others.items()][:_MOST]


def subtitle(known: Sequence[WindowView], now: float) -> str:
    """Return the words at the right of the title: where the renewal time is, or how old the oldest value is."""
    oldest = min((w.seen_at for w in known if w.seen_at), default=now)
    return f"seen {age(oldest, now)}" if now - oldest > OLD_S else "renewal time at the right"


class WindowStrip(QWidget):
    """A title, two windows to a line, then what is not available."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._windows: tuple[WindowView, ...] = ()
        self._now = 0.0
        self._note = ""
        self.setFixedHeight(HEIGHT)

    def say(self, windows: Sequence[WindowView], now: float) -> None:
        """What the sources said last."""
        self._windows, self._now, self._note = tuple(windows), now, ""
        known, others = grouped(windows)
        spoken = [f"{w.program} {w.window} {share_words(w.share)} {renewal(w.renews_at, now)}, seen {age(w.seen_at, now)}" for w in known]
        spoken += [f"{who}: {why}" for who, why in others]
        self.setAccessibleName(safe_text("; ".join(["Subscription windows", *spoken]), 900))
        self.update()

    def fail(self, why: str) -> None:
        """Nothing could be read."""
        self._windows, self._note = (), why
        self.setAccessibleName(safe_text(f"Subscription windows: {why}", 500))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        width = self.width()
        painter.fillRect(QRectF(16, 0, width - 32, 1), QColor(colours.line))
        draw_text(painter, QRectF(16, 7, 200, 20), "Subscription windows", fonts.ui(13, fonts.SEMIBOLD), colours.text)
        known, others = grouped(self._windows)
        if known:
            draw_text(painter, QRectF(width - 216, 7, 200, 20), subtitle(known, self._now), fonts.ui(11), colours.text2, right=True)
        y = 31.0
        column = (width - 32) / 2
        for number, window in enumerate(known):
            if y + _LINE <= self.height():
                self._paint_one(painter, QRectF(16 + (number % 2) * (column + 8), y, column - 8, _LINE), window)
            y += _LINE * (number % 2)
        y += _LINE if len(known) % 2 else 0
        for who, why in others:
            y += self._paint_why(painter, y, f"{who}: {why}")
        if not self._windows:
            words = self._note or "No program with a subscription was looked for yet."
            draw_text(painter, QRectF(16, 31, width - 32, 18), safe_text(words), fonts.ui(12), colours.text2)
        painter.end()

    def _paint_one(self, painter: QPainter, box: QRectF, window: WindowView) -> None:
        colours = ink()
        share = window.share if window.share is not None else math.nan
        label = safe_text(f"{window.program}, {window.window}", 40)
        draw_text(painter, QRectF(box.x(), box.y(), 94, box.height()), label, fonts.ui(12), colours.text2)
        draw_gauge(painter, QRectF(box.x() + 98, box.center().y() - 3, 42, 6), share, colours)
        role = share_colours(share, colours)[1] if share >= 0.75 or not math.isfinite(share) else colours.text
        draw_text(
            painter, QRectF(box.x() + 140, box.y(), 42, box.height()), share_words(share), fonts.ui(12, fonts.SEMIBOLD), role, right=True
        )
        words = renewal(window.renews_at, self._now)
        draw_text(painter, QRectF(box.x() + 188, box.y(), box.width() - 186, box.height()), words, fonts.ui(11), colours.text2)

    def _paint_why(self, painter: QPainter, y: float, words: str) -> float:
        """One reason, in as many lines as it takes; returns its height."""
        colours = ink()
        face = fonts.ui(11)
        flags = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap)
        box = QRectF(33, y + 3, self.width() - 50, max(0.0, self.height() - y - 4))
        high = fonts.metrics(face).boundingRect(box.toRect().adjusted(0, 0, 0, 1000), flags, safe_text(words, 300)).height()
        if box.height() >= high / 2:
            draw_mark(painter, "ring", QRectF(17, y + 5, 9, 9), colours.text2)
            painter.setFont(face)
            painter.setPen(QColor(colours.text2))
            painter.drawText(box, flags, safe_text(words, 300))
        return high + 7
