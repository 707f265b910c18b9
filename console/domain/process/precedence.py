"""Who goes first on busy processors: what stops agents goes ahead of agents and of ordinary programs (sched(7)).

Only root may raise itself (CAP_SYS_NICE); elsewhere a stop has the share of the processors that every program has. Where real-time classes
are not given (a cgroup of v1 without a real-time budget), the highest ordinary priority is used.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

NICE = -20
"""Of what kills, where the real-time class is not given."""
KILLS, ASKS = 2, 1
"""Priorities in the real-time class while a stop is under way: the lowest, which are still ahead of everything ordinary."""


class Precedence:
    """Threads of this process that carry out kills, and how often each asked to be ahead. From any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: dict[int, int] = {}

    def take(self) -> int:
        """Put the calling thread into the real-time class, with the threads that it starts; gives its id, for ``give_back``."""
        thread = threading.get_native_id()
        with self._lock:
            self._threads[thread] = self._threads.get(thread, 0) + 1
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(KILLS))
        return thread

    def give_back(self, thread: int) -> None:
        """Undo one ``take`` of that thread, and put the calling one, which it may have started, back as well."""
        with self._lock:
            if self._threads.get(thread, 1) > 1:
                self._threads[thread] -= 1
            else:
                self._threads.pop(thread, None)
            done = {thread, threading.get_native_id()} - self._threads.keys()
        for one in done:
            with suppress(OSError):
                os.sched_setscheduler(one, os.SCHED_OTHER, os.sched_param(0))


def lead_session(nice: int) -> None:
    """Give the session of this process, if it leads it, this place among sessions: the kernel weighs them first (sched(7), autogroup)."""
    if os.getsid(0) == os.getpid():
        with suppress(OSError):
            Path("/proc/self/autogroup").write_text(str(nice))
