"""Asks a helper: a program that the guard starts for one request, so that its own process does not load what no kill needs.

The helper is a child under the same account, with the same interpreter. It gets no variable, no site package and no descriptor of the
guard but one end of a socket pair. A pair has no name, and unlike a pipe it cannot be opened again through /proc (proc(5)). Whatever is
not exactly one answer in time refuses what was asked.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

import console
from console.domain.errors import Unavailable

ANSWER_S = 30.0
"""From the start of a helper to its end. On a busy machine an interpreter alone takes seconds to start."""
MOST_ANSWER = 256 * 1024
_CODE = "import sys; sys.path.append(sys.argv[1]); from console.killswitch.helpers.{} import main; main()"
_ENVIRONMENT = {"LC_ALL": "C.UTF-8"}
_ORDINARY = (signal.SIGINT, signal.SIGPIPE, signal.SIGTERM, signal.SIGUSR1)
"""Signals that the guard ignores or handles; a helper dies of each."""


def ask(name: str, request: dict[str, Any], limit_s: float = ANSWER_S) -> dict[str, Any]:
    """The answer of the helper ``name``. Raises Unavailable, with why, for anything that is not exactly one answer in time.

    Waits: for the clerk's thread, never for the loop.
    """
    until = time.monotonic() + limit_s
    try:
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                pid = _start(command(name), theirs.fileno())
            try:
                line = _exchange(ours, json.dumps(request).encode() + b"\n", until)
            except (OSError, ValueError):
                _reap(pid, 0.0)
                raise
            if (code := _reap(pid, until)) != 0:
                raise ValueError(f"it ended with {code}")
        answer = json.loads(line)
        if not isinstance(answer, dict):
            raise ValueError("it is no object")
    except (OSError, ValueError, RecursionError) as error:
        why = "in time" if isinstance(error, TimeoutError) else f"that can be used ({error})"
        raise Unavailable(f"The guard's helper for this ({name}) gave no answer {why}.", "Nothing was done. Try again.") from error
    return answer


def command(name: str) -> list[str]:
    """The helper's command. Without site packages, user folders, variables and the current folder (python(1), -I and -S)."""
    return [sys.executable, "-I", "-S", "-c", _CODE.format(name), str(Path(next(iter(console.__path__))).parent)]


def _start(words: list[str], socket_fd: int) -> int:
    """Its pid. All other descriptors of the guard are closed by the kernel (PEP 446)."""
    actions = [(os.POSIX_SPAWN_DUP2, socket_fd, number) for number in (0, 1)]
    return os.posix_spawn(words[0], words, _ENVIRONMENT, file_actions=actions, setsigdef=_ORDINARY, setsid=True)


def _exchange(sock: socket.socket, request: bytes, until: float) -> bytes:
    """Sends the request, and reads until the helper closes its end. TimeoutError, OSError, or ValueError for more or less than a line."""
    data = bytearray()
    sock.settimeout(_left(until))
    sock.sendall(request)
    while more := _receive(sock, until):
        data += more
        if len(data) > MOST_ANSWER:
            raise ValueError("it says too much")
    if data.count(b"\n") != 1 or not data.endswith(b"\n"):
        raise ValueError("it is not one line")
    return bytes(data)


def _receive(sock: socket.socket, until: float) -> bytes:
    sock.settimeout(_left(until))
    return sock.recv(65536)


def _left(until: float) -> float:
    if (left := until - time.monotonic()) <= 0:
        raise TimeoutError
    return left


def _reap(pid: int, until: float) -> int:
    """Its exit code; negative for the signal that ended it. It is killed when it has not ended by then."""
    try:
        handle = os.pidfd_open(pid)  # a child that was not waited for keeps its number
    except OSError:
        os.kill(pid, signal.SIGKILL)  # too few descriptors to wait for its end
    else:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        os.close(handle)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
