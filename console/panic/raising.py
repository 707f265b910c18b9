"""Raises the panic window of a running panic process. Nothing heavy is imported: the window must be up within 150 ms of the command."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Sequence

SOCKET = "panic.sock"
"""In the folder of the instance's sockets."""
ANSWER_S = 1.0
"""A panic process that is stopped or hangs answers later, or never: then a window of its own is opened instead."""
RAISED = b"raised\n"


def is_ours(connection: socket.socket) -> bool:
    """Whether the process at the other end is this account's, and no agent's.

    As at the guard's socket: no agent by its cgroup or PID namespace, nor a process that has ended and of which nothing is known
    (unix(7), SO_PEERCRED).
    """
    try:
        pid, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        with open(f"/proc/{pid}/cgroup", encoding="utf-8", errors="replace") as file:
            places = file.read().splitlines()
        elsewhere = os.stat(f"/proc/{pid}/ns/pid").st_ino != os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return False
    return uid == os.geteuid() and not elsewhere and not any(_is_agents(place) for place in places)


def _is_agents(place: str) -> bool:
    """``0::/watchfloor-0a1b2c3d/agents/...``: the cgroup of an agent of some instance."""
    parts = place.split("/")
    return any(a.startswith("watchfloor-") and b == "agents" for a, b in zip(parts, parts[1:], strict=False))


def display() -> str:
    """This process's displays, as one word."""
    return "|".join(os.environ.get(name, "") for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def shares_display(asked: str, own: str) -> bool:
    """Whether a window on ``own`` is seen where ``asked`` comes from. A request without a display (a hardware button) is served."""
    pairs = list(zip(asked.split("|"), own.split("|"), strict=False))
    return not asked.strip("|") or any(a and a == b for a, b in pairs)


def connect(path: str, timeout_s: float = ANSWER_S) -> socket.socket | None:
    """A connection to the panic process, or None: there is none, or another account's or an agent's process listens there."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # A process that is stopped still has its socket, and its backlog takes a connection that nothing answers.
    made.settimeout(timeout_s)
    try:
        made.connect(path)
    except OSError:
        made.close()
        return None
    if is_ours(made):
        return made
    made.close()
    return None


def raise_window(path: str) -> bool:
    """Whether a panic process showed its window."""
    line = connect(path)
    if line is None:
        return False
    with line:
        try:
            line.sendall(f"raise {display()}\n".encode())
            return line.recv(64) == RAISED
        except OSError:
            return False


def raise_quickly(argv: Sequence[str]) -> bool:
    """``watchfloor panic-button [--state-dir D]``, where the instance lies at an ordinary place. False: go the long way."""
    match list(argv):
        case []:
            folder = os.environ.get("WATCHFLOOR_STATE_DIR") or _default_folder()
        case ["--state-dir", folder]:
            pass
        case _:
            return False
    return raise_window(os.path.join(folder, "run", SOCKET))


def _default_folder() -> str:
    """As ``settings.places`` has it; where that differs, the long way finds it."""
    if os.geteuid() == 0:
        return "/var/lib/watchfloor"
    return os.path.join(os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state"), "watchfloor")
