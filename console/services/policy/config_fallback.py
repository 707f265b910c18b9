"""Keep the last good bytes of a configuration file beside it: after a restart they count when the file is broken or gone.

What cannot be stored is not in force: every check is denied until it is stored, since a restart would not know of it. Room for the next
bytes is reserved while the disk has some. On a full disk a second name (a hard link) of the file itself serves instead, as long as the file
is not written. That state is shown, checked at every call, and replaced by a copy as soon as there is room.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from console.domain.process.durable import replace_file, sync_folder

AGAIN_S = 1.0
"""Between two tries to keep what could not be kept."""
RESERVE_AGAIN_S = 30.0
RESERVE_BYTES = 16 * 1024
"""Laid aside at least; more for what is larger."""
DENIED = "Nothing is allowed until it is."
_FULL = (errno.ENOSPC, errno.EDQUOT)


class LastGood:
    """Not thread-safe: its desk has a lock. ``say`` is told what a person must know though nothing is denied by it; ``meanwhile`` ends the
    words of what is not kept at all."""

    __slots__ = ("_reserve", "_owed", "_second", "_again_at", "trouble", "_size", "_is_reserved", "_source", "_path", "_say", "_meanwhile")

    def __init__(self, source: Path, path: Path, say: Callable[[str], None] = lambda _words: None, meanwhile: str = DENIED) -> None:
        self._source, self._path, self._say, self._meanwhile = source, path, say, meanwhile
        self._reserve = path.with_name(f"{path.name}-reserve")
        self._size, self._is_reserved = 0, False
        self._owed: bytes | None = None
        self._second: tuple[int, ...] | None = None
        """How the second name looked when it was found to hold what is owed; None: it is none, or holds something else."""
        self._again_at = 0.0
        self.trouble = ""
        """Why what is in force is not on disk; empty: it is."""

    @property
    def name(self) -> str:
        """The file's name."""
        return self._path.name

    def read(self) -> bytes:
        """What was kept. Raises OSError."""
        data = self._path.read_bytes()
        self._size = len(data)
        with suppress(OSError):
            if self._path.samefile(self._source):  # a supervisor before found no room for a copy
                self._owed, self._second = data, self._looks()
        return data

    def keep(self, data: bytes) -> None:
        """On disk when it returns without ``trouble``. Blocks."""
        self._owed, self._size, had = data, len(data), self._second
        error = self._copied(data)
        if error is None:
            self._owed, self._second, self.trouble = None, None, ""
            self._lay_reserve()
            return
        self._again_at = time.monotonic() + AGAIN_S
        self._second = self._looks() if self._holds(data) or self._linked(data) else None
        self.trouble = ""
        if self._second is None:
            self.trouble = f"{self.name}, by which a restart would know it, cannot be written: {error.strerror}. {self._meanwhile}"
        elif had is None:
            words = f"{self.name}, by which a restart would know it, is only a second name of {self._source.name} ({error.strerror})"
            self._say(f"{words}: written into, both change. Replace the file as a whole, or make room; a copy is tried again every second.")

    def forget(self) -> None:
        """Nothing is in force any more, so nothing is kept."""
        self._owed, self._second, self.trouble, self._size, self._is_reserved = None, None, "", 0, False
        for path in (self._path, self._reserve):
            with suppress(OSError):
                path.unlink()

    def settle(self) -> str:
        """Tries again what could not be kept, now and then. The trouble that is over by that; empty: none is."""
        if self._owed is None:
            if self._size and not self._is_reserved and time.monotonic() >= self._again_at:
                self._lay_reserve()
            return ""
        was_changed = self._second is not None and self._looks() != self._second
        if not was_changed and time.monotonic() < self._again_at:
            return ""
        before = self.trouble
        self.keep(self._owed)
        return "" if self.trouble else before

    def _copied(self, data: bytes) -> OSError | None:
        """None: the bytes are on disk, in a file of their own."""
        with suppress(OSError):
            self._path.rmdir()  # somebody's empty folder in its place
        try:
            replace_file(self._path, data)
        except OSError as error:
            if error.errno not in _FULL:
                return error
        else:
            return None
        self._is_reserved = False
        if self._through_reserve(data):
            return None
        with suppress(OSError):
            self._reserve.unlink()  # too small for it: perhaps enough together with what is left
        try:
            replace_file(self._path, data)
        except OSError as error:
            return error
        return None

    def _through_reserve(self, data: bytes) -> bool:
        """Write the bytes into the room reserved for them, so that no other process can take it in between."""
        try:
            descriptor = os.open(self._reserve, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(descriptor, "wb") as file:
                seen = os.fstat(descriptor)
                if not stat.S_ISREG(seen.st_mode) or seen.st_nlink != 1 or seen.st_blocks * 512 < len(data):
                    return False
                file.write(data)
                file.truncate(len(data))
                file.flush()
                os.fsync(descriptor)
            self._reserve.replace(self._path)
            sync_folder(self._path.parent)
        except OSError:
            return False
        return True

    def _lay_reserve(self) -> None:
        """Room for other bytes, twice as many as these. Where there is none it is tried again later."""
        wanted = max(RESERVE_BYTES, 2 * self._size)
        self._again_at = time.monotonic() + RESERVE_AGAIN_S
        try:
            descriptor = os.open(self._reserve, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                if os.fstat(descriptor).st_blocks * 512 < wanted:
                    os.posix_fallocate(descriptor, 0, wanted)
            finally:
                os.close(descriptor)
            self._is_reserved = True
        except OSError:
            self._is_reserved = False
            with suppress(OSError):
                self._reserve.unlink()

    def _looks(self) -> tuple[int, ...] | None:
        try:
            seen = self._path.stat(follow_symlinks=False)
        except OSError:
            return None
        return seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns

    def _holds(self, data: bytes) -> bool:
        try:
            return self._path.read_bytes() == data
        except OSError:
            return False

    def _linked(self, data: bytes) -> bool:
        """A second name of the file itself takes no room on a full disk, and stays when the first one goes."""
        draft = self._path.with_name(f".{self.name}-{secrets.token_hex(6)}")
        try:
            os.link(self._source, draft, follow_symlinks=True)
            try:
                if draft.read_bytes() != data:
                    return False
                draft.replace(self._path)
            finally:
                draft.unlink(missing_ok=True)
            sync_folder(self._path.parent)
        except OSError:
            return False
        return True
