"""Handing over to another program of ours: ``python -m console.supervisor``, ``console.gui`` ... (rooms this one may not import)."""

from __future__ import annotations

import os
import sys

from console.cli.embedded import child_environment
from console.domain.errors import ConsoleError


def become(module: str, *arguments: str) -> int:
    """Replaces this process by ``python -m module``: signals, terminal and exit code are that program's. Returns only by raising."""
    try:
        os.execve(sys.executable, [sys.executable, "-m", module, *arguments], child_environment())
    except OSError as error:
        raise ConsoleError(f"{module} cannot be started: {error.strerror}.", "Reinstall watchfloor.") from error


def folder_arguments(state_dir: str | None) -> list[str]:
    """``--state-dir DIR`` for the program, or nothing."""
    return ["--state-dir", state_dir] if state_dir else []
