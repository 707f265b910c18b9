"""What Gemini CLI's chats say that a session did."""

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
from console.sources.gemini.transcripts import SOURCE, TRANSCRIPTS, ChatLines

_ID = re.compile(r"[A-Za-z0-9-]{1,64}\Z")
_SHOWN = re.compile(r"(\S{1,100}) \((\S{1,60}) MCP Server\)\Z")
_CONTEXT = "<session_context>"
"""How the message begins that the program writes itself in the user's name."""


def parts(record: dict[str, Any]) -> Iterator[Entry]:
    """What one record says."""
    kind, content = record.get("type"), record.get("content")
    text = words(content)
    if kind == "user" and not text.startswith(_CONTEXT):
        yield from message("user", text)
    elif kind == "gemini":
        for thought in listed(record, "thoughts"):
            yield from thinking(f"{text_of(thought, 'subject')} {text_of(thought, 'description')}")
        yield from message("assistant", text)
        for one in listed(record, "toolCalls"):
            yield call(_tool(one), text_of(one, "id"), one.get("args"))
            if text_of(one, "status") in ("success", "error", "cancelled"):
                yield result(text_of(one, "id"), _output(one), failed=text_of(one, "status") != "success")


def listed(record: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects of a list."""
    found = record.get(name)
    return [one for one in found[:1000] if isinstance(one, dict)] if isinstance(found, list) else []


def _tool(one: dict[str, Any]) -> str:
    """A tool's name; of an MCP server as other programs write it, since ``mcp_SERVER_TOOL`` does not tell where the server's ends."""
    name, shown = text_of(one, "name"), _SHOWN.match(text_of(one, "displayName"))
    return f"mcp__{shown[2]}__{shown[1]}" if shown and name == f"mcp_{shown[2]}_{shown[1]}" else name


def _output(one: dict[str, Any]) -> str:
    said = [dict_of(dict_of(part, "functionResponse"), "response") for part in listed(one, "result")]
    return "\n".join(text_of(part, "output") or text_of(part, "error") for part in said)


def _find(folders: list[Path], where: Whereabouts, _wide: bool) -> Path | None:
    """A session's file names the first letters of its id; a sub-agent's is named by all of its own."""
    if not _ID.match(where.session) or not _ID.match(where.sub or "-"):
        return None
    for folder in folders:
        if where.sub:
            found = folder.glob(f"*/chats/{where.session}/{where.sub}.jsonl")
        else:
            found = folder.glob(f"*/chats/session-*-{where.session[:8]}.jsonl")
        if path := next(found, None):
            return path
    return None


ACTIVITY = Activity(SOURCE, TRANSCRIPTS.folders[0], partial(RecordLines, parts, ChatLines), _find)
