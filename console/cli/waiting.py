"""Nobody waits without a word: what a verb waits for, and when it gives up, on stderr once it takes longer than a moment."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from console.cli import out
from console.domain.errors import ExitCode

AFTER_S = 3.0
"""What comes sooner needs no words."""


@contextmanager
def said_while(what: str, gives_up: str) -> Iterator[None]:
    """Says "waiting for ``what``; gives up ``gives_up``" after `AFTER_S`, unless the block is over by then.

    Whoever waits in the block then raises TimedOut, whose exit code is said too. Both are our own words.
    """
    timer = threading.Timer(AFTER_S, out.note, (f"waiting for {what}; gives up {gives_up} (exit {int(ExitCode.PENDING)})",))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
