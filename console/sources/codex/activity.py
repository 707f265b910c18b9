"""What Codex's rollouts say that a thread did. Every field is optional, unknown types are passed over.

The rollout of a sub-agent begins with a copy of its parent's lines: those are the parent's, and are not shown again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from console.domain.activity import Entry, Kind, source_id
from console.domain.spend import Answer
from console.sources.activity.files import Activity, Whereabouts
from console.sources.activity.text import arguments, dict_of, paths_of_patch, record_of, spend_of, text_of, unreadable, words
from console.sources.codex import transcripts as codex_usage
from console.sources.reading import Reading, at_of

SOURCE = "codex"
_THREAD = re.compile(r"^[0-9a-f-]{8,64}\Z")
_CONTEXT = ("<environment_context>", "<user_instructions>", "<permissions", "# AGENTS.md")
"""How messages begin that the program writes itself in the user's name."""
_DAYS_MAX = 2000


@dataclass(slots=True)
class CodexLines:
    """One rollout's lines as entries; ``thread`` and ``turn`` go on from read to read."""

    price: Callable[[Answer], int | None] = lambda _answer: None
    thread: codex_usage.Thread = field(default_factory=codex_usage.Thread)
    turn: int = 0

    def take(self, line: bytes) -> list[Entry]:
        """What a line says; one that cannot be read is an entry of its own."""
        try:
            record = record_of(line)
            if not isinstance(record, dict):
                raise TypeError
        except (ValueError, TypeError, RecursionError):
            return [unreadable(line)]
        answers = list(codex_usage.answers(line, self.thread, Reading()))
        if not self.thread.own:
            return []
        at = at_of(text_of(record, "timestamp"))
        payload = dict_of(record, "payload")
        parts = list(self._parts(text_of(record, "type"), payload))
        found = [replace(e, at=at, turn=self.turn, source_id=source_id(line, number)) for number, e in enumerate(parts)]
        return found + [spend_of(answer, self.price(answer), at, self.turn) for answer in answers]

    def state(self) -> str:
        """For the next read."""
        return json.dumps({"turn": self.turn, "thread": self.thread.kept()})

    def resume(self, state: str) -> None:
        """From what ``state`` gave."""
        try:
            known = json.loads(state)
            self.thread = codex_usage.Thread(**known["thread"])
            self.turn = int(known["turn"])
        except (ValueError, TypeError, KeyError):
            return

    def _parts(self, kind: str, payload: dict[str, Any]) -> Iterator[Entry]:
        if kind == "response_item":
            yield from self._item(payload)
        elif kind == "event_msg":
            yield from _event(payload)

    def _item(self, item: dict[str, Any]) -> Iterator[Entry]:
        pair = text_of(item, "call_id") or text_of(item, "id")
        match item.get("type"):
            case "message":
                yield from self._message(item)
            case "reasoning" if text := words(item.get("summary")) or words(item.get("content")):
                yield Entry(Kind.THINKING, "", who="assistant", text=text)
            case "function_call" | "custom_tool_call" | "local_shell_call" | "web_search_call":
                yield from _call(item, pair)
            case "function_call_output" | "custom_tool_call_output":
                yield _output(item, pair)

    def _message(self, item: dict[str, Any]) -> Iterator[Entry]:
        text, role = words(item.get("content")), text_of(item, "role")
        if not text:
            return
        if role == "user" and text.lstrip().startswith(_CONTEXT):
            yield Entry(Kind.NOTE, "", who="program", text=text)
            return
        if role == "user":
            self.turn += 1
        yield Entry(Kind.MESSAGE if role in ("user", "assistant") else Kind.NOTE, "", who=role, text=text)


def _call(item: dict[str, Any], pair: str) -> Iterator[Entry]:
    name = text_of(item, "name") or text_of(item, "type").removesuffix("_call")
    given = next((item[key] for key in ("arguments", "input", "action") if item.get(key) is not None), None)
    yield Entry(Kind.TOOL_CALL, "", tool=name, pair=pair, text=arguments(given))
    patch = given if isinstance(given, str) else ""
    if "*** Begin Patch" in patch:
        # In a shell call the patch stands within JSON, its line ends escaped.
        for what, path in paths_of_patch(patch.replace("\\n", "\n") if patch.startswith("{") else patch):
            yield Entry(Kind.FILE, "", tool=what, ref=path, pair=pair, text=f"{what} asked for")


def _output(item: dict[str, Any], pair: str) -> Entry:
    output = item.get("output")
    if isinstance(output, dict):
        failed, text = output.get("success") is False, words(output.get("content"))
    else:
        text = words(output)
        code = re.search(r"^(?:Process exited with code|Exit code:) (\d{1,10})", text, re.MULTILINE)
        failed = code is not None and code[1] != "0"
    return Entry(Kind.TOOL_RESULT, "", pair=pair, text=text, failed=failed)


def _event(payload: dict[str, Any]) -> Iterator[Entry]:
    match payload.get("type"):
        case "error" | "stream_error" | "turn_aborted" as kind:
            said = words(payload.get("message")) or words(payload.get("reason"))
            yield Entry(Kind.ERROR, "", who="program", failed=True, text=f"{kind}: {said}" if said else str(kind))
        case "exec_approval_request" | "apply_patch_approval_request":
            yield Entry(
                Kind.VERDICT, "", who="the program", pair=text_of(payload, "call_id"), verdict="ask", text=words(payload.get("reason"))
            )
        case "patch_apply_end" if payload.get("success") is True:
            changes = dict_of(payload, "changes")
            for path, change in list(changes.items())[:1000]:
                what = {"add": "create", "delete": "delete"}.get(text_of(change, "type") if isinstance(change, dict) else "", "edit")
                yield Entry(Kind.FILE, "", tool=what, ref=path, pair=text_of(payload, "call_id"), text=what)


def rollout(folders: list[Path], thread: str) -> Path | None:
    """The thread's file, the newest days first; None: not found."""
    if not _THREAD.match(thread):
        return None
    for folder in folders:
        for number, day in enumerate(_days(folder)):
            if number > _DAYS_MAX:
                break
            found = next(iter(sorted(day.glob(f"rollout-*-{thread}.jsonl"))), None)
            if found is not None:
                return found
    return None


def _days(folder: Path) -> Iterator[Path]:
    for year in _numbered(folder):
        for month in _numbered(year):
            yield from _numbered(month)


def _numbered(folder: Path) -> list[Path]:
    try:
        return sorted((p for p in folder.iterdir() if p.name.isdigit() and p.is_dir()), reverse=True)
    except OSError:
        return []


def _find(folders: list[Path], where: Whereabouts, wide: bool) -> Path | None:
    return rollout(folders, where.session) if wide else None


ACTIVITY = Activity(SOURCE, codex_usage.TRANSCRIPTS.folders[0], CodexLines, _find)
