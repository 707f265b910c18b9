"""What readers of transcripts share: what one pass met, moments as they are written, and how much of one record is taken apart."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

TOLERANT_MAX = 4 << 20
"""Longest record in bytes that is taken apart field by field: programs write a hundredth of it, and parsing takes ten times its size."""
_LATEST = 4e9


@dataclass(slots=True)
class Reading:
    """What one pass met."""

    answers: int = 0
    odd: int = 0
    """Records with usage that could not be read, or whose numbers no model gives: said, never guessed."""


def at_of(text: str) -> float:
    """ISO 8601 as seconds since the epoch; 0: not known."""
    try:
        at = datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0
    return at if 0 < at < _LATEST else 0.0
