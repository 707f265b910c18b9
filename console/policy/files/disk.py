"""The disk's answers on paths: one descriptor per look, opened without touching what is there (O_PATH), and no magic link followed."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import posixpath
import stat
import time

from console.policy.files.paths import TEXT_MAX, Facts
from console.policy.files.walk import ENTRIES_MAX, Listing

# openat2(2): the same number on every architecture; RESOLVE_NO_MAGICLINKS from <linux/openat2.h>.
_SYS_OPENAT2, _NO_MAGICLINKS, _AT_FDCWD = 437, 0x02, -100
_KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFIFO: "fifo", stat.S_IFSOCK: "socket", stat.S_IFLNK: "loop"}
_SETTLED_NS = 3_000_000_000
"""The coarsest clock of a file system that is in use ticks every two seconds (FAT)."""
_DEPTH = 64
"""Missing folders above a missing file that are looked through."""


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


class Disk:
    """Answers for the machine it runs on."""

    def look(self, path: str) -> Facts:
        """Facts of an absolute path. What is missing is placed below its nearest real folder; a link that dangles is not certain."""
        try:
            fd = _open(path)
        except FileNotFoundError:
            return self._missing(path)
        except OSError as error:
            return Facts("", "loop" if error.errno == errno.ELOOP else "unknown")
        try:
            seen = os.fstat(fd)
            real = _name_of(fd)
        except OSError:
            return Facts("", "unknown")
        finally:
            os.close(fd)
        if not real.startswith("/") or seen.st_nlink == 0:
            return Facts("", "unknown")
        return Facts(real, _KINDS.get(stat.S_IFMT(seen.st_mode), "device"), seen.st_nlink, (seen.st_dev, seen.st_ino), seen.st_ctime_ns)

    def stamp(self, folder: str) -> tuple[int, ...] | None:
        """What is another with every entry that comes to a folder or goes (inode(7), st_ctim); None: not for certain; empty: there is none.

        A clock ticks: an entry that comes in the same tick as another leaves the time as it is. So what changed just now tells nothing.
        """
        try:
            seen = os.stat(folder)  # noqa: PTH116 - several in every judgement
        except FileNotFoundError:
            return ()
        except OSError:
            return None
        if not stat.S_ISDIR(seen.st_mode) or not 0 < seen.st_ctime_ns < time.time_ns() - _SETTLED_NS:
            return None
        return seen.st_dev, seen.st_ino, seen.st_ctime_ns, seen.st_mtime_ns

    def listing(self, folder: str) -> Listing:
        """What lies in a folder. It is listed again once an entry came, went, or was made another: then its time of change is another."""
        stamp = self.stamp(folder)
        kept = _listed.get(folder)
        if stamp and kept is not None and kept[0] == stamp:
            return kept[1]
        found = _listing(folder)
        if stamp and not found.state:
            _keep_listing(folder, stamp, found)
        return found

    def text(self, path: str, most: int = TEXT_MAX) -> str | None:
        """What a plain file holds, links followed; a FIFO does not wait. None: it cannot be read, is no text, or is too large."""
        try:
            with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY), "rb") as file:  # noqa: PTH123 - as in policy_desk
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return None
                data = file.read(most + 1)
        except OSError:
            return None
        return data.decode("utf-8", "surrogateescape") if len(data) <= most else None

    def _missing(self, path: str) -> Facts:
        folder, rest = path, ""
        for _ in range(_DEPTH):
            folder, name = posixpath.split(folder)
            rest = posixpath.join(name, rest) if rest else name
            if name == ".." or os.path.islink(posixpath.join(folder, name)):  # noqa: PTH114 - as above
                return Facts("", "unknown")
            above = _placed(folder)
            if above is not None:
                return Facts(posixpath.join(above, rest), "missing") if above else Facts("", "unknown")
        return Facts("", "unknown")


_LISTED_MAX = 200_000
"""Entries of folders that are remembered."""
_listed: dict[str, tuple[tuple[int, ...], Listing]] = {}
_listed_entries = 0


def _keep_listing(folder: str, stamp: tuple[int, ...], found: Listing) -> None:
    global _listed_entries  # noqa: PLW0603 - one memory for all judgements; a race costs a look more
    if _listed_entries > _LISTED_MAX:
        _listed.clear()
        _listed_entries = 0
    _listed[folder] = (stamp, found)
    _listed_entries += len(found.names) + 1


def _listing(folder: str) -> Listing:
    folders: list[str] = []
    links: list[str] = []
    others: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for at, entry in enumerate(entries):
                if at > ENTRIES_MAX:
                    return Listing(state="limit")
                (links if entry.is_symlink() else folders if entry.is_dir(follow_symlinks=False) else others).append(entry.name)
    except OSError:
        return Listing(state="unreadable")
    return Listing(tuple(folders), tuple(links), tuple(others))


def _name_of(fd: int) -> str:
    return os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115 - several in every judgement


def _placed(folder: str) -> str | None:
    """The real path of a folder; None: it is missing; empty: it is no folder, or cannot be looked at."""
    try:
        fd = _open(folder or "/")
    except FileNotFoundError:
        return None
    except OSError:
        return ""
    try:
        return _name_of(fd) if stat.S_ISDIR(os.fstat(fd).st_mode) else ""
    except OSError:
        return ""
    finally:
        os.close(fd)


_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)
_syscall.restype = ctypes.c_long


def _open(path: str) -> int:
    """A handle that opens nothing: a FIFO does not wait, a device does not act. Raises OSError."""
    if not _openat2_works():
        return os.open(path, os.O_PATH | os.O_CLOEXEC)
    return _openat2(path)


@functools.cache
def _openat2_works() -> bool:
    try:
        os.close(_openat2("/"))
    except OSError:
        return False
    return True


_HOW = _OpenHow(os.O_PATH | os.O_CLOEXEC, 0, _NO_MAGICLINKS)  # the kernel only reads it
_HOW_AT, _HOW_SIZE = ctypes.addressof(_HOW), ctypes.sizeof(_HOW)


def _openat2(path: str) -> int:
    fd = int(_syscall(_SYS_OPENAT2, _AT_FDCWD, os.fsencode(path), _HOW_AT, _HOW_SIZE))
    if fd < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), path)
    return fd
