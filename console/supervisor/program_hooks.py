"""The hook of a program that we start: it asks us before each tool call, from a folder that the program can read and not change."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from console.domain.conversation import HOOKED, Program, Started
from console.settings.durable import replace_file
from console.sources.claude_code import stream as claude_stream
from console.sources.codex import stream as codex_stream
from console.sources.codex.trust import trusted_hash
from console.sources.hook_settings import EVENT, HookCommand, group_of
from console.supervisor.install_hook import GRACE_S, HOOK_FILE, SOURCE

PYTHON = "/usr/bin/python3"
"""As every sandbox has it; a sandbox without it blocks every call."""
OWN_KEY = "/<session-flags>/config.toml:pre_tool_use:0:0"
"""Codex's own name of the first hook on its command line."""


def judged_words(program: Program) -> tuple[str, ...]:
    """What the command line of a program holds whose calls are judged."""
    return claude_stream.JUDGED if program is Program.CLAUDE_CODE else codex_stream.JUDGED


def is_judged(started: Started) -> bool:
    """Whether it was started so; on record with its command line."""
    words = judged_words(started.program)
    return any(started.words[at : at + len(words)] == words for at in range(len(started.words)))


def furnish(started: Started, folder: Path, socket: Path, ttl_s: float, *, boxed: bool) -> None:
    """Puts the hook, and the words that tell the program of it, beside its socket; harmless words when its calls are not judged.

    ``boxed``: its files are an image's; ``ttl_s``: how long a request waits for a human. Raises OSError.
    """
    if not is_judged(started):
        nothing = "{}" if started.program is Program.CLAUDE_CODE else codex_stream.QUIET[1]
        replace_file(folder / HOOKED, f"{nothing}\n".encode(), 0o644)
        return
    python = PYTHON if boxed or os.access(PYTHON, os.X_OK) else sys.executable
    command = HookCommand(python, folder / HOOK_FILE, started.program.value, socket, int(ttl_s) + GRACE_S)
    replace_file(folder / HOOK_FILE, SOURCE.read_bytes(), 0o644)
    replace_file(folder / HOOKED, f"{told(started.program, command)}\n".encode(), 0o644)


def remove(folder: Path) -> None:
    """The agent has ended."""
    for name in (HOOKED, HOOK_FILE):
        with suppress(OSError):
            (folder / name).unlink()


def told(program: Program, command: HookCommand) -> str:
    """One line in the program's own words: settings of Claude Code, one setting of Codex."""
    group = group_of(command)
    if program is Program.CLAUDE_CODE:
        # Said outright, so that no other settings can switch it off.
        return json.dumps({"disableAllHooks": False, "hooks": {EVENT: [group]}})
    (hook,) = group["hooks"]
    fields = f"type={json.dumps(hook['type'])},command={_toml(hook['command'])},timeout={hook['timeout']}"
    trust = f"enabled=true,trusted_hash={json.dumps(trusted_hash(group, hook))}"
    return f'hooks={{{EVENT}=[{{matcher="*",hooks=[{{{fields}}}]}}],state={{{_toml(OWN_KEY)}={{{trust}}}}}}}'


def _toml(text: str) -> str:
    """A basic string of TOML: what JSON writes for text without surrogates is one."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
