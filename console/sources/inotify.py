"""Reports changes in folders (inotify(7)). It gives names and opens nothing, and no thread wakes while nothing changes."""

from __future__ import annotations

import asyncio
import ctypes
import os
import struct
from collections.abc import Iterator

# inotify(7), <sys/inotify.h>
_MODIFY, _ATTRIB, _CLOSE_WRITE, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x2, 0x4, 0x8, 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF, _ONLYDIR = 0x400, 0x800, 0x1000000
_CHANGES = _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF | _ONLYDIR
_HEAD = struct.Struct("iIII")
_ROOM = 64 * 1024


class Inotify:
    """One queue of changes, for one thread. ``fd`` becomes readable when there is a change."""

    def __init__(self) -> None:
        """Raise OSError when this account may have no more queues (fs.inotify.max_user_instances)."""
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def watch(self, folder: str) -> int:
        """Watch a folder; return its number, the same for a watched folder. Raise OSError when the kernel refuses."""
        return self._checked(self._libc.inotify_add_watch(self.fd, os.fsencode(folder), _CHANGES))

    def news(self) -> Iterator[tuple[int, str]]:
        """Yield (number of the folder, changed name); without a name the folder itself changed, and -1 is an overflow."""
        try:
            while raw := os.read(self.fd, _ROOM):
                at = 0
                while at < len(raw):
                    number, _, _, length = _HEAD.unpack_from(raw, at)
                    name = raw[at + _HEAD.size : at + _HEAD.size + length].rstrip(b"\0")
                    at += _HEAD.size + length
                    yield number, os.fsdecode(name)
        except BlockingIOError:
            return

    def close(self) -> None:
        """End the watch; a second call does nothing."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _checked(self, answer: int) -> int:
        if answer < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return answer


class FolderNews:
    """Lets a loop wait for changes in one folder. Without inotify only the time limit ends a wait."""

    def __init__(self, folder: str) -> None:
        self._changed = asyncio.Event()
        self._told: Inotify | None = None
        try:
            self._told = Inotify()
            self._told.watch(folder)
            asyncio.get_running_loop().add_reader(self._told.fd, self._read, self._told)
        except OSError:
            self.close()

    def _read(self, told: Inotify) -> None:
        if list(told.news()):
            self._changed.set()

    async def wait(self, at_most_s: float) -> None:
        """Return at a change since the last return, or after so many seconds."""
        timer = asyncio.get_running_loop().call_later(at_most_s, self._changed.set)
        try:
            await self._changed.wait()
        finally:
            timer.cancel()
            self._changed.clear()

    def __enter__(self) -> FolderNews:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the watch; a second call does nothing."""
        told, self._told = self._told, None
        if told is not None:
            asyncio.get_running_loop().remove_reader(told.fd)
            told.close()
