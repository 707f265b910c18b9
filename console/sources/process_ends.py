"""Processes held by the kernel's own handle (pidfd): while one has not ended, its number means no other. Nothing is ever signalled."""

from __future__ import annotations

import os
import select

from console.domain.agent import ProcessIdentity
from console.sources.processes import ProcessTable

MOST = 4096
_OPEN_FILES_SHARE = 4
"""At most one in so many of the files this process may open is such a handle."""


class Ends:
    """For one thread at a time. One poll tells which of thousands of processes have ended, without a read of each."""

    def __init__(self, table: ProcessTable) -> None:
        self._table = table
        self._held: dict[int, tuple[int, ProcessIdentity]] = {}
        """By handle: the pid for which it was opened, and the process."""
        self._by_pid: dict[int, int] = {}
        self._ended = select.epoll()
        self._most = min(MOST, os.sysconf("SC_OPEN_MAX") // _OPEN_FILES_SHARE)

    def hold(self, process: ProcessIdentity) -> bool:
        """Whether it is held from now on; False: it has ended, or cannot be held, and must be looked at each time."""
        if not self._table.is_real or len(self._held) >= self._most:
            return False
        self.let_go(process.pid)
        try:
            handle = os.pidfd_open(process.pid)
        except OSError:  # gone, or a kernel without it, or no more open files
            return False
        # Another of its number may have come before the handle did.
        if self._table.start_ticks(process.pid) != process.start_ticks:
            os.close(handle)
            return False
        self._ended.register(handle, select.EPOLLIN)
        self._held[handle] = (process.pid, process)
        self._by_pid[process.pid] = handle
        return True

    def ended(self) -> list[ProcessIdentity]:
        """Who of them has ended since the last question; they are held no more."""
        found = []
        for handle, _ in self._ended.poll(0, max(1, len(self._held))) if self._held else ():
            pid, process = self._held[handle]
            self.let_go(pid)
            found.append(process)
        return found

    def let_go(self, pid: int) -> None:
        """Holds it no more, if it did."""
        handle = self._by_pid.pop(pid, None)
        if handle is not None:
            del self._held[handle]
            self._ended.unregister(handle)
            os.close(handle)

    def holds(self, process: ProcessIdentity) -> bool:
        """Whether it is held, and has not been told to have ended."""
        handle = self._by_pid.get(process.pid)
        return handle is not None and self._held[handle][1] == process

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of all; twice is once."""
        for pid in list(self._by_pid):
            self.let_go(pid)
        self._ended.close()
