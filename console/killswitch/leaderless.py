"""Processes whose first thread has ended while others of theirs run: cgroup.kill does not end them.

Measured (kernel 6.18): the kernel sends SIGKILL to the first thread alone, a zombie that takes no signal any more, and skips it at every
later write since the signal is pending there. A signal to the whole process, through a pidfd, ends it at once.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from console.killswitch import processes
from console.killswitch.cgroups import Leaf, Mount, Refused
from console.killswitch.registry import Held

AFTER_MS = 150.0
"""Since the press: before that the kernel is still at work on a fleet, and every look of ours would only delay it."""


def strike_leaderless(held: Held | None, mount: Mount | None, below: Path | None, spared: Callable[[], frozenset[int]]) -> int:
    """How many members of its cgroups were such and were sent SIGKILL. Never raises; never one of ``spared``, nor in a group that is
    refused (``Leaf.check`` with ``mount`` and ``below``)."""
    sent = 0
    for leaf, root in ((held.leaf, below), (held.container, None)) if held is not None else ():
        if leaf is None:
            continue
        with suppress(Refused, OSError):
            leaf.check(mount, root)
            left = [pid for pid in leaf.pids() if processes.state(pid) == "Z" and pid not in (os.getpid(), os.getppid())]
            sent += sum(_send(leaf, pid) for pid in left if pid not in spared())
    return sent


def _send(leaf: Leaf, pid: int) -> bool:
    with suppress(OSError):
        descriptor = os.pidfd_open(pid)
        try:
            if pid in leaf.pids():  # whoever is held now is a member, and no one who was given its number meanwhile
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                return True
        finally:
            os.close(descriptor)
    return False
