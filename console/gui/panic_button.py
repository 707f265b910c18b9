"""``python -m console.gui.panic_button``: the panic control in a window and a process of its own, for when the console hangs.

Small, frameless, always on top. It speaks to the guard alone; when the guard does not answer it kills by the command line, which reads the
registry on disk. Closing it stops nothing; rearm is only in the console.
"""

from __future__ import annotations

import argparse
import platform
import sys
from dataclasses import dataclass
from time import monotonic, time
from typing import Any

from PySide6.QtCore import QPoint, QPointF, QRectF, Qt, QTimer
from PySide6.QtGui import (
    QCloseEvent,
    QColor,
    QFocusEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QShortcut,
)
from PySide6.QtWidgets import QWidget

from console.domain.errors import ConsoleError
from console.gui import app
from console.gui.link.guard import GuardLink
from console.gui.link.panic import GuardPort
from console.gui.models.switch import GuardState
from console.gui.theme import fonts
from console.gui.theme.tokens import DARK, PLATE, PLATE_INK
from console.gui.widgets.marks import draw_mark, draw_text
from console.gui.widgets.panic import PanicMachine, PanicState
from console.gui.widgets.plate import paint_button, paint_stripes
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.words import clock, plural, span, took
from console.settings.places import Places, find_places

STRIP, PLATE_HIGH, BAND = 24, 66, 30
_HOLD_KEYS = (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter)
_CLOSED = (PanicState.READY, PanicState.ARMED, PanicState.HOLDING, PanicState.AGAIN)


@dataclass(frozen=True, slots=True)
class Face:
    """Every word and shape of the window in one state."""

    strip: str
    strip_mark: str
    strip_role: str
    head: str
    line: str
    band: str
    band_mark: str
    band_role: str
    right: str
    share: float


@dataclass(slots=True)
class Facts:
    """What the window knows besides the machine's state."""

    guard: GuardState
    guard_ms: float | None = None
    heard_at: float | None = None
    """monotonic() of the guard's last answer."""
    exit_code: int | None = None
    """How a kill without the guard ended."""
    survivor: str = ""
    said: str = ""
    """The last line of that kill while its later steps are seen through."""
    pressed_elsewhere: bool = False


def face(machine: PanicMachine, facts: Facts, now: float) -> Face:
    """The one place that decides what is shown; green needs a verified zero."""
    guard = facts.guard
    match machine.state:
        case PanicState.READY:
            return _ready(machine, facts, now)
        case PanicState.ARMED:
            return Face(
                "Guard up",
                "dot",
                "ok",
                "HOLD TO KILL",
                f"{plural(guard.agents, 'agent')} · press and hold",
                "Hold 0.8 s, or press twice",
                "pause",
                "text",
                "5 s",
                0,
            )
        case PanicState.HOLDING:
            band = f"Frozen {guard.frozen}; let go = thaw" if guard.frozen else "Freeze is out; let go = thaw"
            if not machine.guard_alive:
                band = "No guard: nothing frozen yet"
            spent = f"{machine.progress * 0.8:.1f} s"
            return Face(
                "Guard up",
                "dot",
                "ok",
                "HOLD TO KILL",
                f"{plural(guard.agents, 'agent')} · keep on",
                band,
                "pause",
                "text",
                spent,
                machine.progress,
            )
        case PanicState.AGAIN:
            return Face(
                f"Thawed {clock(time())}", "dot", "ok", "PRESS AGAIN", "A second press kills", machine.note, "ring", "text", "2 s", 0
            )
        case PanicState.KILLING:
            share = guard.proven / guard.total if guard.total else 0.0
            band = f"{guard.proven} of {guard.total} proven zero" if guard.total else facts.said or "SIGKILL is on its way"
            return Face(
                "Killing", "pause", "warn", "KILLING", "No way back now", band, "alert", "text", took(guard.ms) if guard.ms else "", share
            )
        case PanicState.KILLED:
            return _killed(facts)


def _ready(machine: PanicMachine, facts: Facts, now: float) -> Face:
    if not machine.guard_alive:
        silent = f"Silent {span(now - facts.heard_at)}: kills by itself" if facts.heard_at else "Kills by itself, from disk"
        line = machine.note or "Lift guard to arm"
        return Face("No guard", "triangle", "warn", "PANIC", line, silent, "triangle", "warn", "", 0)
    if machine.note:
        return Face("Armed", "dot", "ok", "PANIC", "Lift guard to arm", machine.note, "ring", "text", "", 0)
    ms = f"{facts.guard_ms:.1f} ms" if facts.guard_ms is not None else ""
    seen = f"Armed {span(now - facts.heard_at)} ago" if facts.heard_at else "Armed"
    return Face(seen, "dot", "ok", "PANIC", "Lift guard to arm", "Own path answers", "check", "ok", ms, 0)


