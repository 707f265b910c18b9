"""What a window needs before Qt is started, and how a program of ours ends that cannot have it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence

from console.domain.errors import ConsoleError, ExitCode

_NEEDS_NO_DISPLAY = ("offscreen", "minimal", "vnc", "linuxfb", "eglfs", "minimalegl")


def check_display(environment: dict[str, str]) -> None:
    """Raises ConsoleError when there is no display: Qt would abort the process instead of saying so."""
    qt_platform = environment.get("QT_QPA_PLATFORM", "").split(":")[0]
    if qt_platform in _NEEDS_NO_DISPLAY or sys.platform != "linux":
        return
    if not environment.get("DISPLAY") and not environment.get("WAYLAND_DISPLAY"):
        raise ConsoleError(
            "There is no display to open the console on.",
            "Run it in a desktop session, or use the command line: watchfloor fleet, watchfloor status, watchfloor panic.",
        )


def print_error(work: Sequence[str], error: ConsoleError) -> int:
    """Prints an error with its remedy; returns its exit code."""
    print(f"{' '.join(work)}: {error.what}", file=sys.stderr)
    if error.remedy:
        print(error.remedy, file=sys.stderr)
    return int(error.exit_code) or int(ExitCode.FAILURE)


def until_interrupted(work: Callable[[], int]) -> int:
    """Does it and returns its exit code; Ctrl-C ends the program with 130. The command line held that back while it loaded.

    An exception in a method that Qt calls would be printed as a traceback and end nothing.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # never what the one who started us ignores
        signal.signal(signal.SIGINT, _end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    return work()


def _end(_number: int, _frame: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(130)
