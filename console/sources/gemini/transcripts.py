"""What Gemini CLI's chats say that answers used: ``~/.gemini/tmp/PROJECT/chats/session-*.jsonl``, sub-agents in ``chats/SESSION/ID.jsonl``.

Read of version 0.61. An answer is written again with each of its tool calls, under one id. ``input`` holds what came from the cache.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from console.domain.spend import Answer, Tokens
from console.sources.reading import at_of, count, records
from console.sources.spend.transcript_files import Folder, Opened, Transcripts
from console.sources.text import known, plain

SOURCE = "gemini"
_ID_MAX = 200


class _Record(msgspec.Struct):
    type: object = None
    id: object = None
    timestamp: object = None
    model: object = None
    tokens: object = None


_RECORDS = msgspec.json.Decoder(_Record)


class ChatLines:
    """One chat; which session it is stands in its first line."""

    def __init__(self, opened: Opened) -> None:
        self._of = opened
        self._session, self._agent = named(opened.path)
        self._session = opened.state or self._session
        self._project = plain(opened.path.split("/")[-4 if self._agent else -3], 500)

    def take(self, data: bytes) -> Iterator[Answer]:
        if not self._agent and not self._of.state and (found := _session_of(data)):
            self._session = found
        for record in records(data, b'"tokens"', of=_RECORDS, seen=self._of.seen):
            try:
                answer = self._answer(record)
            except ValueError:
                self._of.seen.odd += 1
                continue
            if answer is not None:
                self._of.seen.answers += 1
                yield answer

    def state(self) -> str:
        return "" if self._agent else self._session

    def _answer(self, record: _Record) -> Answer | None:
        if record.type != "gemini" or not isinstance(record.tokens, dict):
            return None
        name, tokens = plain(record.id, _ID_MAX), tokens_of(record.tokens)
        if not name or not tokens.is_sane():
            raise ValueError("it names no answer, or no model gives such counts")
        at, where = at_of(record.timestamp), (self._session, self._agent, self._project)
        return Answer(SOURCE, name, at, known(record.model), "", *where, tokens, None, self._of.uid, self._of.ours)


def tokens_of(said: dict[str, Any]) -> Tokens:
    """Raises ValueError. Thoughts are output, what tools put into the prompt is input."""
    given, output, cached = count(said, "input"), count(said, "output"), count(said, "cached")
    thoughts, tool, total = count(said, "thoughts"), count(said, "tool"), count(said, "total")
    is_inside = cached <= given and total == given + output + thoughts + tool
    if not (given or output or cached or thoughts or tool):
        output = total  # older versions name the sum alone
    return Tokens(given - (cached if is_inside else 0) + tool, cached, 0, 0, output + thoughts)


def named(path: str) -> tuple[str, str]:
    """(session, sub-agent) by the file's place; a session's own file names only the first letters of its id."""
    parts = path.split("/")
    stem = plain(parts[-1].removesuffix(".jsonl"), 64)
    return (plain(parts[-2], 64), stem) if len(parts) > 2 and parts[-2] != "chats" else (stem, "")


def _session_of(data: bytes) -> str:
    try:
        record = json.loads(data[: data.find(b"\n") + 1][:65_536] or b"{}")
    except (ValueError, RecursionError):
        return ""
    return plain(record.get("sessionId"), 64) if isinstance(record, dict) else ""


def _is_chat(path: str) -> bool:
    return path.endswith(".jsonl") and "/chats/" in path


_CHATS = (Folder("", ".gemini", "tmp"),)
TRANSCRIPTS = Transcripts(SOURCE, "google", _CHATS, ChatLines, own=_CHATS, is_one=_is_chat)
