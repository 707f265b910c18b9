"""Where a process that asks for stops has its place on busy processors: ahead of agents always, ahead of everything while it asks.

What carries a stop out has its own place (precedence.py): the guard loads only that.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from console.domain.process.precedence import ASKS, NICE, lead_session

STANDING = -10
"""Of the supervisor at all times: an order is heard although agents keep the processors busy."""
SWITCH_S = 0.0005
"""How long a thread that computes may keep the others from Python's lock during a stop: its own 5 ms add up over the hops of an answer."""


class Standing:
    """The place of every thread of this process, and how often it was asked to be ahead. From any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._placed = set[int]()
        self._stands = False
        self._process = 0
        self._switch_s = sys.getswitchinterval()

    def stand(self) -> None:
        """Give every thread of this process ``STANDING`` from now on, and those of pools that ``join``: an order waits for none of them.

        Until then ``take_all`` does nothing: only a process that is nothing but the supervisor changes its place.
        """
        with self._lock:
            self._stands = True
            lead_session(STANDING)
            self._set_all()

    def take_all(self) -> None:
        """Put every thread of this process ahead: one that is not would hold up the others with Python's lock."""
        with self._lock:
            self._process += 1
            if self._process == 1:
                sys.setswitchinterval(SWITCH_S)
                self._set_all()

    def give_all_back(self) -> None:
        """Undo one ``take_all``."""
        with self._lock:
            self._process -= 1
            if not self._process:
                sys.setswitchinterval(self._switch_s)
                self._set_all()

    def join(self) -> None:
        """Put a new thread of a pool where the others are."""
        with self._lock:
            if self._stands:
                self._set(0)

    def catch_up(self) -> None:
        """Put the threads that were started since where the others are: a thread begins as an ordinary one, and may hold Python's lock."""
        with self._lock:
            threads = _threads() if self._stands else set[int]()
            new, self._placed = threads - self._placed, self._placed & threads
            self._set_each(new)

    def _set_all(self) -> None:
        self._placed.clear()
        if self._stands:
            self._set_each(_threads())

    def _set_each(self, threads: Iterable[int]) -> None:
        for thread in threads:
            self._set(thread)
        self._placed.update(threads)

    def _set(self, thread: int) -> None:
        _raise(thread) if self._process else _place(thread, STANDING)


def _threads() -> set[int]:
    return set(map(int, os.listdir("/proc/self/task")))  # noqa: PTH208 - names alone


@contextmanager
def ahead() -> Iterator[None]:
    """Put the calling thread ahead while it asks for a stop."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    _raise(0)
    try:
        yield
    finally:
        _place(0, before)


def _raise(thread: int) -> None:
    """What such a thread starts is ordinary, agents among it (SCHED_RESET_ON_FORK): threads as well, so pools ``join``."""
    with suppress(OSError):  # it ended, or only root may
        os.setpriority(os.PRIO_PROCESS, thread, NICE)
        os.sched_setscheduler(thread, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(ASKS))


def _place(thread: int, nice: int) -> None:
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, thread, nice)
        os.sched_setscheduler(thread, os.SCHED_OTHER | (os.SCHED_RESET_ON_FORK if nice < 0 else 0), os.sched_param(0))
