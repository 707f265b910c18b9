"""Transcripts of one JSON object a line as entries: what each kind adds is what one object says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from console.domain.activity import Entry, Kind, source_id
from console.domain.spend import Answer
from console.sources.activity.files import Price
from console.sources.activity.text import arguments, record_of, spend_of, text_of, unreadable
from console.sources.reading import Reading, at_of
from console.sources.spend.transcript_files import Lines, Opened

Parts = Callable[[dict[str, Any]], Iterator[Entry]]


class RecordLines:
    """One file's lines. An entry is named by what it says: written again with more beside it, it is kept once."""

    def __init__(self, parts: Parts, lines: Callable[[Opened], Lines], price: Price) -> None:
        self._parts, self._price = parts, price
        self._answers = lines(Opened("/chats/-.jsonl", -1, False, "", Reading()))

    def take(self, line: bytes) -> list[Entry]:
        try:
            record = record_of(line)
            if not isinstance(record, dict):
                raise TypeError
            at = at_of(text_of(record, "timestamp"))
            found = [replace(entry, at=at, source_id=_name(record, entry)) for entry in self._parts(record)]
            return found + [spend_of(answer, self._price(answer), at, 0) for answer in self._spent(line)]
        except (ValueError, TypeError, AttributeError, RecursionError):
            return [unreadable(line)]

    def state(self) -> str:
        return ""

    def resume(self, state: str) -> None:
        """Nothing goes on from read to read."""

    def _spent(self, line: bytes) -> Iterator[Answer]:
        return self._answers.take(line + b"\n")


def _name(record: dict[str, Any], entry: Entry) -> str:
    said = (text_of(record, "id") or text_of(record, "uuid"), entry.kind, entry.who, entry.tool, entry.pair, entry.text, entry.failed)
    return source_id(json.dumps(said))


def message(who: str, text: str) -> Iterator[Entry]:
    """Yield a message, unless it is empty."""
    if text.strip():
        yield Entry(Kind.MESSAGE, "", who=who, text=text)


def thinking(text: str) -> Iterator[Entry]:
    """What a model thought, if it is anything."""
    if text.strip():
        yield Entry(Kind.THINKING, "", who="assistant", text=text)


def call(tool: str, pair: str, given: object) -> Entry:
    """A call of a tool."""
    return Entry(Kind.TOOL_CALL, "", tool=tool, pair=pair, text=arguments(given))


def result(pair: str, text: str, *, failed: bool) -> Entry:
    """What came of it."""
    return Entry(Kind.TOOL_RESULT, "", pair=pair, text=text, failed=failed)
