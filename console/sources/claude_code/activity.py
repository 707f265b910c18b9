"""What Claude Code's transcripts say that a session, or a sub-agent of it, did.

The format is internal to Claude Code and may change: every field is optional, unknown ones and unknown types are passed over. Whose
entries these are says the file they stand in; the ids a record claims only pair a call with its result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from console.domain.activity import Entry, Kind, source_id
from console.sources.activity.files import Activity, Price, Whereabouts
from console.sources.activity.text import arguments, changed_lines, dict_of, record_of, spend_of, text_of, unreadable, words
from console.sources.claude_code import transcripts as claude_transcripts
from console.sources.reading import Reading, at_of

SOURCE = "claude_code"
_VERDICTS = {"accept": "allow", "allow": "allow", "approve": "allow", "reject": "deny", "deny": "deny", "block": "deny", "ask": "ask"}
_SLUG = re.compile(r"[^A-Za-z0-9]")
_HOOKS = ("PreToolUse", "PermissionRequest")
_EDITS = {"create": "create", "update": "edit", "edit": "edit"}


@dataclass(slots=True)
class ClaudeLines:
    """One transcript's lines as entries; ``turn`` goes on from read to read."""

    price: Price = lambda _answer: None
    turn: int = 0
    _state: tuple[int, str] = (-1, "")

    def take(self, line: bytes) -> list[Entry]:
        """What a line says; one that cannot be read is an entry of its own."""
        try:
            record = record_of(line)
            if not isinstance(record, dict):
                raise TypeError
            return self._entries(record, line)
        except (ValueError, TypeError, RecursionError):
            return [unreadable(line)]

    def state(self) -> str:
        """For the next read."""
        if self._state[0] != self.turn:
            self._state = self.turn, json.dumps({"turn": self.turn})
        return self._state[1]

    def resume(self, state: str) -> None:
        """From what ``state`` gave."""
        try:
            turn = json.loads(state).get("turn", 0)
        except (ValueError, AttributeError):
            return
        self.turn = turn if type(turn) is int and turn >= 0 else 0

    def _entries(self, record: dict[str, Any], line: bytes) -> list[Entry]:
        at = at_of(text_of(record, "timestamp"))
        found = [replace(e, at=at, turn=self.turn, source_id=source_id(line, n)) for n, e in enumerate(self._parts(record))]
        # An answer once, whatever number of its blocks is written.
        spent = claude_transcripts.answers(line, "", "", Reading())
        return found + [spend_of(answer, self.price(answer), at, self.turn) for answer in spent]

    def _parts(self, record: dict[str, Any]) -> Iterator[Entry]:
        match record.get("type"):
            case "user":
                yield from self._user(record)
            case "assistant":
                yield from _assistant(record)
            case "attachment":
                yield from _attachment(dict_of(record, "attachment"))
            case "system":
                yield from _system(record)

    def _user(self, record: dict[str, Any]) -> Iterator[Entry]:
        content = dict_of(record, "message").get("content")
        results = [b for b in content if isinstance(b, dict) and b.get("type") == "tool_result"] if isinstance(content, list) else []
        if results:
            for block in results:
                yield from _result(record, block)
            return
        text = words(content)
        if not text:
            return
        if text_of(record, "origin", "kind") or record.get("isMeta") is True:
            yield Entry(Kind.NOTE, "", who="program", text=text)
            return
        self.turn += 1
        yield Entry(Kind.MESSAGE, "", who="user", text=text)


def _assistant(record: dict[str, Any]) -> Iterator[Entry]:
    content = dict_of(record, "message").get("content")
    failed = record.get("isApiErrorMessage") is True
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    for block in content if isinstance(content, list) else ():
        match block.get("type") if isinstance(block, dict) else None:
            case "text" if text := text_of(block, "text"):
                yield Entry(Kind.ERROR if failed else Kind.MESSAGE, "", who="assistant", text=text, failed=failed)
            case "thinking" if text := text_of(block, "thinking"):
                yield Entry(Kind.THINKING, "", who="assistant", text=text)
            case "tool_use" | "server_tool_use" | "mcp_tool_use":
                yield Entry(Kind.TOOL_CALL, "", tool=text_of(block, "name"), pair=text_of(block, "id"), text=arguments(block.get("input")))


