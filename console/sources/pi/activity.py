"""What pi's sessions say that an agent did."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from console.domain.activity import Entry
from console.sources.activity.files import Activity, Whereabouts
from console.sources.activity.records import RecordLines, call, message, result, thinking
from console.sources.activity.text import dict_of, text_of, words
from console.sources.pi.transcripts import SOURCE, TRANSCRIPTS, SessionLines

_ID = re.compile(r"[A-Za-z0-9-]{1,64}\Z")


def parts(record: dict[str, Any]) -> Iterator[Entry]:
    """What one record says."""
    said = dict_of(record, "message")
    role, content = text_of(said, "role"), said.get("content")
    if record.get("type") != "message":
        return
    if role == "user":
        yield from message("user", words(content))
    elif role == "toolResult":
        yield result(text_of(said, "toolCallId"), words(content), failed=said.get("isError") is True)
    elif role == "bashExecution":
        yield call("bash", text_of(record, "id"), {"command": text_of(said, "command")})
        yield result(text_of(record, "id"), text_of(said, "output"), failed=said.get("exitCode") not in (0, None))
    elif role == "assistant":
        for block in content[:1000] if isinstance(content, list) else ():
            kind = block.get("type") if isinstance(block, dict) else ""
            if kind == "text":
                yield from message("assistant", text_of(block, "text"))
            elif kind == "thinking":
                yield from thinking(text_of(block, "thinking"))
            elif kind == "toolCall":
                yield call(text_of(block, "name"), text_of(block, "id"), block.get("arguments"))


def _find(folders: list[Path], where: Whereabouts, _wide: bool) -> Path | None:
    slug = where.cwd.lstrip("/").replace("/", "-").replace(":", "-")
    if not _ID.match(where.session):
        return None
    return next((path for folder in folders for path in (folder / f"--{slug}--").glob(f"*_{where.session}.jsonl")), None)


ACTIVITY = Activity(SOURCE, TRANSCRIPTS.folders[0], partial(RecordLines, parts, partial(SessionLines, SOURCE)), _find)
