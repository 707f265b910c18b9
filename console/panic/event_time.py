"""When an input event happened: a hold is measured by the moments of its events, since a busy window handles them late."""

from __future__ import annotations

OLDEST_S = 60.0
"""What was handled later than this was measured by another clock, or is too old to be an order."""
AHEAD_S = 1.0
"""Clocks of the same source differ by less; the X server's may have a resolution of some milliseconds."""
_WRAP_MS = 2**32
"""X11's and Wayland's timestamps have 32 bits and start again after 49.7 days."""


def moment(timestamp: int, now: float) -> float | None:
    """The moment of an event on the clock of ``now`` (CLOCK_MONOTONIC, seconds); None when its timestamp is not plausible.

    ``timestamp`` is Qt's, in milliseconds. X.Org, Xvfb and the usual Wayland compositors take it from CLOCK_MONOTONIC of their host. A
    display of another host, a test's invented events and platforms with a clock of their own give values far from ours: not plausible.
    """
    if timestamp <= 0:
        return None
    age_ms = now * 1000 - timestamp
    if timestamp < _WRAP_MS:
        age_ms = (age_ms + AHEAD_S * 1000) % _WRAP_MS - AHEAD_S * 1000
    if not -AHEAD_S * 1000 <= age_ms <= OLDEST_S * 1000:
        return None
    return min(now, now - age_ms / 1000)
