"""Who wrote the bytes that were just read: the kernel says it of every piece, so a connection that is kept, or handed on, hides nobody."""

from __future__ import annotations

import socket
import struct
from typing import Any
from weakref import WeakValueDictionary

_CREDENTIALS = struct.Struct("iII")
_SPACE = socket.CMSG_LEN(_CREDENTIALS.size)
"""Room for the sender's credentials and for nothing else: descriptors that somebody sends along are dropped by the kernel (unix(7))."""
PIECE = 64 * 1024
"""Bytes read at once."""


class NamedSocket(socket.socket):
    """A connected unix socket that remembers the process which wrote what was read last. Pieces of two writers are never read as one."""

    sender: tuple[int, int] = (0, 0)
    """(pid, uid); pid 0: not known."""

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        """As every socket's; and ``sender`` is whoever wrote it."""
        data, told, _flags, _address = self.recvmsg(min(size, PIECE), _SPACE, flags)
        if data:
            self.sender = _sender(told)
        return data


class NamedListener(socket.socket):
    """A listening unix socket whose connections are such."""

    def __init__(self) -> None:
        super().__init__(socket.AF_UNIX, socket.SOCK_STREAM)
        self.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)  # connections have it from here, before anything is written to them
        self._made: WeakValueDictionary[int, NamedSocket] = WeakValueDictionary()

    def accept(self) -> tuple[NamedSocket, Any]:
        """The next connection. OSError as every socket's."""
        plain, address = super().accept()
        made = NamedSocket(self.family, self.type, self.proto, plain.detach())
        made.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._made[made.fileno()] = made
        return made, address

    def connection(self, descriptor: int) -> NamedSocket:
        """The one of this descriptor, which lives. KeyError."""
        return self._made[descriptor]


def _sender(told: list[tuple[int, int, bytes]]) -> tuple[int, int]:
    for level, kind, data in told:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS) and len(data) >= _CREDENTIALS.size:
            pid, uid, _gid = _CREDENTIALS.unpack(data[: _CREDENTIALS.size])
            return pid, uid
    return 0, 0
