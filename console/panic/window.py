"""The panic window: small, frameless, always on top, for when the console hangs.

It speaks to the guard alone; when the guard does not answer it kills by the command line, which reads the registry on disk. Closing it
stops nothing; rearm is only in the console.
"""

from __future__ import annotations

import platform
import sys
from pathlib import Path
from time import monotonic
from typing import Any

from PySide6.QtCore import QPoint, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QColor,
    QFontMetricsF,
    QGuiApplication,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QShortcut,
)
from PySide6.QtWidgets import QWidget

from console.domain.errors import ConsoleError, code_words
from console.panic import control, fonts
from console.panic.control import PanicControl, PlateWords
from console.panic.guard_link import GuardLink
from console.panic.guard_state import GuardState
from console.panic.machine import PanicMachine, PanicState
from console.panic.marks import draw_mark
from console.panic.orders import GuardPort
from console.panic.paint import OK, PLATE_INK, TEXT, TEXT2, WARN, draw_line
from console.panic.view import Facts, PanicViewState, view_state

STRIP, BAND = 24, 30
_ROLES = {"ok": OK, "warn": WARN, "text": TEXT}
_BUSY = (PanicState.HOLDING, PanicState.KILLING)


class PanicWindow(QWidget):
    """260 x 120: strip (drag it), plate, band. ``closed`` when a person put it away."""

    closed = Signal()

    def __init__(self, state_dir: Path | None, guard_sock: Path | None) -> None:
        super().__init__(None, Qt.WindowType.Window | Qt.WindowType.FramelessWindowHint | Qt.WindowType.WindowStaysOnTopHint)
        self.setWindowTitle("Watchfloor panic")
        self.setAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)
        self.setFixedSize(control.WINDOW.width, STRIP + control.WINDOW.height + BAND)
        self.setAccessibleName("Panic, kill switch")
        self._host = _printable(platform.node(), 24)
        self.guard = GuardLink(guard_sock, self)
        self.port = GuardPort(self.guard, state_dir, "panic-button", "panic button", self)
        self.machine = PanicMachine(self.port)
        self.facts = Facts(GuardState())
        self.control = PanicControl(self.machine, self, control.WINDOW, self._plate_words)
        self.control.move(0, STRIP)
        self.setFocusProxy(self.control)
        self._drag: QPoint | None = None
        self.control.changed.connect(self._changed)
        self.guard.alive.connect(self._alive)
        self.guard.status_came.connect(self._status)
        self.port.finished.connect(self._ended)
        self.port.refused.connect(self._refused)
        self.port.said.connect(self._said)
        QShortcut(QKeySequence("Ctrl+Shift+Backspace"), self).activated.connect(self.machine.arm)
        QShortcut(QKeySequence("Escape"), self).activated.connect(self.close)
        self._frame = QTimer(self)
        self._frame.timeout.connect(self._repaint)

    def bring(self) -> None:
        """Shows the window above all others, in the corner of the screen the first time, and connects to the guard."""
        if not self.isVisible():
            self.guard.start(500)
            self._frame.start(500)
        # Only the first time: a window that a person has moved must be where they left it.
        if self.pos().isNull():
            screen = QGuiApplication.primaryScreen().availableGeometry()
            self.move(screen.right() - self.width() - 24, screen.bottom() - self.height() - 24)
        self.show()
        self.raise_()
        self.activateWindow()
        self.control.setFocus()

    def warm_up(self) -> None:
        """Connects and paints once, unseen: what the first time costs is not paid while a person waits."""
        self.guard.start(500)
        self.grab()
        self.rest()

    def rest(self) -> None:
        """Hides the window; it stays connected and asks nothing."""
        self._frame.stop()
        self.guard.rest()
        self.hide()

    def shown(self) -> PanicViewState:
        """Every word and shape of this moment."""
        return view_state(self.machine, self.facts, monotonic())

    def _plate_words(self) -> PlateWords:
        shown = self.shown()
        return PlateWords(shown.head, shown.line, shown.share)

    def _repaint(self) -> None:
        self.update()
        self.control.update()

    def _alive(self, alive: bool) -> None:
        self.facts.guard.alive = alive
        self.machine.set_guard(alive)
        self._repaint()

    def _status(self, answer: dict[str, Any]) -> None:
        was = self.machine.state
        self.facts.guard.take(answer)
        self.facts.guard_ms, self.facts.heard_at = self.guard.last_ms, monotonic()
        guard = self.facts.guard
        if guard.latched and was in (PanicState.READY, PanicState.ARMED):
            self.facts.pressed_elsewhere = True
        self.machine.set_kill(guard.is_killing, guard.latched)
        # Faster while something is dying: a person watches the count, and the guard answers a status at once.
        self.guard.poll_every(100 if guard.is_killing or self.machine.state in _BUSY else 500)
        self._repaint()

    def _ended(self, code: int, words: str) -> None:
        self.facts.exit_code = code
        # With each of these codes the kill has gone out and the latch is set; what differs is only what could be confirmed.
        if code in (0, 7, 8, 9):
            self.machine.set_kill(False, True)
        else:
            self.machine.gave_up(code_words(code))
            print(words, file=sys.stderr)

    def _said(self, words: str) -> None:
        self.facts.said = _printable(words, 80)
        self._repaint()

    def _refused(self, error: ConsoleError) -> None:
        print(str(error), file=sys.stderr)

    def _changed(self) -> None:
        if self._frame.isActive():
            self._frame.setInterval(30 if self.machine.state is PanicState.HOLDING else 100 if self.machine.left_s else 500)
        shown = self.shown()
        self.setAccessibleDescription(f"{shown.head}. {shown.line}. {shown.band}")
        self._repaint()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton and event.position().y() < STRIP:
            self._drag = event.globalPosition().toPoint() - self.pos()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._drag is not None:
            self.move(event.globalPosition().toPoint() - self._drag)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._drag = None

    def closeEvent(self, event: QCloseEvent) -> None:
        self.rest()
        self.closed.emit()
        super().closeEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        shown = self.shown()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        shape = QPainterPath()
        shape.addRoundedRect(QRectF(self.rect()), 8, 8)
        painter.setClipPath(shape)
        painter.fillRect(self.rect(), QColor(PLATE_INK))
        draw_mark(painter, shown.strip_mark, QRectF(11, 8, 8, 8), _ROLES[shown.strip_role])
        role = WARN if shown.strip_role == "warn" else TEXT
        draw_line(painter, QRectF(26, 0, 120, STRIP), shown.strip, fonts.ui(11, fonts.MEDIUM), role)
        draw_line(painter, QRectF(140, 0, 108, STRIP), self._host, fonts.ui(11, fonts.MEDIUM), TEXT2, right=True)
        top, small = self.height() - BAND, fonts.ui(12, fonts.MEDIUM)
        draw_mark(painter, shown.band_mark, QRectF(12, top + 10, 10, 10), _ROLES[shown.band_role])
        room = 216 - QFontMetricsF(small).horizontalAdvance(shown.right) - 8
        draw_line(painter, QRectF(32, top, room, BAND), shown.band, small, _ROLES[shown.band_role])
        draw_line(painter, QRectF(180, top, 67, BAND), shown.right, small, TEXT, right=True)
        painter.end()


def _printable(text: str, limit: int) -> str:
    """Text from outside as printable ASCII: a name cannot hide or turn round what stands beside it."""
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in text[:limit])
