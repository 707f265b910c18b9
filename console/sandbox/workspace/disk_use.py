"""Measure or delete an agent's folder, safe against links, mounts and moved folders.

Only the descriptor of the current folder is held, so that no depth exhausts descriptors or Python's stack. Links are never followed, mounts
never crossed. Each step up is checked against the folder that was left: a folder that was moved meanwhile ends the walk.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass, field

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
# An agent can make millions of empty files; measuring them must not hold the supervisor's thread for hours.
ENTRIES_MAX = 2_000_000
EMPTIED_MAX = 100_000_000
MEASURE_S = 10.0


@dataclass(frozen=True, slots=True)
class DiskUse:
    """What a folder takes on its disk."""

    bytes: int
    """Blocks, not lengths: a sparse file counts what it holds; a file with several names counts once."""
    entries: int
    complete: bool
    """False: too many entries, too slow, closed to us, or moved while it was measured; the figure is then a lower bound."""


@dataclass
class _Level:
    """A folder that the walk is in, or above."""

    identity: tuple[int, int]
    name: str
    names: list[str] = field(default_factory=list)
    """Folders in it that are still to be entered."""


class Astray(OSError):
    """The folder was moved while it was walked."""


class Climber:
    """One walk below a folder. ``on_entry`` sees everything but folders, ``on_leave`` every folder once it is done; both get a descriptor
    of the folder around and a name. ``forces``: folders closed to us (mode 000) are opened up."""

    def __init__(
        self,
        root: int,
        on_entry: Callable[[int, str, os.stat_result], None],
        on_leave: Callable[[int, str], None],
        limit_s: float,
        limit: int,
        *,
        forces: bool = False,
    ) -> None:
        self._forces = forces
        self._here = os.dup(root)
        self._device, self._mount = os.fstat(root).st_dev, mount_of(root)
        self._on_entry, self._on_leave = on_entry, on_leave
        self._deadline, self._limit = time.monotonic() + limit_s, limit
        self.entries = 0
        self.closed = 0
        """Folders and files that could not be looked at: what is said of the rest is a lower bound."""
        self._levels: list[_Level] = []

    def climb(self) -> bool:
        """Whether everything was seen. Raises Astray and whatever the callbacks raise."""
        try:
            self._levels.append(self._read(""))
            while self._levels:
                if self.entries > self._limit or time.monotonic() > self._deadline:
                    return False
                level = self._levels[-1]
                if level.names:
                    self._enter(level.names.pop())
                else:
                    self._leave()
            return True
        finally:
            os.close(self._here)

    def _read(self, name: str) -> _Level:
        seen = os.fstat(self._here)
        level = _Level((seen.st_dev, seen.st_ino), name)
        with os.scandir(self._here) as entries:
            for entry in entries:
                self.entries += 1
                try:
                    what = os.stat(entry.name, dir_fd=self._here, follow_symlinks=False)
                except FileNotFoundError:
                    continue
                except PermissionError:  # a folder that may be listed, but not searched
                    self.closed += 1
                    continue
                if what.st_dev != self._device:
                    continue
                if stat.S_ISDIR(what.st_mode):
                    level.names.append(entry.name)
                else:
                    self._on_entry(self._here, entry.name, what)
                if self.entries > self._limit or time.monotonic() > self._deadline:
                    break
        return level

    def _enter(self, name: str) -> None:
        try:
            inner = self._open(name)
        except OSError as error:
            if error.errno == errno.EACCES:
                self.closed += 1
                return
            if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR):
                return  # changed under us, or not ours to read: what is there now is not a folder of the walk
            raise
        if inner is None:
            return
        os.close(self._here)
        self._here = inner
        self._levels.append(self._read(name))

    def _open(self, name: str) -> int | None:
        """None: something is mounted there, and is left alone."""
        if self._forces:
            handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._here)
            try:
                if self._is_elsewhere(handle):
                    return None
                open_up(handle)
            finally:
                os.close(handle)
        inner = os.open(name, _FLAGS, dir_fd=self._here)
        if self._is_elsewhere(inner):
            os.close(inner)
            return None
        return inner

    def _is_elsewhere(self, folder: int) -> bool:
        """In another file system, or behind a bind mount of the same one, which ``st_dev`` does not tell."""
        return os.fstat(folder).st_dev != self._device or mount_of(folder) != self._mount

    def _leave(self) -> None:
        left = self._levels.pop()
        if not self._levels:
            return
        outer = os.open("..", _FLAGS, dir_fd=self._here)
        seen = os.fstat(outer)
        # An agent that moves a folder while we are in it would lead the step up, and the deletion after it, elsewhere.
        if (seen.st_dev, seen.st_ino) != self._levels[-1].identity:
            os.close(outer)
            raise Astray(errno.ESTALE, "the folder was moved while it was walked")
        os.close(self._here)
        self._here = outer
        self._on_leave(self._here, left.name)


def mount_of(fd: int) -> int:
    """The id of the mount that a descriptor leads into (proc(5), fdinfo). OSError when the kernel does not say."""
    with open(f"/proc/self/fdinfo/{fd}", "rb", buffering=0) as file:  # noqa: PTH123 - of each folder below a workspace
        found = re.search(rb"^mnt_id:\s*(\d+)", file.readall(), re.M)
    if found:
        return int(found[1])
    raise OSError(errno.ENODATA, "the kernel does not say which mount a folder is in")


def open_up(folder: int) -> None:
    """Gives a folder of ours (any descriptor of it) back the bits its owner needs to list, search and change it."""
    seen = os.fstat(folder)
    if seen.st_uid == os.geteuid() and seen.st_mode & 0o700 != 0o700:
        os.chmod(f"/proc/self/fd/{folder}", 0o700)  # noqa: PTH101 - this very folder, whatever its name leads to by now


def measure(root: int, limit_s: float = MEASURE_S, limit: int = ENTRIES_MAX) -> DiskUse:
    """What is below the folder of descriptor ``root``, itself included. OSError when it cannot be read at all."""
    total = os.fstat(root).st_blocks * 512
    counted: set[int] = set()

    def entry(_around: int, _name: str, what: os.stat_result) -> None:
        nonlocal total
        if what.st_nlink > 1:
            if what.st_ino in counted:
                return
            counted.add(what.st_ino)
        total += what.st_blocks * 512

    def leave(around: int, name: str) -> None:
        nonlocal total
        try:
            total += os.stat(name, dir_fd=around, follow_symlinks=False).st_blocks * 512
        except FileNotFoundError:
            return

    climber = Climber(root, entry, leave, limit_s, limit)
    try:
        complete = climber.climb()
    except Astray:
        complete = False
    return DiskUse(total, climber.entries, complete and not climber.closed)


def empty(root: int, limit_s: float) -> bool:
    """Delete everything below the folder of descriptor ``root``. False: the time is over, call again. Raises OSError, Astray.

    A mount below it stays, and so do the folders around that mount: OSError EBUSY or ENOTEMPTY is raised then.
    """

    def entry(around: int, name: str, _what: os.stat_result) -> None:
        os.unlink(name, dir_fd=around)

    def leave(around: int, name: str) -> None:
        os.rmdir(name, dir_fd=around)

    open_up(root)
    return Climber(root, entry, leave, limit_s, EMPTIED_MAX, forces=True).climb()
