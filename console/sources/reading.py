"""What readers of transcripts share: what one pass met, records, moments and counts as they are written. All of it is hostile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from console.domain.spend import NANO

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


def records(data: bytes, mark: bytes, seen: Reading) -> Iterator[dict[str, Any]]:
    """The objects in whole lines that hold ``mark``; what cannot be read, or is too long, is counted."""
    for line in data.split(b"\n"):
        if mark not in line:
            continue
        try:
            record = json.loads(line) if len(line) <= TOLERANT_MAX else None
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict):
            yield record
        else:
            seen.odd += 1


def count(record: object, *names: str) -> int:
    """A count in an object, under the first of these names that is there; 0: none is. Raises ValueError on what is no count."""
    found: dict[str, Any] = record if isinstance(record, dict) else {}
    for name in names:
        value = found.get(name)
        if value is not None:
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
                raise ValueError(f"{name} is no count")
            return int(value)
    return 0


def reported(cost: object) -> int | None:
    """Nano-dollars that a program says an answer cost; None: it does not say, or says nothing, which is no price."""
    if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 < cost < 1e6:
        return None
    return round(cost * NANO)
