"""The settings files of programs whose hooks are told in JSON: what our hook adds to them, and taking exactly that away again.

Everything else in such a file is the user's own: it is kept, in its order, and a file that cannot be read is not touched.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from console.domain.errors import UsageProblem

EVENT = "PreToolUse"
FILE_MAX = 4 * 1024 * 1024
GIVES_UP_S = 10
"""The hook ends so long before a program stops to wait for any."""
ANSWER_S = 20
"""The program waits so much longer than the hook: it is the hook that ends first, with a block. A hook that the program gives up
on lets the call through."""
_NO_ANSWER = (
    "Watchfloor: no call without an allow. Unless a reason stands before this, the hook did not answer or cannot run: watchfloor doctor "
    "tells why, watchfloor install-hook installs it again. If Watchfloor is gone, take its hook out of the settings here."
)
BLOCKED = f"/bin/sh -c 'echo \"{_NO_ANSWER}\" >&2; exit 2'"
"""A program may go on after an exit 2 without words on standard error. In a shell of its own: the user's may be one with other words."""
_MARK = "/hooks/watchfloor-hook.py"


@dataclass(frozen=True, slots=True)
class HookCommand:
    """What the program is to run before each tool call."""

    python: str
    hook: Path
    program: str
    socket: Path
    wait_s: int

    def words(self) -> list[str]:
        """For a program that starts it itself."""
        return [self.python, "-I", "-S", str(self.hook), self.program, str(self.socket), str(self.wait_s)]

    def line(self) -> str:
        """For a shell, any: a hook that is killed, or an interpreter that is gone, blocks as well, and never without a word."""
        return f"{shlex.join(self.words())} || {BLOCKED} || exit 2"


def cannot_run(command: str) -> str:
    """Why nothing runs when a program runs our hook's command, so that each call is blocked; empty: both of its files are there."""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    python, file = (*words[:1], *words[3:4]) if words[1:3] == ["-I", "-S"] and len(words) > 3 else ("", "")
    if python and not os.access(python, os.X_OK):
        return f"every call is blocked, because the Python of its command is gone: {python}"
    return f"every call is blocked, because its own file is gone: {file}" if file and not Path(file).is_file() else ""


def read_file(data: bytes, name: str) -> dict[str, Any]:
    """The settings in a file's bytes; no bytes are no settings. Raises UsageProblem: what cannot be read whole is not changed."""
    if len(data) > FILE_MAX:
        raise UsageProblem(f"{name} is larger than {FILE_MAX} bytes.", "It is left as it is.")
    try:
        found = json.loads(data) if data.strip() else {}
    except (ValueError, RecursionError) as error:
        raise UsageProblem(f"{name} is not JSON: {error}.", "Fix it. Watchfloor left it unchanged.") from error
    if not isinstance(found, dict):
        raise UsageProblem(f"{name} holds no settings.", "Fix it. Watchfloor left it unchanged.")
    return found


def with_hook(settings: dict[str, Any], command: HookCommand, name: str, *, event: str = EVENT, unit: int = 1) -> dict[str, Any]:
    """The settings with our hook before every tool call, once. Raises UsageProblem."""
    bare = without_hook(settings, name, event=event)
    hooks = dict(_hooks(bare, name))
    groups = list(_groups(hooks, name, event))
    # First: a hook of the user's that blocks blocks anyway, and no other can change what ours has judged.
    hooks[event] = [group_of(command, unit), *groups]
    return {**bare, "hooks": hooks}


def group_of(command: HookCommand, unit: int = 1) -> dict[str, Any]:
    """Our hook as these programs write it: before every tool, whichever. ``unit``: of its time-out, in parts of a second."""
    return {"matcher": "*", "hooks": [{"type": "command", "command": command.line(), "timeout": (command.wait_s + ANSWER_S) * unit}]}


