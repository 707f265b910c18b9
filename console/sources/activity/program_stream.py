"""Read what a started program writes, line by line: whole lines out of hostile bytes, and the one form of every program's events.

An event is a dict with ``kind`` and texts of bounded length, every one of them hostile:

* ``session`` (model, version, session)
* ``message`` (role, text)
* ``tool_call`` (id, tool, arguments)
* ``tool_result`` (id, text, error)
* ``usage`` (answer, model, tokens)
* ``turn`` (ok, text)
* ``subagent`` (id, what, text)
* ``control`` (id, ok, text)
* ``asked`` (id, what, text)
* ``output`` (text: what is no event of the program's)
* ``trouble`` (text: ours)

``parent``: the tool call of the sub-agent from which it comes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from console.domain.spend import Answer

MOST_LINE = 4 << 20
"""Longest line in bytes that is read; the rest of a longer one is passed over."""
MOST_TEXT = 16_384
"""Characters of one text of an event."""
MOST_ID = 200
Event = dict[str, Any]


@dataclass
class Heard:
    """What one line told."""

    events: list[Event] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    total_usd: float | None = None
    """What the program says it has cost since its start."""
    total_tokens: int = 0
    """What the program says it has used since its start."""
    tool_calls: int = 0
    action: str = ""
    """A few words for the fleet: what it does now."""
    reply: list[dict[str, Any]] = field(default_factory=list)
    """What the program must be told at once."""


class Stream(Protocol):
    """One program's language."""

    def hear(self, line: bytes) -> Heard:
        """What one line told."""
        ...

    def begin(self, prompt: str) -> list[dict[str, Any]]:
        """What is written before anything else."""
        ...

    def message(self, text: str) -> list[dict[str, Any]]:
        """What is written to say ``text``."""
        ...

    def interrupt(self, request_id: str) -> list[dict[str, Any]]:
        """What is written to end the present turn."""
        ...

    def is_busy(self) -> bool:
        """Whether the end of its input would break off a turn."""
        ...


class Lines:
    """Whole lines out of pieces, each with the offset behind it. A line over MOST_LINE is passed over, and counted."""

    def __init__(self, offset: int = 0) -> None:
        self.offset = offset
        """Behind the last byte taken in."""
        self.too_long = 0
        self._held = b""
        self._skipping = False

    @property
    def whole(self) -> int:
        """Where the next line begins."""
        return self.offset - len(self._held)

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """(offset behind the line, line without its end) for every line that became whole."""
        at = self.offset - len(self._held)
        self.offset += len(data)
        *lines, self._held = (self._held + data).split(b"\n")
        for line in lines:
            at += len(line) + 1
            if self._skipping:
                self._skipping = False
            elif len(line) > MOST_LINE:
                self.too_long += 1
            elif line.strip():
                yield at, line
        if len(self._held) > MOST_LINE or (self._skipping and self._held):
            self.too_long += not self._skipping
            self._skipping, self._held = True, b""


def parsed(line: bytes) -> dict[str, Any] | None:
    """The line as an object; None: it is none (words on stderr, half a line, a bomb of brackets)."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def output_event(line: bytes) -> Event:
    """A line that is no event."""
    return {"kind": "output", "text": bounded(line.decode("utf-8", "backslashreplace"))}


def bounded(value: object, most: int = MOST_TEXT) -> str:
    """A text of bounded length, whatever came; what was left out is said."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else shown(value, most)
    # A lone surrogate can be neither stored nor sent.
    text = text[: most + 1].encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= most else f"{text[:most]}… (cut)"


def shown(value: object, most: int = MOST_TEXT) -> str:
    """Any JSON value as text."""
    try:
        return json.dumps(value, ensure_ascii=False)[: most + 1]
    except (ValueError, TypeError, RecursionError):
        return "(cannot be shown)"


def part(record: object, name: str) -> dict[str, Any]:
    """A field that should be an object."""
    value = record.get(name) if isinstance(record, dict) else None
    return value if isinstance(value, dict) else {}


def word(record: object, name: str, most: int = MOST_ID) -> str:
    """A field that should be a short text."""
    value = record.get(name) if isinstance(record, dict) else None
    return bounded(value, most) if isinstance(value, str) else ""


def count(record: object, name: str) -> int:
    """A field that should be a count; anything else reads as 0, and what no model gives as -1, which is never sane."""
    value = record.get(name) if isinstance(record, dict) else None
    return value if type(value) is int else 0 if value is None else -1


def encoded(messages: list[dict[str, Any]]) -> bytes:
    """One line each, as programs read them."""
    return b"".join(json.dumps(m).encode() + b"\n" for m in messages)
