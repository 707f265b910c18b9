"""``python -m tests.fakes.power_hooks ARGV``: a supervisor (``serve ...``) or a guard that tells a ``power.Recorder`` of its syncs.

Python's syncs go through ``os``. SQLite's do not: its default VFS is given an ``xOpen`` that gives every file an ``xSync`` of ours
(sqlite.org/c3ref/io_methods.html).
"""

from __future__ import annotations

import _sqlite3
import ctypes
import json
import os
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any

from tests.fakes.power import SOCKET_VARIABLE

_REGISTER = 18
"""Methods in version 3 of sqlite3_io_methods; of older versions the last are not read."""


class _Methods(ctypes.Structure):
    _fields_ = (("version", ctypes.c_int), ("methods", ctypes.c_void_p * _REGISTER))


class _File(ctypes.Structure):
    _fields_ = (("methods", ctypes.POINTER(_Methods)),)


_OPEN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(_File), ctypes.c_int, ctypes.POINTER(ctypes.c_int))
_SYNC = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
_X_SYNC = 4


class _Vfs(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_int),
        ("file_size", ctypes.c_int),
        ("longest", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("open", ctypes.c_void_p),
    )


class Teller:
    """Tells the recorder, and waits until it has looked."""

    def __init__(self, path: str) -> None:
        self._lock, self._socket = threading.Lock(), socket.socket(socket.AF_UNIX)
        self._socket.connect(path)

    def tell(self, what: str, path: str, ino: int) -> None:
        with self._lock:
            try:
                self._socket.sendall(json.dumps({"what": f"{what} {path}", "ino": ino}).encode() + b"\n")
                self._socket.recv(1)
            except OSError:
                pass  # the recording is over

    def tell_sync(self, what: str, path: str) -> None:
        self.tell(what, path, os.stat(path).st_ino)


def hook_os(teller: Teller) -> None:
    def syncing(real: Callable[[Any], None], what: str) -> Callable[[Any], None]:
        def sync(file: Any) -> None:
            number = file if isinstance(file, int) else file.fileno()
            teller.tell(what, os.readlink(f"/proc/self/fd/{number}"), os.fstat(number).st_ino)
            real(file)

        return sync

    def renaming(real: Callable[..., None], what: str) -> Callable[..., None]:
        def rename(source: Any, target: Any, **options: Any) -> None:
            real(source, target, **options)
            teller.tell(what, os.fsdecode(target), 0)

        return rename

    for what in ("fsync", "fdatasync"):
        setattr(os, what, syncing(getattr(os, what), what))
    for what in ("rename", "replace", "link"):
        setattr(os, what, renaming(getattr(os, what), what))


class SqliteHook:
    """Lives as long as the process: C calls into it."""

    def __init__(self, teller: Teller) -> None:
        self._teller = teller
        library = ctypes.CDLL(_sqlite3.__file__)  # finds what that module is linked with
        library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
        library.sqlite3_initialize()
        vfs = library.sqlite3_vfs_find(None).contents
        self._open = _OPEN(vfs.open)
        self._ours: dict[int, tuple[_Methods, Any]] = {}
        self._paths: dict[int, str] = {}
        self._new: set[int] = set()
        """Journals whose folder SQLite syncs at their first sync (os_unix.c, UNIXFILE_DIRSYNC)."""
        self._callback = _OPEN(self._opened)
        vfs.open = ctypes.cast(self._callback, ctypes.c_void_p).value

    def _opened(self, vfs: Any, name: int | None, file: Any, flags: int, out: Any) -> int:
        # SQLite keeps the pointer to the name as long as the file is open: it is handed on as it came.
        code = int(self._open(vfs, name, file, flags, out))
        if code == 0 and name and file.contents.methods:
            path, at = os.fsdecode(ctypes.string_at(name)), ctypes.addressof(file.contents)
            theirs = ctypes.addressof(file.contents.methods.contents)
            if theirs not in self._ours:
                self._ours[theirs] = self._replaced(file.contents.methods.contents)
            self._paths[at] = path
            (self._new.add if path.endswith(("-wal", "-journal")) else self._new.discard)(at)
            file.contents.methods = ctypes.pointer(self._ours[theirs][0])
        return code

    def _replaced(self, theirs: _Methods) -> tuple[_Methods, Any]:
        ours = _Methods()
        ctypes.memmove(ctypes.byref(ours), ctypes.byref(theirs), ctypes.sizeof(_Methods))
        real = _SYNC(theirs.methods[_X_SYNC])

        def sync(file: int, flags: int) -> int:
            path = self._paths[file]
            if os.path.exists(path):
                self._teller.tell_sync("sqlite", path)
            code = int(real(file, flags))
            if file in self._new:
                self._new.discard(file)
                self._teller.tell_sync("sqlite", os.path.dirname(path))
            return code

        callback = _SYNC(sync)
        ours.methods[_X_SYNC] = ctypes.cast(callback, ctypes.c_void_p).value
        return ours, callback


def main() -> int:
    teller = Teller(os.environ[SOCKET_VARIABLE])
    hook_os(teller)
    globals()["_kept"] = SqliteHook(teller)
    if "serve" in sys.argv:
        from console.supervisor.__main__ import main as run
    else:
        from console.killswitch.__main__ import main as run
    return run()


if __name__ == "__main__":
    sys.exit(main())
