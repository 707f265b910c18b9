"""Processes that cgroup.kill does not end: a signal to each as a whole, through a pidfd, does.

Measured (kernel 6.18): of a process whose first thread has ended while others of its run, the kernel sends SIGKILL to the first thread
alone, a zombie that takes no signal any more, and skips it at every later write since the signal is pending there. And in a threaded
group, which an agent that is root may have made of its own, the write is refused (cgroup-v2.rst): there it is every process.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from console.killswitch import processes
from console.killswitch.cgroups import Leaf, Mount, Refused, kind_of
from console.killswitch.registry import Held

AFTER_MS = 150.0
"""Since the press: before that the kernel is still at work on a fleet, and every look of ours would only delay it."""


def strike_leaderless(held: Held | None, mount: Mount | None, below: Path | None, spared: Callable[[], frozenset[int]]) -> int:
    """How many members of its cgroups were such and were sent SIGKILL. Never raises; never one of ``spared``, nor in a group that is
    refused (``Leaf.check`` with ``mount`` and ``below``). A threaded group is frozen first, so that nobody in it forks ahead of us."""
    sent = 0
    for leaf, root in ((held.leaf, below), (held.container, None)) if held is not None else ():
        if leaf is None:
            continue
        with suppress(Refused, OSError):
            leaf.check(mount, root)
            if is_threaded := kind_of(leaf.path) == "threaded":
                leaf.freeze(True)
            left = [pid for pid in leaf.pids() if is_threaded or processes.state(pid) == "Z"]
            never = {os.getpid(), os.getppid(), *spared()} if left else set()
            sent += sum(_send(leaf, pid) for pid in left if pid not in never)
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