def _killed(facts: Facts) -> Face:
    guard = facts.guard
    left = guard.total - guard.proven
    took_words = f"{guard.ms / 1000:.2f} s" if guard.ms else ""
    if facts.exit_code is not None and not guard.alive:
        if facts.exit_code in (0, 7):
            return Face(
                "Latched", "cross", "text", "STOPPED", "Latched until rearmed", "zero proven, without the guard", "check", "ok", "", 1
            )
        words = "not all of it can be proven (exit 8)" if facts.exit_code == 8 else f"NOT proven (exit {facts.exit_code})"
        return Face("Latched", "triangle", "warn", "STOPPED?", "Latched until rearmed", words, "triangle", "warn", "", 1)
    proven = guard.alive and guard.phase in ("done", "second_look") and guard.total > 0 and left == 0
    line = "From elsewhere, latched" if facts.pressed_elsewhere else "Latched until rearmed"
    if proven:
        return Face(
            "Latched", "cross", "text", "STOPPED", line, f"{guard.proven} of {guard.total} proven zero", "check", "ok", took_words, 1
        )
    if guard.total:
        return Face(
            "Latched", "triangle", "warn", "STOPPED?", line, f"{left} of {guard.total} not proven", "triangle", "warn", took_words, 1
        )
    return Face("Latched", "cross", "text", "STOPPED", line, "What was proven is in the receipt", "triangle", "warn", "", 1)


