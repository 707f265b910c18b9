"""Tells systemd that this process is ready and alive (sd_notify(3)), with the standard library alone."""

from __future__ import annotations

import os
import socket

SOCKET, PERIOD, MEANT = "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"
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


def watchdog_s() -> float:
    """Seconds after which systemd replaces this process when it hears nothing; 0 when it does not watch this process."""
    period, meant = os.environ.get(PERIOD, ""), os.environ.get(MEANT, "")
    if not period.isdigit() or (meant and meant != str(os.getpid())):
        return 0.0
    return int(period) / 1e6
