"""Tool calls of coding agents, as their hooks tell them, in Watchfloor's words. Every field is hostile and optional."""

from __future__ import annotations

import json
import posixpath
import re
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from console.api.policy import policy_data
from console.domain.calls.permission import PermissionRequest
from console.domain.errors import UsageProblem
from console.policy.tools.catalogue import tool_of
from console.policy.tools.patches import files_of
from console.sources.kinds import HOOKS

TOLD = frozenset(
    (
        *("SessionStart", "SessionEnd", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Notification"),
        *("Stop", "StopFailure", "SubagentStart", "SubagentStop", "PreCompact", "PostCompact"),
    )
)
"""Events that ask nothing. Whatever else comes, an event without a name among it, is a tool call that waits for a decision: a program
that changes its words must not be waved through."""
ARGUMENT_MAX = 64 * 1024
DETAIL_MAX = 256 * 1024
SAYS_MAX = 2000
_ID = re.compile(r"[A-Za-z0-9_.:-]{1,120}\Z")
_FILES = {
    "Read": ("read_file", "file_path"),
    "NotebookRead": ("read_file", "notebook_path"),
    "Write": ("write_file", "file_path"),
    "Edit": ("write_file", "file_path"),
    "MultiEdit": ("write_file", "file_path"),
    "multiedit": ("write_file", "filePath"),
    "view_image": ("read_file", "path"),
    "NotebookEdit": ("write_file", "notebook_path"),
    "LS": ("list_files", "path"),
    "Glob": ("list_files", "path"),
    "Grep": ("read_file", "path"),  # it shows what is in them
    "read_file": ("read_file", "file_path"),
    "list_dir": ("list_files", "dir_path"),
    "grep_files": ("read_file", "path"),
    "replace": ("write_file", "file_path"),
    "edit": ("write_file", "file_path"),
    "write_file": ("write_file", "file_path"),
    "list_directory": ("list_files", "dir_path"),
    "glob": ("list_files", "dir_path"),
    "search_file_content": ("read_file", "dir_path"),
    "grep_search": ("read_file", "dir_path"),
    "read": ("read_file", "filePath"),
    "write": ("write_file", "filePath"),
    "list": ("list_files", "path"),
    "grep": ("read_file", "path"),
}
_LOOKS = (
    *("LS", "Glob", "Grep", "list_dir", "grep_files", "list_directory", "glob", "search_file_content", "grep_search"),
    *("list", "grep"),
)
"""Without a path they look where the program stands."""
_JUDGED_BY_ARGUMENT = ("shell", "argv", "code", "file", "patch", "network")
_BRACED = re.compile(r"\{[^}]*/")
"""A choice of whole paths."""
_WILD = re.compile(r"[*?\[{(!@+\\]")
_OTHER_FIELDS = ("absolute_path", "path", "filePath")
"""Under which other versions of a program, and other programs, name the same."""
_SHELLS = ("Bash", "bash", "shell", "exec_command", "local_shell", "run_shell_command")


@dataclass(frozen=True, slots=True)
class HookCall:
    """One call of a hook."""

    program: str
    event: str
    session: str
    """The program's own session id."""
    sub_agent: str
    """The program's own id of a sub-agent; empty: the session itself."""
    request: PermissionRequest | None
    """None: the event asks nothing."""


def read_call(program: str, payload: dict[str, Any]) -> HookCall:
    """What a hook told. Raises UsageProblem on what cannot be judged: it is denied then."""
    if program not in HOOKS:
        raise UsageProblem(f"Program {program[:40]!r} is not known.", f"Known are {', '.join(HOOKS)}.")
    event, session = _text(payload, "hook_event_name"), _text(payload, "session_id")
    sub_agent = _text(payload, "agent_id")
    if not _ID.match(session) or (sub_agent and not _ID.match(sub_agent)):
        raise UsageProblem("The hook names no session.", "Update the program: what its hook told names none.")
    request = None if event in TOLD else _request(program, payload)
    return HookCall(program, event, session, sub_agent, request)


def _request(program: str, payload: dict[str, Any]) -> PermissionRequest:
    name, given = _mcp_name(payload) or _text(payload, "tool_name"), payload.get("tool_input")
    name = HOOKS[program].aliases.get(name, name)
    if not name or len(name) > 100:
        raise UsageProblem("The hook names no tool.", "")
    given = given if isinstance(given, dict) else {"input": given}
    detail = json.dumps(given, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)
    tool, argument = _said(name, given, detail)
    if len(argument) > ARGUMENT_MAX or len(detail) > DETAIL_MAX:
        # Nothing is judged, nor shown to a person, in part.
        raise UsageProblem(f"The call of {name} is larger than can be checked.", "Write large files in parts, or from a script in a file.")
    says = given.get("description")
    call_id = _text(payload, "tool_use_id")
    cwd = _text(payload, "cwd")
    return PermissionRequest(
        tool=tool,
        argument=argument,
        cwd=cwd if cwd.startswith("/") and len(cwd) <= 4096 else "",
        detail=detail,
        says=says[:SAYS_MAX] if isinstance(says, str) else "",
        call_id=call_id if _ID.match(call_id) else "",
    )


def _mcp_name(payload: dict[str, Any]) -> str:
    """``mcp__SERVER__TOOL`` of a tool of an MCP server, where the program tells server and tool apart from the name."""
    told = payload.get("mcp_context")
    server, tool = (_text(told, "server_name"), _text(told, "tool_name")) if isinstance(told, dict) else ("", "")
    return f"mcp__{server}__{tool}" if server and tool else ""


def _said(name: str, given: dict[str, Any], detail: str) -> tuple[str, str]:
    """Our tool and its one argument; a call without the argument it is judged by is judged under its own name, whole."""
    if name in _SHELLS:
        command = given.get("command") or given.get("cmd")
        if isinstance(command, list) and all(isinstance(word, str) for word in command):
            return "argv", json.dumps(command)
        if isinstance(command, str):
            return "shell", command
    elif name in _FILES:
        tool, field = _FILES[name]
        named = [found for one in dict.fromkeys((field, *_OTHER_FIELDS)) if (found := given.get(one)) not in (None, "")]
        path = named[0] if named else None
        if path in (None, "") and name in _LOOKS:
            path = "."
        # Which of two names the program goes by is not known: such a call is judged whole.
        if isinstance(path, str) and path and len(named) <= 1:
            return tool, path if name not in ("Glob", "glob") else _top_of(path, given.get("pattern"))
    elif name in ("apply_patch", "patch"):
        texts = [given[one] for one in ("command", "input", "patch", "patchText") if given.get(one)]
        # Of two texts the program may take either.
        if len(texts) == 1 and isinstance(texts[0], str) and files_of(texts[0]):
            return "apply_patch", texts[0]
    elif name in ("WebFetch", "web_fetch", "webfetch") and isinstance(given.get("url"), str):
        return "http_request", given["url"]
    # The words of a call that could not be read must not be taken for the path or the command of a tool that has this name.
    return (f"{name} call" if tool_of(policy_data.tools(), name).family in _JUDGED_BY_ARGUMENT else name), detail


def _top_of(path: str, pattern: object) -> str:
    """The folder below which everything lies that a pattern can find; a pattern that may lead upward again is looked at from the root."""
    if not isinstance(pattern, str) or _BRACED.search(pattern):
        return "/"
    parts = pattern.split("/")
    fixed = list(takewhile(lambda part: not _WILD.search(part), parts))
    if any(".." in part for part in parts[len(fixed) :]):
        return "/"
    top = "/".join(fixed if len(fixed) < len(parts) else fixed[:-1])
    if pattern.startswith("/"):
        top = f"{top}/"
    return posixpath.join(path, top) if top else path


def _text(payload: dict[str, Any], name: str) -> str:
    value = payload.get(name)
    return value if isinstance(value, str) else ""
