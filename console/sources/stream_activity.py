"""What programs that we started say on their stdout: ``claude --output-format stream-json`` and ``codex exec --json``. Pure.

``entries_of_told`` takes the events as ``console.sources.program_stream`` tells them, ``entries_of_stream`` the programs' own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from console.domain.activity import Entry, Kind, source_id
from console.sources.activity_text import arguments, dict_of, text_of, words
from console.sources.claude_code.activity import ClaudeLines
from console.sources.reading import at_of

_NANO = 10**9
_MOST_USD = 1e6


def entries_of_stream(event: dict[str, Any], number: int = 0, at: float = 0.0) -> list[Entry]:
    """One event as entries. ``number`` counts the events of an agent: two that are alike are two. Unknown types give none."""
    try:
        raw = json.dumps(event, sort_keys=True, default=str)
        parts = list(_parts(event))
    except (ValueError, TypeError, RecursionError):
        return [Entry(Kind.ERROR, source_id(str(number)), at, "An event of its stream could not be read.", who="watchfloor", failed=True)]
    when = at_of(text_of(event, "timestamp")) or at
    return [replace(e, at=when, source_id=e.source_id or source_id(raw, f"{number}.{n}")) for n, e in enumerate(parts)]


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


def _parts(event: dict[str, Any]) -> Iterator[Entry]:
    kind = event.get("type")
    if kind in ("user", "assistant"):
        # The same shapes as in a transcript; what an answer used comes with its message.
        for entry in ClaudeLines().take(json.dumps(event).encode()):
            sub = text_of(event, "parent_tool_use_id")
            own = replace(entry, source_id=entry.source_id if entry.kind is Kind.SPEND else "")
            yield replace(own, who=f"{own.who} (sub-agent)".strip(), pair=own.pair) if sub else own
    elif kind == "result":
        yield _claude_end(event)
    elif kind == "system" and event.get("subtype") == "init":
        yield Entry(Kind.NOTE, "", who="program", text=f"session {text_of(event, 'session_id')}, {text_of(event, 'model')}")
    elif kind == "control_request" and text_of(event, "request", "subtype") == "can_use_tool":
        asked = dict_of(event, "request")
        tool, pair = text_of(asked, "tool_name"), text_of(asked, "tool_use_id")
        yield Entry(Kind.VERDICT, "", who="the program", tool=tool, pair=pair, verdict="ask", text=arguments(asked.get("input")))
    elif isinstance(kind, str):
        yield from _codex(kind, event)


def _claude_end(event: dict[str, Any]) -> Entry:
    cost = event.get("total_cost_usd")
    known = isinstance(cost, int | float) and 0 <= cost < _MOST_USD
    failed = event.get("is_error") is True
    said = "the turn failed" if failed else "the turn ended"
    said += f"; by its own word ${cost:,.4f} for the session so far" if known else ""
    denied = event.get("permission_denials")
    said += f"; {len(denied):,} calls were denied" if isinstance(denied, list) and denied else ""
    return Entry(Kind.ERROR if failed else Kind.NOTE, "", who="program", text=said, failed=failed)


def _codex(kind: str, event: dict[str, Any]) -> Iterator[Entry]:
    item = dict_of(event, "item")
    match kind:
        case "thread.started":
            yield Entry(Kind.NOTE, "", who="program", text=f"thread {text_of(event, 'thread_id')}")
        case "item.started" | "item.completed":
            yield from _item(item, done=kind == "item.completed")
        case "turn.completed":
            yield from _used(dict_of(event, "usage"))
        case "turn.failed" | "error":
            said = words(event.get("message")) or text_of(event, "error", "message")
            yield Entry(Kind.ERROR, "", who="program", failed=True, text=said or kind)


def _item(item: dict[str, Any], *, done: bool) -> Iterator[Entry]:
    pair = text_of(item, "id")
    match item.get("type"):
        case "command_execution" | "mcp_tool_call" | "web_search" as kind:
            if not done:
                given = {k: v for k, v in item.items() if k in ("command", "tool", "server", "arguments", "query")}
                yield Entry(Kind.TOOL_CALL, "", tool=str(kind), pair=pair, text=arguments(given))
            else:
                failed = item.get("exit_code") not in (0, None) or text_of(item, "status") == "failed"
                text = words(item.get("aggregated_output")) or words(item.get("result"))
                yield Entry(Kind.TOOL_RESULT, "", pair=pair, text=text, failed=failed)
        case "agent_message" if done:
            yield Entry(Kind.MESSAGE, "", who="assistant", text=text_of(item, "text"))
        case "reasoning" if done:
            yield Entry(Kind.THINKING, "", who="assistant", text=text_of(item, "text"))
        case "error" if done:
            yield Entry(Kind.ERROR, "", who="program", failed=True, text=text_of(item, "message"))
        case "file_change" if done:
            changes = item.get("changes")
            for change in changes[:1000] if isinstance(changes, list) else ():
                what = {"add": "create", "delete": "delete"}.get(text_of(change, "kind"), "edit") if isinstance(change, dict) else "edit"
                yield Entry(Kind.FILE, "", tool=what, ref=text_of(change, "path") if isinstance(change, dict) else "", pair=pair, text=what)


def _used(usage: dict[str, Any]) -> Iterator[Entry]:
    counts = {key: value for key in ("input_tokens", "cached_input_tokens", "output_tokens") if type(value := usage.get(key)) is int}
    total = counts.get("input_tokens", 0) + counts.get("output_tokens", 0)
    if total > 0:
        text = f"{counts.get('input_tokens', 0):,} in ({counts.get('cached_input_tokens', 0):,} from the cache)"
        yield Entry(Kind.SPEND, "", text=f"{text}, {counts.get('output_tokens', 0):,} out", tokens=total)
