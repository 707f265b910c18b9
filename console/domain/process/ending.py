"""How a program of ours ends after Ctrl-C."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


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
