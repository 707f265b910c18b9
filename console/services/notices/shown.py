"""Notices to operators: shown on every console, and the newest kept for the next one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

KEPT = 50


class Notice(Protocol):
    """Shows a text on every console; from any thread."""

    def __call__(self, text: str, level: str = "amber") -> None: ...


class Notices:
    """The newest notices, each with when it was shown last."""

    __slots__ = ("_publish", "shown_at")

    def __init__(self, publish: Callable[[str, dict[str, Any]], None]) -> None:
        """``publish`` takes a kind and its data to every console, from any thread."""
        self._publish = publish
        self.shown_at: dict[str, float] = {}
        """Seconds since the epoch, the oldest notice first: what was so an hour ago must not read as if it were now."""

    def show(self, text: str, level: str = "amber") -> None:
        """Shows something on every console and keeps it for the next one; from any thread. Level ``over``: takes it back there."""
        kept = {known: at for known, at in self.shown_at.items() if known != text} | {text: time.time()}
        self.shown_at = dict(list(kept.items())[-KEPT:])
        self._publish("notice", {"level": level, "text": text})

    def lines(self, most: int) -> list[str]:
        """The newest notices, each with when it was shown last."""
        newest = list(self.shown_at.items())[-most:]
        return [f"{time.strftime('%m-%d %H:%M:%S', time.localtime(at))}  {text}" for text, at in newest]