def _result(record: dict[str, Any], block: dict[str, Any]) -> Iterator[Entry]:
    pair, failed = text_of(block, "tool_use_id"), block.get("is_error") is True
    decided = dict_of(record, "permissionDecision")
    if verdict := _VERDICTS.get(text_of(decided, "decision")):
        why = " ".join(p for p in (text_of(decided, "source"), text_of(decided, "reasonCode") or text_of(decided, "reasonType")) if p)
        yield Entry(Kind.VERDICT, "", who="the program", pair=pair, verdict=verdict, text=f"decided by {why}" if why else "")
    yield Entry(Kind.TOOL_RESULT, "", pair=pair, text=words(block.get("content")), failed=failed)
    outcome = dict_of(record, "toolUseResult")
    path = text_of(outcome, "filePath")
    if path and not failed and ("structuredPatch" in outcome or text_of(outcome, "type") in _EDITS):
        what = _EDITS.get(text_of(outcome, "type"), "edit")
        text = f"{what} {changed_lines(outcome.get('structuredPatch'))}".strip()
        yield Entry(Kind.FILE, "", tool=what, ref=path, pair=pair, text=text)
    if child := text_of(outcome, "agentId"):
        yield Entry(Kind.SPAWN, "", ref=child, pair=pair, text=text_of(outcome, "description"))


def _attachment(attachment: dict[str, Any]) -> Iterator[Entry]:
    kind, pair = text_of(attachment, "type"), text_of(attachment, "toolUseID")
    if not kind.startswith("hook_"):
        return
    name = text_of(attachment, "hookName")
    if kind not in ("hook_success", "hook_additional_context"):
        said = words(attachment.get("stderr")) or words(attachment.get("content")) or words(attachment.get("blockingError"))
        verdict = "deny" if "blocking" in kind and "non_blocking" not in kind else ""
        yield Entry(Kind.VERDICT if verdict else Kind.ERROR, "", who=f"hook {name}", pair=pair, verdict=verdict, failed=True, text=said)
        return
    if text_of(attachment, "hookEvent") in _HOOKS:
        verdict, why = _hook_said(text_of(attachment, "stdout"))
        if verdict:
            yield Entry(Kind.VERDICT, "", who=f"hook {name}", pair=pair, verdict=verdict, text=why)


def _hook_said(stdout: str) -> tuple[str, str]:
    try:
        said = dict_of(json.loads(stdout), "hookSpecificOutput")
    except (ValueError, RecursionError):
        return "", ""
    verdict = text_of(said, "permissionDecision") or text_of(said, "decision", "behavior")
    return _VERDICTS.get(verdict, ""), text_of(said, "permissionDecisionReason") or text_of(said, "decision", "message")


def _system(record: dict[str, Any]) -> Iterator[Entry]:
    text = words(record.get("content"))
    if not text or text_of(record, "subtype") == "stop_hook_summary":
        return
    failed = text_of(record, "level") == "error" or text_of(record, "subtype") == "api_error"
    yield Entry(Kind.ERROR if failed else Kind.NOTE, "", who="program", text=text, failed=failed)


# --- where


def transcript(projects: list[Path], slug: str, session: str, sub: str = "", *, wide: bool = True) -> Path | None:
    """The session's own file, or its sub-agent's, wherever of these folders it is; None: not found. Names decide nothing but the place.

    ``wide``: other working directories' folders too.
    """
    if not _is_name(session) or (sub and not _is_name(sub)):
        return None
    for folder in projects:
        for place in chain(
            (folder / slug,), _others(folder, session) if wide else ()
        ):  # whoever is where he belongs is looked for nowhere else
            found = place / session / "subagents" / f"agent-{sub}.jsonl" if sub else place / f"{session}.jsonl"
            if found.is_file():
                return found
    return None


def _others(folder: Path, session: str) -> Iterator[Path]:
    """Folders of other working directories that hold this session: a program may have changed its own."""
    try:
        for number, place in enumerate(folder.iterdir()):
            if number > 10_000:
                return
            if (place / f"{session}.jsonl").is_file() or (place / session).is_dir():
                yield place
    except OSError:
        return


def _is_name(text: str) -> bool:
    return 0 < len(text) <= 64 and text.replace("-", "").replace("_", "").isalnum() and text.isascii()


def _find(folders: list[Path], where: Whereabouts, wide: bool) -> Path | None:
    return transcript(folders, _SLUG.sub("-", where.cwd), where.session, where.sub, wide=wide)


ACTIVITY = Activity(SOURCE, claude_transcripts.TRANSCRIPTS.folders[0], ClaudeLines, _find, moves=True, has_sub_files=True)
