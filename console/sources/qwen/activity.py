"""What Qwen Code's chats say that a session did."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from console.domain.activity import Entry
from console.sources.activity.files import Activity, Whereabouts
from console.sources.activity.records import RecordLines, call, message, result, thinking
from console.sources.activity.text import dict_of, text_of
from console.sources.qwen.transcripts import SOURCE, TRANSCRIPTS, ChatLines

_ODD = re.compile(r"[^A-Za-z0-9]")


def parts(record: dict[str, Any]) -> Iterator[Entry]:
    """What one record says."""
    kind, failed = record.get("type"), text_of(record, "toolCallResult", "status") not in ("", "success")
    said = dict_of(record, "message").get("parts")
    for part in said[:1000] if isinstance(said, list) and kind in ("user", "assistant", "tool_result") else ():
        if not isinstance(part, dict):
            continue
        text, asked, answered = text_of(part, "text"), dict_of(part, "functionCall"), dict_of(part, "functionResponse")
        if text and part.get("thought") is True:
            yield from thinking(text)
        elif text:
            yield from message("user" if kind == "user" else "assistant", text)
        elif asked:
            yield call(text_of(asked, "name"), text_of(asked, "id"), asked.get("args"))
        elif answered:
            given = dict_of(answered, "response")
            yield result(text_of(answered, "id"), text_of(given, "output") or text_of(given, "error"), failed=failed)


def _find(folders: list[Path], where: Whereabouts, wide: bool) -> Path | None:
    if not where.session or "/" in where.session or where.session in (".", ".."):
        return None
    for folder in folders:
        found = folder / _ODD.sub("-", where.cwd) / "chats" / f"{where.session}.jsonl"
        if found.is_file():
            return found
    return None


ACTIVITY = Activity(SOURCE, TRANSCRIPTS.folders[0], partial(RecordLines, parts, ChatLines), _find)
