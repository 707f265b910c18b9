"""Who was seen a moment ago and is not now: said for a little longer, with all it used, for a last answer is priced after it is written."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from console.domain.agent import Sighting
from console.sources.interface import GONE

FAREWELL_S = 30.0
"""Seconds for which an ended session is still reported: longer than any price takes on a busy machine."""
MOST = 200
"""The most ended rows at a time, the newest ones. So a flood of short sessions cannot hide the ones that live."""


class Farewells:
    """For one thread at a time."""

    def __init__(self) -> None:
        self._left: dict[str, tuple[float, Callable[[], list[Sighting]]]] = {}

    def add(self, key: str, again: Callable[[], list[Sighting]]) -> None:
        """``key`` is not seen any more; ``again`` makes its last rows with what is known of their use by then."""
        self._left.pop(key, None)
        self._left[key] = time.monotonic() + FAREWELL_S, again
        while len(self._left) > MOST:
            del self._left[next(iter(self._left))]

    def drop(self, key: str) -> None:
        """It is seen again."""
        self._left.pop(key, None)

    def now(self) -> list[Sighting]:
        """Rows that tell of no process: whatever runs now, it is not theirs."""
        if not self._left:
            return []
        tick = time.monotonic()
        self._left = {key: one for key, one in self._left.items() if one[0] > tick}
        rows = [row for _, again in reversed(self._left.values()) for row in again()[:MOST]][:MOST]
        return [replace(row, status=GONE, process=None) for row in rows]
