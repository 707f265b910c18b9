"""What is taken of OpenTelemetry: one data point, event or span, with the few attributes that are of use. Nothing else is kept.

Prompts, answers, tool arguments and names of files, which programs send as well, are dropped where they arrive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from console.sources.text import plain

Kind = Literal["metrics", "logs", "traces"]
Value = str | int | float | bool
ITEMS_MAX = 5000
"""Data points, events and spans of one request."""
ATTRIBUTES_MAX = 128
"""Looked at of one of them."""
TEXT_MAX = 200
DELTA, CUMULATIVE = 1, 2
_TEMPORALITY = {
    1: DELTA,
    2: CUMULATIVE,
    "AGGREGATION_TEMPORALITY_DELTA": DELTA,
    "AGGREGATION_TEMPORALITY_CUMULATIVE": CUMULATIVE,
}

PROVIDER = ("gen_ai.provider.name", "gen_ai.system")
"""Who answered (OpenTelemetry's conventions for generative AI), now and until version 1.36 of them."""
CACHE_READ = ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens", "gen_ai.usage.details.cache_read_tokens")
CACHE_WRITTEN = (
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
    "gen_ai.usage.details.cache_write_tokens",
)
"""By the conventions, and as instrumentations named them before."""
WANTED = frozenset(
    (
        *("service.name", "service.version", "session.id", "conversation.id", "gen_ai.conversation.id"),
        *(
            "event.name",
            "event.kind",
            "event.timestamp",
            "gen_ai.operation.name",
            "request_id",
            "gen_ai.response.id",
            "agent_id",
            "gen_ai.agent.id",
        ),
        *("model", "gen_ai.request.model", "gen_ai.response.model", "type", "query_source", "agent.name"),
        *("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens", "cost_usd"),
        *("input_token_count", "output_token_count", "cached_token_count", "cache_write_token_count"),
        *("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens"),
        *CACHE_READ,
        *CACHE_WRITTEN,
        *("service.instance.id", *PROVIDER),
    )
)


class Unreadable(ValueError):
    """A body that is no OTLP, or more of it than is taken. ``kind`` is one of few; ``where`` is the sender's doing."""

    def __init__(self, kind: str, where: str = "") -> None:
        super().__init__(f"{kind}: {where[:80]}" if where else kind)
        self.kind, self.where = kind, where[:80]


@dataclass(frozen=True, slots=True)
class Item:
    """One data point (``metrics``), event (``logs``) or span (``traces``)."""

    kind: Kind
    name: str
    """Of the metric, the event or the span."""
    attributes: Mapping[str, Value]
    """Those of WANTED, its resource's below its own."""
    value: Value | None = None
    """Of a data point."""
    start: Value = 0
    at: Value = 0
    """Nanoseconds, of a data point: they tell a repeated export from a new one, and are no clock of ours."""
    temporality: int = 0
    """DELTA, CUMULATIVE, or 0: neither is said."""
    ident: str = ""
    """Of a span."""


def text(value: object) -> str:
    """A foreign value as bounded text; anything but text is empty."""
    return value[:TEXT_MAX] if isinstance(value, str) else ""


def kept(pairs: Iterable[tuple[object, object]]) -> dict[str, Value]:
    """The wanted attributes, bounded."""
    found: dict[str, Value] = {}
    for number, (key, value) in enumerate(pairs):
        if number >= ATTRIBUTES_MAX:
            break
        if isinstance(key, str) and key in WANTED and isinstance(value, str | int | float):
            found[key] = value[:TEXT_MAX] if isinstance(value, str) else value
    return found


def temporality(value: object) -> int:
    """DELTA, CUMULATIVE or 0."""
    return _TEMPORALITY.get(value, 0) if isinstance(value, str | int) else 0


def counted(items: Iterator[Item]) -> Iterator[Item]:
    """The same, ended at the most that one request may hold. Unreadable."""
    for number, item in enumerate(items):
        if number >= ITEMS_MAX:
            raise Unreadable(f"more than {ITEMS_MAX} items in one request: what came after them was not taken")
        yield item


def event_name(*said: Any) -> str:
    """The first that names the event."""
    return next((name for one in said if (name := text(one))), "")


def stamp_of(item: Item) -> str:
    """When an event happened, in its program's own words."""
    return plain(item.attributes.get("event.timestamp", ""), 60)
