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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import console
from console.domain.errors import Unavailable
from console.domain.guard import HELPER_S

MOST_ANSWER = 256 * 1024
_CODE = "import sys; sys.path.append(sys.argv[1]); from console.killswitch.helpers.{} import main; main()"
_ENVIRONMENT = {"LC_ALL": "C.UTF-8"}
_ORDINARY = (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1)
"""Signals that the guard ignores or handles; a helper dies of each."""


def ask(name: str, request: dict[str, Any], shape: dict[str, type], limit_s: float = HELPER_S) -> dict[str, Any]:
    """The answer of the helper ``name``, with exactly these fields of these types.

    Raises Unavailable, with why, for anything that is not exactly one such answer in time. Waits: the clerk's thread alone calls it.
    """
    with Helper(name, limit_s) as helper:
        answer = helper.ask(request, shape)
        helper.end()
    return answer


class Helper:
    """One helper from its start to its end, for a request that another one prepares. Every method raises Unavailable; then it is over."""

    def __init__(self, name: str, limit_s: float = HELPER_S) -> None:
        self._name, self._until, self._pid = name, time.monotonic() + limit_s, 0
        with self._told():
            self._sock, theirs = socket.socketpair()
            try:
                self._pid = _start(command(name), theirs.fileno())
            except BaseException:
                self._sock.close()
                raise
            finally:
                theirs.close()

    def __enter__(self) -> Helper:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._sock.close()

    def kill(self) -> None:
        """Whatever it does now is over: it is killed unless it has ended."""
        pid, self._pid = self._pid, 0
        if pid:
            _reap(pid, 0.0)

    def ask(self, request: dict[str, Any], shape: dict[str, type]) -> dict[str, Any]:
        """One line with the request, one line with an answer of this shape."""
        with self._told():
            self._wait()
            self._sock.sendall(json.dumps(request).encode() + b"\n")
            data = bytearray()
            while not data.endswith(b"\n"):
                data += (more := self._receive())
                if not more or len(data) > MOST_ANSWER:
                    raise ValueError("it is not one line")
            if data.count(b"\n") != 1:
                raise ValueError("it is not one line")
            return checked(json.loads(data), shape)

    def end(self) -> None:
        """No request more: it has said no more than its answers, and ends in order."""
        with self._told():
            self._sock.shutdown(socket.SHUT_WR)
            if self._receive():
                raise ValueError("it says more than its answer")
            pid, self._pid = self._pid, 0
            if (code := _reap(pid, self._until)) != 0:
                raise ValueError(f"it ended with {code}")

    def _receive(self) -> bytes:
        self._wait()
        return self._sock.recv(65536)

    def _wait(self) -> None:
        if (left := self._until - time.monotonic()) <= 0:
            raise TimeoutError
        self._sock.settimeout(left)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError, RecursionError) as error:
            why = "in time" if isinstance(error, TimeoutError) else f"that can be used ({error})"
            words = f"The guard's helper for this ({self._name}) gave no answer {why}."
            raise Unavailable(words, "Nothing was done. Try again.") from error


def checked(answer: Any, shape: dict[str, type]) -> dict[str, Any]:
    """The answer, if it has exactly these fields of these types. ValueError for any other: nothing of it is taken over."""
    if not isinstance(answer, dict) or {key: type(value) for key, value in answer.items()} != shape:
        raise ValueError("it has another shape")
    return answer


def command(name: str) -> list[str]:
    """The helper's command. Without site packages, user folders, variables and the current folder (python(1), -I and -S)."""
    return [sys.executable, "-I", "-S", "-c", _CODE.format(name), str(Path(next(iter(console.__path__))).parent)]


def _start(words: list[str], socket_fd: int) -> int:
    """Its pid. It inherits standard error and one end of the pair, and no other descriptor."""
    # posix_spawn and subprocess hold the interpreter's lock until the program is loaded: on a slow disk no kill would begin.
    if pid := os.fork():
        return pid
    try:
        os.setsid()
        for number in (0, 1):
            os.dup2(socket_fd, number)
        # An exec on a slow disk takes long: a guard that dies meanwhile must leave no lock and no line open.
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        for number in _ORDINARY:
            signal.signal(number, signal.SIG_DFL)
        os.execve(words[0], words, _ENVIRONMENT)
    finally:
        os._exit(127)


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
