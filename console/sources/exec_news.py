"""Names the processes that executed a program, as the kernel reports them (process connector, linux/cn_proc.h).

It needs root or Linux 6.6, and the initial PID and user namespaces. A report only says which process to read: facts come from /proc.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import select
import socket
import struct
import time
from contextlib import suppress

_NETLINK_CONNECTOR, _IDX_PROC, _VAL_PROC, _LISTEN, _DONE = 11, 1, 1, 1, 3
_EXEC, _ACK = 2, 0
"""PROC_EVENT_EXEC and PROC_EVENT_NONE of enum proc_cn_event."""
_ANSWERED, _WHAT, _PID = 28, 36, 56
"""Offsets of ``ack`` in struct cn_msg, ``what`` in struct proc_event, and its ``process_tgid``. The error of an answer is 4 before."""
_SO_ATTACH_FILTER, _SO_RCVBUFFORCE = 26, 33
_ROOM = 1 << 20
_ANSWER_S = 0.5


class ExecNews:
    """Reports of the kernel, for one thread at a time. They wait in a queue until they are read, so no thread wakes for them."""

    def __init__(self) -> None:
        """Raise OSError when the kernel sends this process no reports."""
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK, _NETLINK_CONNECTOR)
        try:
            self._begin()
        except OSError:
            self.close()
            raise

    def _begin(self) -> None:
        self._take_only(_EXEC, _ACK)
        with suppress(OSError):  # a queue above net.core.rmem_max needs a privilege; a short one overflows sooner
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _ROOM)
        self._socket.bind((0, _IDX_PROC))
        number = secrets.randbits(31)
        listen = struct.pack("=IIIIHHI", _IDX_PROC, _VAL_PROC, 0, number, 4, 0, _LISTEN)
        self._socket.send(struct.pack("=IHHII", 16 + len(listen), _DONE, 0, 0, os.getpid()) + listen)
        # In another namespace the kernel takes the request and never answers.
        until = time.monotonic() + _ANSWER_S
        while (left := until - time.monotonic()) > 0:
            poll = select.poll()
            poll.register(self._socket, select.POLLIN)
            if poll.poll(left * 1000):
                said = self._socket.recv(4096)
                if len(said) >= _PID and (_u32(said, _WHAT), _u32(said, _ANSWERED)) == (_ACK, number + 1):
                    if (trouble := _u32(said, _PID - 4)) != 0:
                        raise OSError(trouble, os.strerror(trouble))
                    return
        raise TimeoutError(errno.ETIMEDOUT, "the kernel tells nothing of processes here")

    def _take_only(self, *what: int) -> None:
        """Let only these events into the queue (socket(7), SO_ATTACH_FILTER)."""
        equals = [(0x15, len(what) - n, 0, socket.htonl(one)) for n, one in enumerate(what)]  # equal: jump to the last line
        program = [(0x20, 0, 0, _WHAT), *equals, (0x06, 0, 0, 0), (0x06, 0, 0, 0xFFFFFFFF)]  # load, drop, accept
        code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in program))
        given = struct.pack("@HP", len(program), ctypes.addressof(code))
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, given)

    def began(self) -> set[int] | None:
        """Return the pids that executed a program since the last call; None when the queue overflowed."""
        found: set[int] = set()
        is_whole = True
        while True:
            try:
                said = self._socket.recv(4096)
            except BlockingIOError:
                return found if is_whole else None
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                is_whole = False
                continue
            if len(said) >= _PID + 4 and _u32(said, _WHAT) == _EXEC:
                found.add(_u32(said, _PID))

    def __del__(self) -> None:
        if hasattr(self, "_socket"):
            self.close()

    def close(self) -> None:
        """End the reports; a second call does nothing."""
        self._socket.close()


def exec_news() -> ExecNews | None:
    """Return the reports, or None when the kernel sends this process none."""
    try:
        return ExecNews()
    except OSError:
        return None


def _u32(said: bytes, at: int) -> int:
    return int(struct.unpack_from("=I", said, at)[0])
