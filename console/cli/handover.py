"""Handing over to another program of ours: ``python -m console.supervisor``, ``console.gui`` ... (rooms this one may not import)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from console.cli.embedded import child_environment
from console.cli.terminal import out
from console.domain.errors import ConsoleError
from console.domain.process.ending import INTERRUPTED

END_S = 5.0
"""How long an interrupted program may clean up before it is killed."""


def become(module: str, *arguments: str) -> int:
    """Replaces this process by ``python -m module``: signals, terminal and exit code are that program's. Returns only by raising."""
    try:
        with _interrupt_waits():
            os.execve(sys.executable, [sys.executable, "-m", module, *arguments], child_environment())
    except OSError as error:
        raise ConsoleError(f"{module} cannot be started: {error.strerror}.", "Reinstall watchfloor.") from error


def folded(module: str, *arguments: str) -> int:
    """Runs ``python -m module`` to its end; what it says is folded at the width of the terminal. Its exit code is ours."""
    try:
        with _interrupt_waits():
            child = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                env=child_environment(),
                stdout=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
            )
    except OSError as error:
        raise ConsoleError(f"{module} cannot be started: {error.strerror}.", "Reinstall watchfloor.") from error
    try:
        said, _ = child.communicate()
    except KeyboardInterrupt:  # the program was interrupted by the same key, takes away what it tried out, and says that it was interrupted
        if _ended(child) != INTERRUPTED:
            raise
        return INTERRUPTED
    out.say_folded(said.rstrip("\n"))
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def _ended(child: subprocess.Popen[str]) -> int:
    try:
        return child.wait(END_S)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()


@contextmanager
def _interrupt_waits() -> Iterator[None]:
    """What is started here inherits that Ctrl-C waits; its entry lets it in once it has loaded, and could not tell of it before."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def folder_arguments(state_dir: str | None) -> list[str]:
    """``--state-dir DIR`` for the program, or nothing."""
    return ["--state-dir", state_dir] if state_dir else []
