"""Sum what telemetry reports of one session. Each channel (events, metrics, spans) is summed by itself: they report the same spend.

Every figure is unproven. An impossible figure is refused, and one that is reported twice counts once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from console.domain.budget import Usage
from console.domain.spend import MOST_TOKENS, NANO
from console.sources.telemetry.items import CUMULATIVE, DELTA, Item, Value

MOST_USD = 10_000.0
"""Of one answer, or of one export of a counter; more is nothing that a program spent."""
MOST_SESSION_USD = 1_000_000.0
MOST_SESSION_TOKENS = 10**12
SERIES_MAX = 400
"""Counters of one session that are told apart."""
_SERIES = ("model", "type", "query_source", "agent.name")
_TOKEN_KINDS = ("input", "output", "cacheRead", "cacheCreation")


class Refused(ValueError):
    """A figure or name that is not taken; ``args[0]`` says what it is."""


@dataclass(slots=True)
class Channel:
    """One way in which a session's spend is told."""

    answers: int = 0
    tokens: int = 0
    nano: int = 0
    """Nano-dollars."""
    unpriced: int = 0
    """Answers of which no price is known."""

    def add(self, *, answers: int = 0, tokens: int = 0, nano: int = 0, unpriced: int = 0) -> None:
        """Takes what one item says. Refused, and then nothing of it."""
        if self.nano + nano > MOST_SESSION_USD * NANO or self.tokens + tokens > MOST_SESSION_TOKENS:
            raise Refused("a sum that no session spends")
        self.answers += answers
        self.tokens += tokens
        self.nano += nano
        self.unpriced += unpriced


@dataclass(slots=True)
class _Series:
    start: int
    at: int
    value: float


@dataclass(slots=True)
class Sums:
    """All channels of one session."""

    events: Channel = field(default_factory=Channel)
    metrics: Channel = field(default_factory=Channel)
    spans: Channel = field(default_factory=Channel)
    _series: dict[tuple[str, ...], _Series] = field(default_factory=dict)

    def usage(self) -> Usage:
        """The larger of what the channels say."""
        all_of_it = (self.events, self.metrics, self.spans)
        return Usage(
            iterations=max(one.answers for one in all_of_it),
            tokens=max(one.tokens for one in all_of_it),
            cost_usd=max(one.nano for one in all_of_it) / NANO,
        )

    def unpriced(self) -> int:
        """Return the number of answers without a cost."""
        return self.events.unpriced or (0 if self.metrics.nano or self.events.answers else self.spans.unpriced)

    def cost(self, item: Item) -> None:
        """A data point of a counter of dollars. Refused."""
        self.metrics.add(nano=round(self._grown(item, number(item.value, MOST_USD)) * NANO))

    def tokens(self, item: Item) -> None:
        """A data point of a counter of tokens. Refused."""
        value = number(item.value, float(MOST_TOKENS))
        if str(item.attributes.get("type", "")) in _TOKEN_KINDS:
            self.metrics.add(tokens=round(self._grown(item, value)))

    def _grown(self, item: Item, value: float) -> float:
        """By how much a counter grew; nothing where the same export comes again."""
        start, at = whole(item.start), whole(item.at)
        key = (item.name, *(str(item.attributes.get(name, "")) for name in _SERIES))
        had = self._series.get(key)
        if had is None and len(self._series) >= SERIES_MAX:
            raise Refused(f"more than {SERIES_MAX} counters of one session")
        if item.temporality == DELTA:
            if had is not None and at <= had.at:
                return 0.0  # an export that was sent again
            self._series[key] = _Series(start, at, value)
            return value
        if item.temporality != CUMULATIVE:
            raise Refused("a counter that does not say whether it is a sum or a difference")
        if had is None or start > had.start:  # the program began anew
            self._series[key] = _Series(start, at, value)
            return value
        if start < had.start or at <= had.at:
            return 0.0
        if value < had.value:
            raise Refused("a counter that decreases")
        self._series[key] = _Series(start, at, value)
        return value - had.value


def number(value: Value | None, most: float) -> float:
    """A figure as a number from 0 to ``most``. Refused."""
    if value is None or isinstance(value, bool):
        raise Refused("a figure that is no number")
    try:
        read = float(value)
    except (ValueError, OverflowError):
        raise Refused("a figure that is no number") from None
    if math.isnan(read):
        raise Refused("a figure that is no number")
    if math.isinf(read):
        raise Refused("an infinite figure")
    if read < 0:
        raise Refused("a negative figure")
    if read > most:
        raise Refused("a figure that nothing can have used")
    return read


def whole(value: Value) -> int:
    """A time in nanoseconds. Refused."""
    try:
        read = int(value)
    except (ValueError, OverflowError):
        raise Refused("a time that is no number") from None
    if not 0 <= read < 2**64:
        raise Refused("a time that no clock shows")
    return read


def counts(attributes: Mapping[str, Value], *names: str) -> list[int]:
    """Tokens by name, 0 for those that are not said. Refused."""
    return [round(number(attributes[name], MOST_TOKENS)) if name in attributes else 0 for name in names]
