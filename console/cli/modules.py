"""Handing over to another program of ours: ``python -m console.supervisor``, ``console.gui`` ... (rooms this one may not import)."""

from __future__ import annotations

import os
import subprocess
import sys

from console.cli.embedded import child_environment
from console.domain.errors import ConsoleError


def become(module: str, *arguments: str) -> int:
    """Replaces this process by ``python -m module``: signals, terminal and exit code are that program's. Returns only by raising."""
    try:
        os.execve(sys.executable, [sys.executable, "-m", module, *arguments], child_environment())
    except OSError as error:
        raise ConsoleError(f"{module} cannot be started: {error.strerror}.", "Reinstall watchfloor.") from error


def start_detached(module: str, *arguments: str) -> None:
    """Starts ``python -m module`` in a session of its own and returns at once."""
    subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=child_environment(),
    )


def folder_arguments(state_dir: str | None) -> list[str]:
    """``--state-dir DIR`` for the program, or nothing."""
    return ["--state-dir", state_dir] if state_dir else []
