"""What programs that we started say on their stdout, as ``program_stream`` tells it, in entries of activity. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from console.domain.activity import Entry, Kind, source_id
from console.sources.activity.text import arguments, text_of

_NANO = 10**9
_MOST_USD = 1e6


def entries_of_told(event: dict[str, Any], at: float = 0.0) -> list[Entry]:
    """An event of ``program_stream``; its place in the agent's output names it, so that one told twice is kept once."""
    when = event.get("at")
    moment = float(when) if isinstance(when, int | float) and 0 < when < 4e9 else at
    place = f"out:{event.get('offset')}.{event.get('n')}" if type(event.get("offset")) is int else ""
    found = []
    for n, entry in enumerate(_told(event, text_of(event, "text"))):
        who = f"{entry.who} (sub-agent)".strip() if text_of(event, "parent") else entry.who
        name = entry.source_id or (f"{place}.{n}" if place else source_id(f"{moment}{text_of(event, 'text')}", f"told.{n}"))
        found.append(replace(entry, at=moment, who=who, source_id=name))
    return found


def _told(event: dict[str, Any], text: str) -> Iterator[Entry]:
    pair, failed = text_of(event, "id"), event.get("error") is True or event.get("ok") is False
    match event.get("kind"):
        case "message":
            yield Entry(Kind.MESSAGE, "", text=text, who=text_of(event, "role") or "assistant")
        case "thinking":
            yield Entry(Kind.THINKING, "", text=text, who="assistant")
        case "tool_call":
            yield Entry(Kind.TOOL_CALL, "", text=arguments(event.get("arguments")), tool=text_of(event, "tool"), pair=pair)
        case "tool_result":
            yield Entry(Kind.TOOL_RESULT, "", text=text, pair=pair, failed=failed)
        case "usage":
            yield _told_usage(event)
        case "asked":
            yield Entry(Kind.VERDICT, "", text=f"{text_of(event, 'what')}: {text}", who="the program", pair=pair, verdict="ask")
        case "trouble":
            yield Entry(Kind.ERROR, "", text=text, who="watchfloor", failed=True)
        case "turn" | "control" as kind:
            said = f"{kind} {'failed' if failed else 'ended' if kind == 'turn' else 'done'}"
            yield Entry(Kind.ERROR if failed else Kind.NOTE, "", text=f"{said}: {text}" if text else said, who="program", failed=failed)
        case "session" | "subagent" | "output" as kind:
            words_of = " ".join(w for key in ("what", "model", "version", "session") if (w := text_of(event, key)))
            yield Entry(Kind.NOTE, "", text=f"{words_of} {text}".strip() or str(kind), who="output" if kind == "output" else "program")


def _told_usage(event: dict[str, Any]) -> Entry:
    tokens = event.get("tokens")
    total = tokens if type(tokens) is int else sum(v for v in tokens.values() if type(v) is int) if isinstance(tokens, dict) else 0
    cost = event.get("cost_usd")
    nano = round(cost * _NANO) if isinstance(cost, float) and 0 <= cost < _MOST_USD else None
    # What came since the last word on the same answer: each is an entry, so that they add up.
    return Entry(Kind.SPEND, "", text=f"{total:,} tokens", tool=text_of(event, "model"), tokens=max(0, total), cost_nano=nano)
