"""What the host's own instance would change for an account that runs Watchfloor by itself."""

from __future__ import annotations

from console.api.message import View


class GainView(View, kw_only=True):
    """A promise that is wider on the host's own instance."""

    name: str
    now: str
    then: str
    agents: list[str] = []
    """Those that it would change now; 20 at most."""


class InstallingView(View, kw_only=True):
    """What an account that runs Watchfloor by itself would have from the host's own instance, which has none of it in its status."""

    how: str
    """Commands for root."""
    gains: list[GainView]
