"""How much of a subscription's window is used."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """One window of one subscription, as it was last seen."""

    minutes: int
    share: float
    """0 to 1; above: beyond it."""
    renews_at: float | None
    """Seconds since the epoch; None: not said."""
    seen_at: float
