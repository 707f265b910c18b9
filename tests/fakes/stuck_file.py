"""A file whose reader waits in the kernel beyond every signal: state D, until the file is let go. It is one of a FUSE mount."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import tempfile
import threading
from pathlib import Path

import pytest

_LIBC = ctypes.CDLL(None, use_errno=True)
_FORCE, _DETACH = 1, 2  # umount2(2)
_LOOKUP, _FORGET, _GETATTR, _INIT = 1, 2, 3, 26  # fuse(4), as the next two
_ROOT_ATTR = struct.pack("QII6Q10I", 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0o40755, 2, 0, 0, 0, 4096, 0)
_AGREED = struct.pack("IIIIHHII", 7, 31, 65536, 0, 12, 9, 65536, 1).ljust(64, b"\0")
_NOT_THERE = 38


class StuckFile:
    """Whoever opens ``path`` waits. Its server has read the question, and so the kernel lets nobody go before there is an answer.

    Anything else in the folder is answered at once: whoever passes by does not get stuck.
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="watchfloor-stuck-"))
        self.path = self.folder / "stuck"
        self.asked = threading.Event()
        """Somebody waits."""
        try:
            self._device = os.open("/dev/fuse", os.O_RDWR)
        except OSError as error:
            self.folder.rmdir()
            pytest.skip(f"not available, because /dev/fuse cannot be opened: {error.strerror}")
        options = f"fd={self._device},rootmode=40000,user_id=0,group_id=0,allow_other"
        if _LIBC.mount(b"watchfloor-stuck", str(self.folder).encode(), b"fuse", 0, options.encode()):
            os.close(self._device)
            self.folder.rmdir()
            pytest.skip(f"not available, because nothing can be mounted: {os.strerror(ctypes.get_errno())}")
        self._thread = threading.Thread(target=self._serve, name="stuck-file", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Every reader goes on, with an error; one that was killed dies."""
        if self._device < 0:
            return
        _LIBC.umount2(str(self.folder).encode(), _FORCE)  # ends the connection, whether or not it is unmounted
        _LIBC.umount2(str(self.folder).encode(), _DETACH)
        self._thread.join(60)
        os.close(self._device)
        self._device = -1
        self.folder.rmdir()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):  # ENODEV: closed
            while request := os.read(self._device, 1 << 18):
                _, operation, number = struct.unpack_from("IIQ", request)
                if operation == _LOOKUP and request[40:].rstrip(b"\0") == self.path.name.encode():
                    self.asked.set()
                elif operation != _FORGET:
                    body = {_INIT: _AGREED, _GETATTR: _ROOT_ATTR}.get(operation)
                    error = -_NOT_THERE if body is None else 0
                    os.write(self._device, struct.pack("IiQ", 16 + len(body or b""), error, number) + (body or b""))
