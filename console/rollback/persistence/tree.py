"""One root, opened so that nothing in it leads anywhere else, blocks, or acts: no link followed but inside a home, no device, no FIFO."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from console.rollback.persistence.findings import Where
from console.rollback.safe_open import open_beneath

Parts = tuple[str, ...]
# Links may lead in a circle; the kernel itself gives up after 40 (path_resolution(7)).
_HOPS = 8


@dataclass(frozen=True, slots=True)
class Seen:
    """One name: what it is, what the kernel says of it, and where it leads when it is a link."""

    stat: os.stat_result
    target: str = ""

    @property
    def what(self) -> str:
        """file, link, folder, fifo, socket or device."""
        mode = self.stat.st_mode
        kinds = (
            (stat.S_ISREG, "file"),
            (stat.S_ISLNK, "link"),
            (stat.S_ISDIR, "folder"),
            (stat.S_ISFIFO, "fifo"),
            (stat.S_ISSOCK, "socket"),
        )
        return next((words for test, words in kinds if test(mode)), "device")


class Tree:
    """A root held open. ``where`` decides what may be passed: mounts in the system's, links that stay inside in a home, else neither."""

    def __init__(self, path: str, where: Where) -> None:
        self._where = where
        flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC | (os.O_NOFOLLOW if where is Where.WORKSPACE else 0)
        self._root = os.open(path, flags)
        self._device = os.fstat(self._root).st_dev

    def close(self) -> None:
        """Lets go of the root."""
        os.close(self._root)

    def open(self, parts: Parts, flags: int) -> int:
        """A descriptor below the root. Raises OSError: ELOOP for a link in the way, EXDEV for a mount, ENOENT, EACCES ..."""
        if self._where is Where.SYSTEM:
            return self._walk(parts, flags)
        return open_beneath(self._root, parts or (".",), flags)

    def _walk(self, parts: Parts, flags: int) -> int:
        """One component at a time, no link followed; the machine's own mounts (/var, /run) are passed."""
        here = os.dup(self._root)
        try:
            for name in parts[:-1]:
                deeper = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
                os.close(here)
                here = deeper
            return os.open(parts[-1] if parts else ".", flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
        finally:
            os.close(here)

    def look(self, parts: Parts) -> Seen | None:
        """What is there, without opening it; None when nothing is. Raises OSError."""
        try:
            folder = self.open(parts[:-1], os.O_PATH | os.O_DIRECTORY)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            found = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
            target = os.readlink(parts[-1], dir_fd=folder) if stat.S_ISLNK(found.st_mode) else ""
            return Seen(found, target)
        except FileNotFoundError:
            return None
        finally:
            os.close(folder)

    def folder_of(self, parts: Parts) -> tuple[int, int, int]:
        """uid, gid and mode of the folder that something lies in; zeros when it cannot be told."""
        try:
            folder = self.open(parts[:-1], os.O_PATH | os.O_DIRECTORY)
        except OSError:
            return 0, 0, 0
        try:
            found = os.fstat(folder)
            return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)
        finally:
            os.close(folder)

    def resolve(self, parts: Parts) -> Parts:
        """``parts`` without links, in a home only, as long as they stay inside. Raises OSError ELOOP when they do not."""
        if self._where is not Where.HOME:
            return parts
        done: Parts = ()
        waiting = list(parts)
        hops = 0
        while waiting:
            name = waiting.pop(0)
            if name == "..":
                if not done:
                    raise OSError(errno.ELOOP, "a link leads out of the home")
                done = done[:-1]
                continue
            seen = self.look((*done, name))
            if seen is None or not seen.target:
                done = (*done, name)
                continue
            hops += 1
            # An absolute target may lead anywhere, whatever the home is that it is found in.
            if hops > _HOPS or seen.target.startswith("/"):
                raise OSError(errno.ELOOP, "a link leads out of the home")
            waiting = [p for p in seen.target.split("/") if p not in ("", ".")] + waiting
        return done

    @contextmanager
    def listing(self, parts: Parts) -> Iterator[Iterator[os.DirEntry[str]]]:
        """The names in a folder. Raises OSError."""
        descriptor = self.open(parts, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with os.scandir(descriptor) as entries:
                yield entries
        finally:
            os.close(descriptor)

    def read(self, parts: Parts, limit: int) -> tuple[bytes, os.stat_result]:
        """The first ``limit`` bytes of a plain file and what the kernel says of it. Raises OSError; never waits or opens anything else."""
        handle = self.open(parts, os.O_PATH | os.O_NOFOLLOW)
        try:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise OSError(errno.EINVAL, "it is not a plain file")
            # Files of /proc have no end or act when they are read, so a look at the system never opens one.
            if self._where is Where.SYSTEM and found.st_dev == _proc_device():
                raise OSError(errno.EXDEV, "it is the kernel's")
            # The same inode, whatever the name leads to by now. O_NONBLOCK: a lease on it must not hold us.
            descriptor = os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        finally:
            os.close(handle)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(limit), found


def _proc_device() -> int:
    return Path("/proc").stat().st_dev
