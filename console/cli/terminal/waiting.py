"""Tell on stderr what a verb waits for and when it gives up, once the wait takes longer than a moment."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from console.cli.terminal import out
from console.domain.errors import ExitCode

AFTER_S = 3.0
"""What comes sooner needs no words."""


@contextmanager
def said_while(what: str, gives_up: str) -> Iterator[None]:
    """Print "waiting for ``what``; gives up ``gives_up``" when the block takes longer than `AFTER_S`.

    The code in the block then raises TimedOut, whose exit code the line names too. Both texts are our own, never an agent's.
    """
    timer = threading.Timer(AFTER_S, out.note, (f"waiting for {what}; gives up {gives_up} (exit {int(ExitCode.PENDING)})",))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
