"""When an input event happened: a hold is measured by the moments of its events, since a busy window handles them late."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QInputEvent

OLDEST_S = 60.0
"""What was handled later than this was measured by another clock, or is too old to be an order."""
AHEAD_S = 1.0
"""Clocks of the same source differ by less; the X server's may have a resolution of some milliseconds."""
BEAT_S, FAST_BEAT_S = 0.5, 0.1
"""How often a thread shows that it is free: at rest, and while a press would count."""
SLACK_S = 0.1
"""A display that is busy itself hands an event on so much later."""
_WRAP_MS = 2**32
"""X11's and Wayland's timestamps have 32 bits and start again after 49.7 days."""


class Attention(QTimer):
    """Since when the window's thread may have been busy: what happened before that was handled then.

    It beats while its window is shown. Everything that waited is handled between the first late beat and the one after it, so the beat
    before the last one counts.
    """

    def __init__(self, parent: QObject | None = None, clock: Callable[[], float] = monotonic) -> None:
        super().__init__(parent)
        self._clock = clock
        self._before = self._last = 0.0
        self.set_fast(False)
        self.timeout.connect(self._beat)

    def set_fast(self, is_fast: bool) -> None:
        """While a press would count it is looked more often."""
        every_ms = round(1000 * (FAST_BEAT_S if is_fast else BEAT_S))
        if every_ms != self.interval():
            self.setInterval(every_ms)

    def begin(self) -> None:
        """The window is shown: nothing waits."""
        self._before = self._last = self._clock()
        self.start()

    def moment(self, event: QInputEvent) -> float | None:
        """When an event happened that is handled now; None when it does not say so plausibly."""
        return moment(event.timestamp(), self._clock(), self._before - SLACK_S)

    def _beat(self) -> None:
        self._before, self._last = self._last, self._clock()


def moment(timestamp: int, now: float, since: float = 0.0) -> float | None:
    """The moment of an event on the clock of ``now`` (CLOCK_MONOTONIC, seconds); None when its timestamp is not plausible.

    ``since``: what happened before that was handled before (``Attention``). A clock that differs from ours by seconds shows itself so.

    ``timestamp`` is Qt's, in milliseconds. X.Org, Xvfb and the usual Wayland compositors take it from CLOCK_MONOTONIC of their host. A
    display of another host, a test's invented events and platforms with a clock of their own give values far from ours: not plausible.
    """
    if timestamp <= 0:
        return None
    age_ms = now * 1000 - timestamp
    if timestamp < _WRAP_MS:
        # Shifted by the tolerance, so that an event slightly ahead of our clock does not count as one of 49 days ago.
        age_ms = (age_ms + AHEAD_S * 1000) % _WRAP_MS - AHEAD_S * 1000
    if not -AHEAD_S * 1000 <= age_ms <= OLDEST_S * 1000:
        return None
    at = min(now, now - age_ms / 1000)
    return at if at >= since else None
