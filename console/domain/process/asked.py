"""Processes that Watchfloor itself runs for a moment, to ask an agent program for its version. They are no agents."""

from __future__ import annotations

ASKED: set[int] = set()
"""Their pids, for as long as they run."""