def without_hook(settings: dict[str, Any], name: str, *, event: str = EVENT) -> dict[str, Any]:
    """The settings without our hook; groups and tables that held nothing else go too. Raises UsageProblem."""
    if "hooks" not in settings:
        return settings
    hooks = dict(_hooks(settings, name))
    if event not in hooks:
        return settings
    had = list(_groups(hooks, name, event))
    groups = [cleaned for group in had for cleaned in _cleaned(group)]
    if groups == had:
        return settings
    if groups:
        hooks[event] = groups
    else:
        del hooks[event]
    kept = {key: value for key, value in settings.items() if key != "hooks"}
    return {**kept, "hooks": hooks} if hooks else kept


def installed(settings: dict[str, Any], name: str, *, event: str = EVENT) -> str:
    """The command of our hook in these settings, or nothing."""
    at = place_of(settings, name, event=event)
    return str(settings["hooks"][event][at[0]]["hooks"][at[1]]["command"]) if at is not None else ""


def place_of(settings: dict[str, Any], name: str, *, event: str = EVENT) -> tuple[int, int] | None:
    """Which group, and which hook of it, is ours. Raises UsageProblem."""
    for number, group in enumerate(_groups(_hooks(settings, name), name, event)):
        hooks = group.get("hooks") if isinstance(group, dict) else None
        for index, hook in enumerate(hooks if isinstance(hooks, list) else []):
            if _is_ours(hook):
                return number, index
    return None


def written(settings: dict[str, Any]) -> bytes:
    """As the programs write them."""
    return (json.dumps(settings, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class JsonHook:
    """The hook of a kind whose settings file is JSON with groups of hooks by event."""

    place: str
    gaps: tuple[str, ...]
    advice: str = ""
    skipped: Callable[[dict[str, Any], Path], str] = lambda _settings, _file: ""
    event: str = EVENT
    unit: int = 1
    """Of a hook's time-out, in parts of a second."""
    most_s: int = 3600
    """So long the program waits for a hook, whatever its time-out: then it would make the call."""
    aliases: Mapping[str, str] = field(default_factory=dict)

    def installed(self, data: bytes, name: str) -> str:
        return installed(read_file(data, name), name, event=self.event)

    def added(self, data: bytes, command: HookCommand, name: str) -> bytes:
        command = replace(command, wait_s=min(command.wait_s, self.most_s - GIVES_UP_S))
        return written(with_hook(read_file(data, name), command, name, event=self.event, unit=self.unit))

    def removed(self, data: bytes, name: str) -> bytes:
        settings = read_file(data, name)
        bare = without_hook(settings, name, event=self.event)
        return data if bare == settings else written(bare)

    def why_skipped(self, data: bytes, file: Path) -> str:
        settings = read_file(data, str(file))
        place = place_of(settings, str(file), event=self.event)
        waits = settings["hooks"][self.event][place[0]]["hooks"][place[1]].get("timeout") if place is not None else 0
        if isinstance(waits, int) and waits > (self.most_s - GIVES_UP_S + ANSWER_S) * self.unit:
            return f"the program gives up on it after {self.most_s} s and makes the call: install it again"
        return self.skipped(settings, file)


def _hooks(settings: dict[str, Any], name: str) -> dict[str, Any]:
    found = settings.get("hooks", {})
    if not isinstance(found, dict):
        raise UsageProblem(f"{name}: hooks is no table.", "Fix it. Watchfloor left it unchanged.")
    return found


def _groups(hooks: dict[str, Any], name: str, event: str) -> list[Any]:
    found = hooks.get(event, [])
    if not isinstance(found, list):
        raise UsageProblem(f"{name}: hooks.{event} is no list.", "Fix it. Watchfloor left it unchanged.")
    return found


def _cleaned(group: Any) -> list[Any]:
    """The group without our hook; nothing, when it held no other."""
    if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
        return [group]
    kept = [hook for hook in group["hooks"] if not _is_ours(hook)]
    if len(kept) == len(group["hooks"]):
        return [group]
    return [{**group, "hooks": kept}] if kept else []


def _is_ours(hook: Any) -> bool:
    return isinstance(hook, dict) and isinstance(hook.get("command"), str) and _MARK in hook["command"]
