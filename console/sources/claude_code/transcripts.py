"""Read from Claude Code's transcripts what its answers used.

The format is internal to Claude Code and may change. So every field is optional, and unknown fields and types of records are skipped. One
answer is written once for each block of its content, each time with its usage, and again in every session resumed from it. So a sum must
count its id once. The id consists of the message's and the request's: a gateway may give every message the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from console.domain.spend import ID_PARTS, NANO, Answer, Tokens, with_input
from console.sources.reading import TOLERANT_MAX, Reading, at_of, lines_with
from console.sources.spend.transcript_files import Folder, Opened, Transcripts
from console.sources.text import known, plain

SOURCE = "claude_code"
FOLDERS = (".claude", ".watchfloor/claude")
"""Where in the home of an agent of ours it keeps its files: by itself, or as a conversation that was started here is told to."""
_MARK = b'put_tokens"'
"""In every record that counts, however it is spaced: ``input_tokens``, ``output_tokens``. Longer is found faster."""
_ID_MAX = 200


class _Creation(msgspec.Struct):
    ephemeral_5m_input_tokens: int = 0
    ephemeral_1h_input_tokens: int = 0


class _Tools(msgspec.Struct):
    web_search_requests: int = 0


class _Usage(msgspec.Struct):
    input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    output_tokens: int = 0
    cache_creation: _Creation | None = None
    server_tool_use: _Tools | None = None
    service_tier: str | None = None


class _Message(msgspec.Struct):
    id: str = ""
    model: str = ""
    usage: _Usage | None = None


class _Record(msgspec.Struct):
    type: str = ""
    timestamp: str = ""
    sessionId: str = ""  # noqa: N815 - as it is written
    requestId: str = ""  # noqa: N815
    agentId: str = ""  # noqa: N815
    cwd: str = ""
    costUSD: float | None = None  # noqa: N815
    message: _Message | None = None


_DECODER = msgspec.json.Decoder(_Record)


def answers(data: bytes, session: str, agent: str, seen: Reading, uid: int = -1, *, ours: bool = False) -> Iterator[Answer]:
    """The answers in whole lines. ``session``, ``agent``: by the file's name, for records that do not say; ``uid``: whose file it is."""
    for line in lines_with(data, _MARK):
        found = _answer(line, session, agent, seen, uid, ours)
        if found is not None:
            yield found


def _answer(line: bytes, session: str, agent: str, seen: Reading, uid: int, ours: bool) -> Answer | None:
    record = _record(line)
    if record is None:
        seen.odd += 1
        return None
    message = record.message
    if record.type != "assistant" or message is None or message.usage is None or message.model == "<synthetic>":
        return None
    tokens = _tokens(message.usage)
    if not message.id or len(message.id) > _ID_MAX or not tokens.is_sane():
        seen.odd += 1
        return None
    seen.answers += 1
    tier = message.usage.service_tier or ""
    return Answer(
        SOURCE,
        _id(message.id, record.requestId, tokens),
        at_of(record.timestamp),
        known(message.model),
        "" if tier == "standard" else known(tier, 40),
        known(record.sessionId, 64) or session,
        known(record.agentId, 64) or agent,
        known(record.cwd, 500),
        tokens,
        _reported(record.costUSD),
        uid,
        ours,
    )


def _id(message: str, request: str, tokens: Tokens) -> str:
    """One answer's own id. Where no request is named, the input tells one from another: every block of an answer repeats it."""
    return plain(f"{message}{ID_PARTS}{request[:_ID_MAX]}" if request else with_input(message, tokens), 2 * _ID_MAX)


def _record(line: bytes) -> _Record | None:
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return _tolerant(line)


def _tokens(usage: _Usage) -> Tokens:
    written, parts = usage.cache_creation_input_tokens, usage.cache_creation
    hour = parts.ephemeral_1h_input_tokens if parts is not None else 0
    if parts is not None:
        written = max(written, hour + parts.ephemeral_5m_input_tokens)
    searches = usage.server_tool_use.web_search_requests if usage.server_tool_use is not None else 0
    return Tokens(usage.input_tokens, usage.cache_read_input_tokens, written - hour, hour, usage.output_tokens, searches)


def _reported(cost: float | None) -> int | None:
    return round(cost * NANO) if cost is not None and 0 < cost < 1e6 else None


def _tolerant(line: bytes) -> _Record | None:
    """The record field by field: one of an unexpected type is left out, a count of an unexpected type makes it unreadable."""
    if len(line) > TOLERANT_MAX:
        return None
    try:
        raw = json.loads(line.decode("utf-8", "replace"))
        message = raw["message"]
        usage = message["usage"] if isinstance(message, dict) else None
        if not isinstance(usage, dict):
            return _Record()
        creation, tools = usage.get("cache_creation"), usage.get("server_tool_use")
        return _Record(
            _text(raw, "type"),
            _text(raw, "timestamp"),
            _text(raw, "sessionId"),
            _text(raw, "requestId"),
            _text(raw, "agentId"),
            _text(raw, "cwd"),
            None,
            _Message(
                _text(message, "id"),
                _text(message, "model"),
                _Usage(
                    _count(usage, "input_tokens"),
                    _count(usage, "cache_creation_input_tokens"),
                    _count(usage, "cache_read_input_tokens"),
                    _count(usage, "output_tokens"),
                    _created(creation) if isinstance(creation, dict) else None,
                    _Tools(_count(tools, "web_search_requests")) if isinstance(tools, dict) else None,
                    _text(usage, "service_tier"),
                ),
            ),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _created(creation: dict[str, Any]) -> _Creation:
    return _Creation(_count(creation, "ephemeral_5m_input_tokens"), _count(creation, "ephemeral_1h_input_tokens"))


def _text(record: dict[str, Any], key: str) -> str:
    value = record.get(key)
    return value if isinstance(value, str) else ""


def _count(record: dict[str, Any], key: str) -> int:
    value = record.get(key)
    if value is None:
        return 0
    if type(value) is not int:
        raise ValueError(f"{key} is no whole number")
    return value


@dataclass(frozen=True, slots=True)
class _Lines:
    """Nothing in a file relies on what stood earlier."""

    session: str
    agent: str
    of: Opened

    def take(self, data: bytes) -> Iterator[Answer]:
        return answers(data, self.session, self.agent, self.of.seen, self.of.uid, ours=self.of.ours)

    def state(self) -> str:
        return ""


def _lines(opened: Opened) -> _Lines:
    return _Lines(*named(opened.path), opened)


def named(path: str) -> tuple[str, str]:
    """(session, sub-agent) by the file's place: ``<session>.jsonl``, or ``<session>/…/agent-<id>.jsonl``."""
    parts = path.split("/")
    stem = plain(parts[-1].removesuffix(".jsonl"), 64)
    if stem.startswith("agent-") and "projects" in parts:
        below = parts[len(parts) - parts[::-1].index("projects") :]
        if len(below) > 2:
            return plain(below[1], 64), stem.removeprefix("agent-")
    return stem, ""


TRANSCRIPTS = Transcripts(
    SOURCE,
    "anthropic",
    (Folder("CLAUDE_CONFIG_DIR", ".claude", "projects"),),
    _lines,
    own=tuple(Folder("", config, "projects") for config in FOLDERS),
)
