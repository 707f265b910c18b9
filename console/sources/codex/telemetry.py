"""What Codex's telemetry says: an event for each answer that its model completed, without a price."""

from __future__ import annotations

from console.domain.spend import Answer, Tokens
from console.sources.codex.transcripts import TRANSCRIPTS
from console.sources.telemetry.dialect import Heard, Telemetry
from console.sources.telemetry.items import Item, stamp_of
from console.sources.telemetry.sums import Refused, counts


def _answer(session: str, model: str, item: Item) -> Heard | None:
    said = item.attributes
    if said.get("event.kind") != "response.completed" or "input_token_count" not in said:
        return None  # the stream's own end tells no counts
    names = ("input_token_count", "output_token_count", "cached_token_count", "cache_write_token_count")
    plain_in, out, cached, written = counts(said, *names)
    if cached + written > plain_in:
        raise Refused("more cached input than input")
    stamp = stamp_of(item)
    tokens = Tokens(plain_in - cached - written, cached, written, 0, out)
    answer = Answer(TRANSCRIPTS.source, stamp, 0.0, model, "", session, "", "", tokens)
    return Heard(f"{stamp} {plain_in} {out}", plain_in + out, to_price=answer)


TELEMETRY = Telemetry({"codex.sse_event": _answer})
