"""The frame of a helper: a request in, an answer out, and the end when the guard has no more.

A helper has no rights of its own and listens nowhere. It speaks with its parent alone, over the socket that this parent made and that it
inherited as descriptor 0. It ends with its parent, and after ``LONGEST_S`` in any case.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable
from typing import Any

LONGEST_S = 60
"""After that the kernel ends it (SIGALRM): the guard may have died, or may stand still."""
MOST_REQUEST = 256 * 1024
_PEER = struct.Struct("3i")


def serve(answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Answer each request. Any fault ends the process without an answer: a traceback could repeat a secret."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(LONGEST_S)
    try:
        os.chdir("/")
        parent = socket.socket(fileno=0)
        if not is_parent(parent):
            os._exit(2)
        busy = threading.Event()
        threading.Thread(target=_end_with, args=(parent, busy), name="parent", daemon=True).start()
        while line := read_line(parent):
            busy.set()
            said = json.dumps(answer(json.loads(line))).encode() + b"\n"
            busy.clear()
            parent.sendall(said)
    except BaseException as fault:  # noqa: BLE001 - the last frame of this process; the kind alone is said
        sys.stderr.write(f"helper: {type(fault).__name__}\n")
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)  # no library may hold up the end, or say anything more


def is_parent(sock: socket.socket) -> bool:
    """Whether the other end was made by the process that started this one, under the same account (SO_PEERCRED, unix(7))."""
    pid, uid, _ = _PEER.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return bool(pid == os.getppid() and uid == os.geteuid())


def read_line(sock: socket.socket) -> bytes:
    """One line; empty at the end. ValueError when that comes in a line, or for more than ``MOST_REQUEST`` bytes, or more than one line."""
    data = bytearray()
    while b"\n" not in data:
        more = sock.recv(65536)
        if not more and not data:
            return b""
        if not more or len(data) + len(more) > MOST_REQUEST:
            raise ValueError("no request")
        data += more
    if not data.endswith(b"\n") or data.count(b"\n") != 1:
        raise ValueError("more than one request")
    return bytes(data)


def _end_with(parent: socket.socket, busy: threading.Event) -> None:
    """The guard keeps its end open until it has its answer. When that closes meanwhile, no process waits for one."""
    poll = select.poll()
    # Not POLLIN: the next request may lie there already, and only the end of the guard's side is of interest.
    poll.register(parent, select.POLLRDHUP)
    poll.poll()
    if busy.is_set():
        os._exit(3)
