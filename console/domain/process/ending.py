"""How a program of ours ends after Ctrl-C."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


def hear_again(lost: sys.UnraisableHookArgs) -> None:
    """As ``sys.unraisablehook``: a Ctrl-C that fell into the end of an import would be printed there, and lost. It comes once more."""
    if issubclass(lost.exc_type, KeyboardInterrupt):
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.01)
    else:
        sys.__unraisablehook__(lost)


def leave(code: int) -> NoReturn:
    """End the process with this exit code.

    Where the key fell into an ``exec`` of text (each dataclass is made by one), Python 3.11 notes it as never caught. At the end it would
    kill itself with SIGINT, whatever exit code was chosen.
    """
    if code == INTERRUPTED:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)
    raise SystemExit(code)