class PanicWindow(QWidget):
    """260 x 120: strip (drag it), plate, band."""

    def __init__(self, places: Places | None) -> None:
        super().__init__(None, Qt.WindowType.Window | Qt.WindowType.FramelessWindowHint | Qt.WindowType.WindowStaysOnTopHint)
        self.setWindowTitle("Watchfloor panic")
        self.setAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)
        self.setFixedSize(260, STRIP + PLATE_HIGH + BAND)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Panic, kill switch")
        self._host = safe_text(platform.node(), 24)
        self.guard = GuardLink(places.guard_sock if places else None, self)
        self.port = GuardPort(self.guard, places.state_dir if places else None, "panic-button", "panic button", self)
        self.machine = PanicMachine(self.port, self)
        self.facts = Facts(GuardState())
        self._drag: QPoint | None = None
        self._holding = self._keyboard = False
        self.machine.changed.connect(self._changed)
        self.guard.alive.connect(self._alive)
        self.guard.status_came.connect(self._status)
        self.port.finished.connect(self._ended)
        self.port.refused.connect(self._refused)
        self.port.said.connect(self._said)
        QShortcut(QKeySequence("Ctrl+Shift+Backspace"), self).activated.connect(self.machine.arm)
        self._frame = QTimer(self)
        self._frame.timeout.connect(self.update)
        self._frame.start(500)
        self.guard.start(500)

    def _alive(self, alive: bool) -> None:
        self.facts.guard.alive = alive
        self.machine.set_guard(alive)
        self.update()

    def _status(self, answer: dict[str, Any]) -> None:
        was = self.machine.state
        self.facts.guard.take(answer)
        self.facts.guard_ms, self.facts.heard_at = self.guard.last_ms, monotonic()
        guard = self.facts.guard
        if guard.latched and was in (PanicState.READY, PanicState.ARMED):
            self.facts.pressed_elsewhere = True
        self.machine.set_kill(guard.is_killing, guard.latched)
        self.guard.poll_every(100 if guard.is_killing or self.machine.state in (PanicState.HOLDING, PanicState.KILLING) else 500)
        self.update()

    def _ended(self, code: int, words: str) -> None:
        self.facts.exit_code = code
        if code in (0, 7, 8, 9):
            self.machine.set_kill(False, True)
        else:
            self.machine.gave_up(f"NOT killed (exit {code})")
            print(words, file=sys.stderr)

    def _said(self, words: str) -> None:
        self.facts.said = safe_text(words, 80)
        self.update()

    def _refused(self, error: ConsoleError) -> None:
        print(str(error), file=sys.stderr)

    def _changed(self) -> None:
        self._frame.setInterval(30 if self.machine.state is PanicState.HOLDING else 500)
        shown = face(self.machine, self.facts, monotonic())
        self.setAccessibleDescription(f"{shown.head}. {shown.line}. {shown.band}")
        self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is not Qt.MouseButton.LeftButton:
            return
        if event.position().y() < STRIP:
            self._drag = event.globalPosition().toPoint() - self.pos()
        elif self.machine.state is not PanicState.READY:
            self._holding = True
            self.machine.press_down()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.mousePressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._drag is not None:
            self.move(event.globalPosition().toPoint() - self._drag)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._drag is not None:
            self._drag = None
        elif self._holding:
            self._holding = False
            self.machine.press_up()
        elif event.button() is Qt.MouseButton.LeftButton and self.machine.state is PanicState.READY:
            self.machine.arm()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in _HOLD_KEYS and not event.isAutoRepeat():
            if self.machine.state is PanicState.READY:
                self.machine.arm()
            else:
                self._keyboard = True
                self.machine.press_down()

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        if event.key() in _HOLD_KEYS and not event.isAutoRepeat() and self._keyboard:
            self._keyboard = False
            self.machine.press_up()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        if self._keyboard:
            self._keyboard = False
            self.machine.press_up()
        super().focusOutEvent(event)

    def closeEvent(self, event: QCloseEvent) -> None:
        self._frame.stop()
        self.guard.stop()
        super().closeEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        shown = face(self.machine, self.facts, monotonic())
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        shape = QPainterPath()
        shape.addRoundedRect(QRectF(self.rect()), 8, 8)
        painter.setClipPath(shape)
        painter.fillRect(self.rect(), QColor(PLATE_INK))
        self._paint_strip(painter, shown)
        self._paint_plate(painter, shown)
        top = STRIP + PLATE_HIGH
        draw_mark(painter, shown.band_mark, QRectF(12, top + 10, 10, 10), getattr(DARK, shown.band_role))
        draw_text(painter, QRectF(32, top, 160, BAND), shown.band, fonts.ui(12, fonts.MEDIUM), getattr(DARK, shown.band_role))
        draw_text(painter, QRectF(180, top, 67, BAND), shown.right, fonts.ui(12, fonts.MEDIUM), DARK.text, right=True)
        painter.end()

    def _paint_strip(self, painter: QPainter, shown: Face) -> None:
        draw_mark(painter, shown.strip_mark, QRectF(11, 8, 8, 8), getattr(DARK, shown.strip_role))
        role = shown.strip_role if shown.strip_role == "warn" else "text"
        draw_text(painter, QRectF(26, 0, 120, STRIP), shown.strip, fonts.ui(11, fonts.MEDIUM), getattr(DARK, role))
        draw_text(painter, QRectF(140, 0, 108, STRIP), self._host, fonts.ui(11), DARK.text2, right=True)

    def _paint_plate(self, painter: QPainter, shown: Face) -> None:
        plate = QRectF(0, STRIP, self.width(), PLATE_HIGH)
        painter.fillRect(plate, QColor(PLATE))
        state = self.machine.state
        if state in _CLOSED:
            paint_stripes(painter, QRectF(0, STRIP, 8, PLATE_HIGH))
            paint_stripes(painter, QRectF(self.width() - 8, STRIP, 8, PLATE_HIGH))
        paint_button(painter, QPointF(46, STRIP + PLATE_HIGH / 2), 23 if state is PanicState.READY else 25, state, shown.share)
        draw_text(painter, QRectF(88, STRIP + 9, 160, 24), shown.head, fonts.ui(18, fonts.SEMIBOLD), PLATE_INK)
        draw_text(painter, QRectF(88, STRIP + 33, 160, 18), shown.line, fonts.ui(12, fonts.MEDIUM), PLATE_INK)
        if state in (PanicState.HOLDING, PanicState.KILLING):
            painter.fillRect(QRectF(88, STRIP + 54, 150, 4), QColor(0, 0, 0, 45))
            painter.fillRect(QRectF(88, STRIP + 54, 150 * shown.share, 4), QColor("#D0021B" if state is PanicState.HOLDING else PLATE_INK))


def main(arguments: list[str] | None = None) -> int:
    """Opens the window; 1 when there is no display."""
    parser = argparse.ArgumentParser(prog="watchfloor panic-button", description="The panic control in a window of its own.")
    parser.add_argument("--state-dir", default=None)
    given = parser.parse_args(arguments)
    try:
        running = app.make_application("dark")
        window = PanicWindow(find_places(given.state_dir, create=False))
    except ConsoleError as error:
        return app.door(("watchfloor", "panic-button"), error)
    screen = running.primaryScreen().availableGeometry()
    window.move(screen.right() - window.width() - 24, screen.bottom() - window.height() - 24)
    window.show()
    return running.exec()


if __name__ == "__main__":
    sys.exit(main())
