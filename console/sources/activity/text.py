"""Arguments, results and messages of programs as text that a person can read. What comes in is hostile, of any shape."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from console.domain.activity import Entry, Kind, source_id
from console.domain.spend import Answer

_FIRST = ("command", "cmd", "file_path", "notebook_path", "path", "pattern", "url", "query", "description", "prompt")
"""What a call is about; shown before its other arguments."""
_TEXT_KEYS = ("text", "thinking", "output_text", "content")
_LONGEST = 1 << 20
"""Characters handed on of one text; far more than is kept, so that no known secret is cut in two before it is taken out."""
_DECODER = msgspec.json.Decoder()


def record_of(line: bytes) -> object:
    """What a line holds. Raises ValueError, RecursionError. The strict reader is many times faster, the other takes more."""
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return json.loads(line)


def spend_of(answer: Answer, nano: int | None, at: float, turn: int) -> Entry:
    """Return the entry for what one answer used. ``nano`` None: no price is known, and the text tells that."""
    t = answer.tokens
    text = f"{t.input:,} in ({t.cache_read:,} from the cache), {t.output:,} out"
    text += "" if nano is not None else "; unpriced"
    name = source_id(answer.answer_id, "spend")
    return Entry(Kind.SPEND, name, at, text, turn=turn, tool=answer.model, tokens=t.total, cost_nano=nano)


def unreadable(line: bytes) -> Entry:
    """A line that is no record."""
    return Entry(Kind.ERROR, source_id(line), who="watchfloor", failed=True, text=f"A line of {len(line):,} bytes could not be read.")


def arguments(given: object) -> str:
    """``key: value``, a line each, the main one first; lines that go on are indented. Any other shape as JSON."""
    if isinstance(given, str):
        return arguments(_loaded(given)) if given[:1] == "{" and _loaded(given) is not None else given[:_LONGEST]
    if not isinstance(given, Mapping):
        return "" if given is None else _json(given)
    keys = sorted(given, key=lambda key: _FIRST.index(key) if key in _FIRST else len(_FIRST))
    return "\n".join(f"{key}: {_value(given[key])}" for key in keys)[:_LONGEST]


def _value(value: object) -> str:
    text = value if isinstance(value, str) else _json(value)
    return text[:_LONGEST].replace("\n", "\n    ")


def words(content: object) -> str:
    """The text of a message's or a result's content: a string, blocks, or something else as JSON."""
    if isinstance(content, str):
        return content[:_LONGEST]
    if isinstance(content, list):
        return "\n".join(part for block in content[:10_000] if (part := _block(block)))[:_LONGEST]
    return "" if content is None else _json(content)


def _block(block: object) -> str:
    if isinstance(block, str):
        return block
    if not isinstance(block, Mapping):
        return ""
    for key in _TEXT_KEYS:
        if isinstance(block.get(key), str):
            return str(block[key])
    kind = block.get("type")
    return f"[{kind}]" if isinstance(kind, str) else ""  # an image, a document: what it is, not its bytes


def text_of(record: Mapping[str, Any], *path: str) -> str:
    """The text at that place, or empty."""
    node: object = record
    for step in path:
        node = node.get(step) if isinstance(node, Mapping) else None
    return node if isinstance(node, str) else ""


def dict_of(record: object, key: str) -> dict[str, Any]:
    """The object at that key, or an empty one."""
    node = record.get(key) if isinstance(record, Mapping) else None
    return node if isinstance(node, dict) else {}


def paths_of_patch(patch: str) -> Iterable[tuple[str, str]]:
    """(what, path) of an apply_patch text."""
    for line in patch.splitlines()[:100_000]:
        for mark, what in (("*** Add File: ", "create"), ("*** Update File: ", "edit"), ("*** Delete File: ", "delete")):
            if line.startswith(mark):
                yield what, line.removeprefix(mark).strip()


def changed_lines(patch: object) -> str:
    """``+3 −1`` of a structured patch, or empty."""
    if not isinstance(patch, list):
        return ""
    lines = [line for hunk in patch[:10_000] for line in _lines(hunk)]
    more, less = sum(line[:1] == "+" for line in lines), sum(line[:1] == "-" for line in lines)
    return f"+{more} −{less}" if more or less else ""


def _lines(hunk: object) -> list[str]:
    lines = hunk.get("lines") if isinstance(hunk, Mapping) else None
    return [line for line in lines if isinstance(line, str)] if isinstance(lines, list) else []


def _loaded(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text[: _LONGEST * 4])
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)[:_LONGEST]
    except (ValueError, TypeError, RecursionError):
        return "(too deep to be shown)"
