"""What systemd and this process tell each other, with the standard library alone: ready and alive (sd_notify(3)), and passed sockets."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

SOCKET = "NOTIFY_SOCKET"
PASSED, MEANT_FOR, FIRST = "LISTEN_FDS", "LISTEN_PID", 3
READY, ALIVE, STOPPING = "READY=1", "WATCHDOG=1", "STOPPING=1"


def notify(*lines: str) -> bool:
    """Send assignments such as READY to systemd. False when it did not start this process, or cannot be told now; never waits."""
    named = os.environ.get(SOCKET, "")
    if not named.startswith(("/", "@")):
        return False
    address = "\0" + named[1:] if named.startswith("@") else named
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK) as sock:
            sock.sendto("\n".join(lines).encode(errors="replace"), address)
    except OSError:
        return False
    return True


def passed_socket(path: Path) -> int | None:
    """The descriptor of the socket at ``path`` on which systemd listens for this process (sd_listen_fds(3)). None: bind one there.

    A socket whose file was replaced, for example by a restored backup, is not used: no client could reach this process through it.
    """
    count = os.environ.get(PASSED, "") if os.environ.get(MEANT_FOR) == str(os.getpid()) else ""
    for descriptor in range(FIRST, FIRST + (int(count) if count.isdigit() else 0)):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as passed:
            if passed.family == socket.AF_UNIX and Path(passed.getsockname()).samefile(path) and _takes_connections(path):
                os.set_inheritable(descriptor, False)
                return descriptor
    return None


def _takes_connections(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK) as probe:
        try:
            probe.connect(str(path))
        except BlockingIOError:  # so many wait already
            return True
        except OSError:
            return False
    return True
