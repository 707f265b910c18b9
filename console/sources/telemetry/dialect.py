"""What an agent kind's telemetry says in words of its own, beside OpenTelemetry's conventions: one value for each kind that has any."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from console.domain.spend import Answer
from console.sources.telemetry.items import Item


@dataclass(frozen=True, slots=True)
class Heard:
    """One answer, as an event tells it."""

    key: str
    """By which one that is told twice counts once."""
    tokens: int
    nano: int | None = None
    """Nano-dollars, by the program's own word; None: it says none."""
    to_price: Answer | None = None
    """What the price table is asked about; None: nothing."""


@dataclass(frozen=True, slots=True)
class Telemetry:
    """Names of a kind's events and counters."""

    answers: Mapping[str, Callable[[str, str, Item], Heard | None]]
    """By the name of an event: (session, model, event) -> the answer that it tells, or None. Raises Refused."""
    prefix: str = ""
    """Of its events' names; it is taken away."""
    cost: str = ""
    """Its counter of US dollars."""
    tokens: str = ""
    """Its counter of tokens."""
