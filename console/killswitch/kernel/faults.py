"""What a bug or a broken machine raises, where the guard must go on all the same."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable

from console.domain.errors import ConsoleError

FAULTS = (OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError, ArithmeticError, AssertionError, ConsoleError)
"""Named at the doors that must stay open: a press, what follows from it, the loop, the clerk."""


def note_fault(where: str, fault: BaseException) -> None:
    """For the log; the guard goes on."""
    lines = traceback.format_exception(type(fault), fault, fault.__traceback__)
    try:
        sys.stderr.write(f"{where}: {''.join(lines)}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass  # a full disk must not stop the guard from stopping agents


def in_thread(job: Callable[[], None], name: str) -> threading.Thread | None:
    """Runs it in a thread; at once, here, where no thread can be had. Never raises."""

    def safely() -> None:
        try:
            job()
        except FAULTS as fault:
            note_fault(name, fault)

    try:
        thread = threading.Thread(target=safely, name=name, daemon=True)
        thread.start()
    except RuntimeError:
        safely()
        return None
    return thread
