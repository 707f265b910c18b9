"""Processes by identity: start ticks, pidfds and the wait for an end. No name is ever looked at, no bare pid is signalled."""

from __future__ import annotations

import errno
import os
import select
from pathlib import Path


def start_ticks(pid: int) -> int:
    """Field 22 of /proc/PID/stat (proc(5)). Raises ProcessLookupError when there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError) as error:
        raise ProcessLookupError(f"no process {pid}") from error
    # The command name may hold spaces and parentheses: what counts stands behind the last one.
    return int(text.rsplit(")", 1)[1].split()[19])


def open_process(pid: int, ticks: int) -> int | None:
    """A pidfd of exactly that process, or None when it has ended. OSError when that cannot be told (too few descriptors, say).

    The pidfd comes first, so reuse cannot slip between.
    """
    try:
        pidfd = os.pidfd_open(pid)
    except OSError as error:
        if error.errno in (errno.ESRCH, errno.EINVAL):  # EINVAL: its number is a thread's by now
            return None
        raise
    try:
        same = start_ticks(pid) == ticks
    except (ProcessLookupError, ValueError, IndexError):
        same = False
    except OSError:
        os.close(pidfd)
        raise
    if same:
        return pidfd
    os.close(pidfd)
    return None


def wait_gone(pidfd: int, timeout: float | None) -> bool:
    """Whether the process of ``pidfd`` ended within ``timeout`` seconds (None: waits for ever)."""
    poll = select.poll()  # select() cannot watch descriptors above 1023
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(None if timeout is None else max(0, int(timeout * 1000))))
