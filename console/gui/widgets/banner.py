"""The kill banner: the eight steps while a kill runs, small and quiet until rearm. It lies over the top bar and moves no page."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from console.gui.theme import fonts
from console.gui.theme.icons import icon_pixmap
from console.gui.theme.tokens import BANNER_SMALL, TOP_BAR, ink
from console.gui.widgets.marks import draw_text
from console.gui.widgets.safe_text import safe_text, tooltip
from console.panic.marks import draw_mark
from console.panic.paint import paint_stripes

_WHITE = "#FFFFFF"
_SOFT = "#F3D9D6"
_WIDE = 1000
"""A narrower banner has less room for its head, so that every step is seen."""
_NAMED = 40
"""Least room for the name of a step."""
_MARKS = {"ok": "check", "failed": "triangle", "unknown": "triangle", "skipped": "ring"}


@dataclass(frozen=True, slots=True)
class BannerStep:
    """One step: status is ok, failed, skipped, unknown, running or waiting."""

    title: str
    detail: str
    status: str


class KillBanner(QWidget):
    """Hidden, large or small. A click opens the receipt; ``changed`` when it needs another place."""

    opened = Signal()
    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._head = self._line = self._right = self._right_line = ""
        self._steps: tuple[BannerStep, ...] = ()
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.hide()

    def show_killing(self, head: str, line: str, steps: tuple[BannerStep, ...], elapsed: str) -> None:
        """The large banner."""
        self._set(TOP_BAR, head, line, elapsed, "elapsed", steps)

    def show_latched(self, line: str, since: str) -> None:
        """The small banner."""
        self._set(BANNER_SMALL, "New agents are blocked until you rearm", line, since, "", ())

    def clear(self) -> None:
        """Nothing is blocked."""
        self.hide()

    def _set(self, height: int, head: str, line: str, right: str, right_line: str, steps: tuple[BannerStep, ...]) -> None:
        self._head, self._line, self._right, self._right_line = safe_text(head), safe_text(line, 300), safe_text(right), right_line
        self._steps = steps
        if self.height() != height or not self.isVisible():
            self.setFixedHeight(height)
            self.show()
            self.raise_()
            self.changed.emit()
        words = f"{self._head}. {self._line}. {self._right}"
        self.setAccessibleName(words)
        self.setToolTip(tooltip(words))
        self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self.opened.emit()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(ink().kill))
        paint_stripes(painter, QRectF(0, 0, 8, self.height()))
        if self.height() == TOP_BAR:
            self._paint_large(painter)
        else:
            self._paint_small(painter)
        painter.end()

    def _paint_small(self, painter: QPainter) -> None:
        painter.drawPixmap(20, 14, icon_pixmap("lock", _WHITE, 16))
        head, line = self.lines()
        draw_text(painter, QRectF(46, 4, self.width() - 56.0, 19), head, fonts.ui(13, fonts.SEMIBOLD), _WHITE)
        draw_text(painter, QRectF(46, 22, self.width() - 56.0, 18), line, fonts.ui(12), _SOFT)

    def lines(self) -> tuple[str, str]:
        """The two lines of the small banner. Where the first has no room, what ends the block begins the second."""
        head, parts = self._head, [self._line, self._right]
        if fonts.metrics(fonts.ui(13, fonts.SEMIBOLD)).horizontalAdvance(head) > self.width() - 56:
            head, until, rest = head.partition(" until ")
            parts.insert(0, f"{until.strip()} {rest}".strip())
        return head, " · ".join(part for part in parts if part)

    def _paint_large(self, painter: QPainter) -> None:
        wide = self.width() >= _WIDE
        head = 176.0 if wide else 104.0
        painter.drawPixmap(26, 24, icon_pixmap("kill", _WHITE, 24))
        draw_text(painter, QRectF(64, 14, head, 22), self._head, fonts.ui(15, fonts.SEMIBOLD), _WHITE)
        draw_text(painter, QRectF(64, 37, head + 10, 18), self._line, fonts.ui(12), _SOFT)
        draw_text(painter, QRectF(self.width() - 106, 14, 90, 26), self._right, fonts.ui(20, fonts.SEMIBOLD), _WHITE, right=True)
        draw_text(painter, QRectF(self.width() - 106, 40, 90, 16), self._right_line, fonts.ui(11), _SOFT, right=True)
        left, right = 86.0 + head, self.width() - 118.0
        if not self._steps or right - left < 25 * len(self._steps):
            return
        step = (right - left) / len(self._steps)
        for number, item in enumerate(self._steps):
            self._paint_step(painter, QRectF(left + number * step, 0, step, TOP_BAR), number + 1, item)

    def _paint_step(self, painter: QPainter, box: QRectF, number: int, item: BannerStep) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        middle = QPointF(box.x() + 11, 36)
        faded = QColor(_SOFT)
        faded.setAlphaF(0.75)
        done = item.status not in ("waiting", "running")
        if item.status == "ok":
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(_WHITE))
            painter.drawEllipse(middle, 10, 10)
            draw_mark(painter, "check", QRectF(middle.x() - 5, middle.y() - 5, 10, 10), ink().kill)
        else:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(_WHITE) if item.status != "waiting" else faded, 2.4 if item.status == "running" else 1.5))
            painter.drawEllipse(middle, 10, 10)
            if done:
                draw_mark(painter, _MARKS.get(item.status, "triangle"), QRectF(middle.x() - 4.5, middle.y() - 5.5, 9, 9), _WHITE)
            else:
                text = QRectF(middle.x() - 10, middle.y() - 10, 20, 20)
                painter.setFont(fonts.ui(11, fonts.SEMIBOLD))
                painter.drawText(text, Qt.AlignmentFlag.AlignCenter, str(number))
        words = box.adjusted(27, 0, -4, 0)
        if words.width() < _NAMED:
            return  # the ring alone; the accessible name and the receipt have the words
        wide = box.width() >= 112
        top = 19 if wide else 27
        draw_text(painter, QRectF(words.x(), top, words.width(), 17), item.title, fonts.ui(12 if wide else 11, fonts.SEMIBOLD), _WHITE)
        if wide:
            draw_text(painter, QRectF(words.x(), 37, words.width(), 16), safe_text(item.detail), fonts.ui(11), _SOFT)
