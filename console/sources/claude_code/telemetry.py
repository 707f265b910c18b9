"""What Claude Code's telemetry says: an event for each request to its model, two counters."""

from __future__ import annotations

from console.domain.spend import NANO
from console.sources.telemetry.dialect import Heard, Telemetry
from console.sources.telemetry.items import Item, stamp_of
from console.sources.telemetry.sums import MOST_USD, counts, number
from console.sources.text import plain

COST, TOKENS = "claude_code.cost.usage", "claude_code.token.usage"


def _answer(_session: str, _model: str, item: Item) -> Heard:
    said = item.attributes
    tokens = sum(counts(said, "input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens"))
    cost = number(said["cost_usd"], MOST_USD) if "cost_usd" in said else None
    key = plain(said.get("request_id", "")) or stamp_of(item)
    return Heard(key, tokens, round(cost * NANO) if cost is not None else None)


TELEMETRY = Telemetry({"api_request": _answer}, "claude_code.", COST, TOKENS)
