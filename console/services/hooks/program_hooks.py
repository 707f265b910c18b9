"""The hook of a program that we start: it asks us before each tool call, from a folder that the program can read and not change."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from console.domain.conversation import GATE, HOOKED, PLUGIN, POLICY, SERVERS, Started
from console.domain.process.durable import replace_file
from console.sandbox.environment import GIT_SETTINGS
from console.services.hooks.installation import GRACE_S, HOOK_FILE, SOURCE
from console.sources.hook_settings import HookCommand
from console.sources.kind import Kind, Lacks, Servers
from console.sources.kinds import STARTS

PYTHON = "/usr/bin/python3"
"""As every sandbox has it; a sandbox without it blocks every call."""


def is_judged(started: Started) -> bool:
    """Whether it was started so; on record with its command line."""
    words = STARTS[started.program.value].judged
    return any(started.words[at : at + len(words)] == words for at in range(len(started.words)))


def own_servers(kind: Kind) -> str:
    """That the MCP servers of a program which was started as a command pass no list of ours, for people."""
    instead = "Watchfloor cannot restrict them" if isinstance(kind.start, Lacks) else f"run --agent {kind.start.name} restricts them"
    return f"it starts the MCP servers that its own settings name, because programs.mcp holds for run --agent alone; {instead}"


def furnish(started: Started, folder: Path, socket: Path, ttl_s: float, servers: Servers, *, boxed: bool) -> None:
    """Puts the hook, and the words that tell the program of it, beside its socket; harmless words when its calls are not judged.

    ``boxed``: its files are an image's; ``ttl_s``: how long a request waits for a human; ``servers``: the MCP servers that it gets, and no
    others. They are written at each start, so that one which was taken from the list is gone when it is started again. Raises OSError.
    """
    start = STARTS[started.program.value]
    replace_file(folder / SERVERS, f"{start.servers(servers)}\n".encode(), 0o644)
    command = None
    if is_judged(started):
        python = PYTHON if boxed or os.access(PYTHON, os.X_OK) else sys.executable
        command = HookCommand(python, folder / HOOK_FILE, started.program.value, socket, int(ttl_s) + GRACE_S)
        replace_file(folder / HOOK_FILE, SOURCE.read_bytes(), 0o644)
    for name, data in start.files(command).items():
        replace_file(folder / name, data, 0o644)
    replace_file(folder / HOOKED, f"{start.told(command, servers)}\n".encode(), 0o644)


def remove(folder: Path) -> None:
    """The agent has ended."""
    for name in (HOOKED, SERVERS, HOOK_FILE, PLUGIN, GATE, POLICY, GIT_SETTINGS):
        with suppress(OSError):
            (folder / name).unlink()
