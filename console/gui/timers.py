"""Timers that belong to a widget and end with it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer


def every(owner: QObject, ms: int, work: Callable[[], object]) -> QTimer:
    """A timer that does ``work`` each time so many milliseconds have passed, from its ``start`` on."""
    timer = QTimer(owner)
    timer.setInterval(ms)
    timer.timeout.connect(work)
    return timer


def once(owner: QObject, ms: int, work: Callable[[], object]) -> QTimer:
    """A timer that does ``work`` once, so many milliseconds after its ``start``."""
    timer = every(owner, ms, work)
    timer.setSingleShot(True)
    return timer
