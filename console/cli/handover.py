"""Handing over to another program of ours: ``python -m console.supervisor``, ``console.gui`` ... (rooms this one may not import)."""

from __future__ import annotations

import os
import subprocess
import sys

from console.cli.embedded import child_environment
from console.cli.terminal import out
from console.domain.errors import ConsoleError


def become(module: str, *arguments: str) -> int:
    """Replaces this process by ``python -m module``: signals, terminal and exit code are that program's. Returns only by raising."""
    try:
        os.execve(sys.executable, [sys.executable, "-m", module, *arguments], child_environment())
    except OSError as error:
        raise ConsoleError(f"{module} cannot be started: {error.strerror}.", "Reinstall watchfloor.") from error


def folded(module: str, *arguments: str) -> int:
    """Runs ``python -m module`` to its end; what it says is folded at the width of the terminal. Its exit code is ours."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            env=child_environment(),
            stdout=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise ConsoleError(f"{module} cannot be started: {error.strerror}.", "Reinstall watchfloor.") from error
    out.say_folded(done.stdout.rstrip("\n"))
    return done.returncode if done.returncode >= 0 else 128 - done.returncode


def folder_arguments(state_dir: str | None) -> list[str]:
    """``--state-dir DIR`` for the program, or nothing."""
    return ["--state-dir", state_dir] if state_dir else []
