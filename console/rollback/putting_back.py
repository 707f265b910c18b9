"""Changing one file of a workspace atomically, through a descriptor of its folder, only if it still is what was looked at."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from console.domain.errors import Conflict, ConsoleError, Denied
from console.rollback.images import ABSENT, Image, look
from console.rollback.safe_open import open_beneath

# renameat2(2), <linux/fs.h>
_NOREPLACE, _EXCHANGE = 1, 2
_libc = ctypes.CDLL(None, use_errno=True)
_CHANGED = "The file changed while it was being put back; nothing was written."


@contextmanager
def folder_of(root: int, parts: tuple[str, ...]) -> Iterator[int]:
    """A descriptor of the folder the file is in. Raises Conflict when it is gone or is no plain folder any more."""
    where = "/".join(parts[:-1])
    try:
        if len(parts) == 1:
            fd = os.open(f"/proc/self/fd/{root}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        else:
            fd = open_beneath(root, parts[:-1], os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError as error:
        raise Conflict(f"Folder {where[:120]!r} is missing.", "Make it again, then restore.") from error
    except OSError as error:
        raise Conflict(
            f"Folder {where[:120]!r} is no plain folder of the workspace any more: {error.strerror}.", "Fix it, then restore."
        ) from error
    try:
        yield fd
    finally:
        os.close(fd)


def put(folder: int, name: str, draft: str, before: Image, now: Image, fill: Callable[[int], None]) -> None:
    """Puts ``before`` in place of ``now``: ``fill`` writes the content. Raises Conflict, ConsoleError; then ``now`` is still there."""
    discard(folder, draft)
    try:
        # O_EXCL | O_NOFOLLOW: what somebody planted under this name is never opened.
        fd = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=folder)
        try:
            # 1. Content, owner, permission bits (set-id bits never), on disk.
            fill(fd)
            _own(fd, before)
            os.fchmod(fd, before.mode & 0o777)
            os.fsync(fd)
        finally:
            os.close(fd)
        # 2. In its place, in one step.
        if now.sha256 is None:
            _place(folder, draft, name)
        else:
            _exchange(folder, draft, name, now)
        # 3. On disk.
        # Without this a power cut may undo the rename, while the record already says that the file was put back.
        os.fsync(folder)
    except OSError as error:
        raise _failed(error) from error
    finally:
        discard(folder, draft)


def remove(folder: int, name: str, draft: str, now: Image) -> None:
    """Takes the file away. Raises Conflict, ConsoleError; then it is still there."""
    discard(folder, draft)
    try:
        # Renamed first: what is deleted is then exactly what is looked at.
        rename(folder, name, draft, _NOREPLACE)
        if not _is(folder, draft, now):
            rename(folder, draft, name, _NOREPLACE)
            raise Conflict(_CHANGED, "Look at it again.")
        discard(folder, draft)
        os.fsync(folder)
    except OSError as error:
        raise _failed(error) from error


def rename(folder: int, old: str, new: str, flags: int) -> None:
    """renameat2(2) within one folder; where the file system has no flags, rename without replacing by link. Raises OSError."""
    if _renameat2(folder, old, new, flags):
        return
    if flags == _EXCHANGE:
        os.rename(old, new, src_dir_fd=folder, dst_dir_fd=folder)
        return
    os.link(old, new, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    os.unlink(old, dir_fd=folder)


def discard(folder: int, draft: str) -> None:
    """Removes our own draft, of this or an earlier, interrupted try; whatever else has the name stays, and O_EXCL meets it."""
    try:
        os.unlink(draft, dir_fd=folder)
    except OSError:
        return


def sweep(root: int, parts: tuple[str, ...], draft: str) -> None:
    """Removes the draft that an interrupted restore of ``parts`` left beside the file, if its folder is still there."""
    try:
        with folder_of(root, parts) as folder:
            discard(folder, draft)
    except Conflict:
        return


def _renameat2(folder: int, old: str, new: str, flags: int) -> bool:
    """False: not supported here."""
    call = getattr(_libc, "renameat2", None)
    if call is None:
        return False
    if call(folder, os.fsencode(old), folder, os.fsencode(new), ctypes.c_uint(flags)) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS):
        return False
    raise OSError(code, os.strerror(code))


def _place(folder: int, draft: str, name: str) -> None:
    try:
        rename(folder, draft, name, _NOREPLACE)
    except FileExistsError as error:
        raise Conflict("A file appeared there while it was being put back; nothing was written.", "Look at it again.") from error


def _exchange(folder: int, draft: str, name: str, now: Image) -> None:
    """Swaps both; the one that came out must be the one that was looked at, else they are swapped back."""
    if not _is(folder, name, now):
        raise Conflict(_CHANGED, "Look at it again.")
    ours = os.stat(draft, dir_fd=folder, follow_symlinks=False).st_ino
    # EXCHANGE, not a plain rename: what was there is kept under the draft's name and can be compared before it goes.
    rename(folder, draft, name, _EXCHANGE)
    if os.stat(name, dir_fd=folder, follow_symlinks=False).st_ino != ours:
        raise Conflict("Another process replaced the file during the restore.", "Stop the agent, then check the file again.")
    try:
        out = os.stat(draft, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return  # no exchange on this file system: it was compared right before
    if out.st_ino != now.stamp[1] or not _is(folder, draft, now):
        rename(folder, draft, name, _EXCHANGE)
        raise Conflict(_CHANGED, "Look at it again.")


def _is(folder: int, name: str, expected: Image) -> bool:
    try:
        found = look(folder, (name,), expected.size)
    except Denied:
        return False
    return found != ABSENT and found.sha256 == expected.sha256


def _own(fd: int, before: Image) -> None:
    seen = os.fstat(fd)
    if (seen.st_uid, seen.st_gid) != (before.uid, before.gid):
        os.fchown(fd, before.uid, before.gid)


def _failed(error: OSError) -> ConsoleError:
    return ConsoleError(
        f"The file could not be put back: {error.strerror}.", "Fix the workspace's disk or permissions; what was there is still there."
    )
