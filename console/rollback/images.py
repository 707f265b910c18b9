"""What a file holds at a moment, and the content-addressed store of such contents."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from console.domain.errors import ConsoleError, Denied, NotRecorded
from console.domain.process.durable import make_folder
from console.rollback.safe_open import MAX_BYTES, open_regular

_CHUNK = 1 << 20
_TRIES = 3
_DRAFT = ".draft-"


@dataclass(frozen=True, slots=True)
class Image:
    """A plain file as it was; ``sha256`` None: nothing was there, and the rest is 0."""

    sha256: str | None
    size: int = 0
    mode: int = 0
    """Permission bits (0o777)."""
    uid: int = 0
    gid: int = 0
    stamp: tuple[int, ...] = ()
    """Device, inode, size, mtime and ctime in ns: as long as it stays, so does the content."""


ABSENT = Image(None)


def stamp_of(seen: os.stat_result) -> tuple[int, ...]:
    """See `Image.stamp`."""
    return (seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)


def look(root: int, parts: tuple[str, ...], max_bytes: int = MAX_BYTES, keep: Callable[[bytes], object] | None = None) -> Image:
    """The file's image; ``keep`` gets its content piece by piece. Raises Denied as `open_regular`, and when it changes while it is read."""
    fd = open_regular(root, parts, max_bytes)
    if fd is None:
        return ABSENT
    try:
        return _read(fd, "/".join(parts), max_bytes, keep)
    except OSError as error:
        raise Denied(f"{'/'.join(parts)[:120]!r} cannot be read: {error.strerror}.", "Try again, or name another file.") from error
    finally:
        os.close(fd)


def _read(fd: int, path: str, max_bytes: int, keep: Callable[[bytes], object] | None) -> Image:
    before = os.fstat(fd)
    if before.st_size > max_bytes:
        raise Denied(f"{path[:120]!r} grew beyond {max_bytes:,} bytes.", "Work on a smaller file.")
    whole = hashlib.sha256()
    size = 0
    while piece := os.read(fd, _CHUNK):
        size += len(piece)
        if size > before.st_size:  # at once: whoever appends byte by byte must not hold us
            break
        whole.update(piece)
        if keep is not None:
            keep(piece)
    after = os.fstat(fd)
    # A copy of a file that is written at the same time may hold a state that never was.
    if stamp_of(before) != stamp_of(after) or size != after.st_size:
        raise Changing(f"{path[:120]!r} keeps changing while it is read.", "Stop what writes to it, then try again.")
    return Image(whole.hexdigest(), size, after.st_mode & 0o777, after.st_uid, after.st_gid, stamp_of(after))


class Changing(Denied):
    """A torn read: worth another try."""


class Objects:
    """Contents by their SHA-256 in a folder of our own (0700): each is whole and on disk before it has its name."""

    def __init__(self, folder: Path, max_total: int) -> None:
        """Raises NotRecorded when the folder cannot be used."""
        self._max_total = max_total
        self._lock = threading.Lock()
        try:
            make_folder(folder)
            self._dir = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            os.fchmod(self._dir, 0o700)
            self._clean()
            with os.scandir(self._dir) as found:
                self._total = sum(entry.stat(follow_symlinks=False).st_size for entry in found)
        except OSError as error:
            raise NotRecorded(
                f"The rollback store {folder} cannot be used: {error.strerror}.", "Fix its permissions or the disk."
            ) from error

    def close(self) -> None:
        """Once."""
        os.close(self._dir)

    def snapshot(self, root: int, parts: tuple[str, ...], max_bytes: int = MAX_BYTES) -> Image:
        """Copies the file's content in; durable when it returns. Raises Denied (the file) and NotRecorded (the store)."""
        for attempt in range(_TRIES):
            try:
                return self._snapshot(root, parts, max_bytes)
            except Changing:
                if attempt == _TRIES - 1:
                    raise
        raise AssertionError("unreachable")

    def read(self, sha256: str, limit: int) -> bytes:
        """The first ``limit`` bytes. Raises ConsoleError when it is missing or damaged: what is shown is what would be put back."""
        first = bytearray()
        self._pass_on(sha256, lambda piece: first.extend(piece[: limit - len(first)]))
        return bytes(first)

    def copy_to(self, sha256: str, target: int) -> None:
        """Writes the content to a descriptor. Raises ConsoleError when it is missing or damaged, OSError of the target."""
        self._pass_on(sha256, lambda piece: write_all(target, piece))

    def _pass_on(self, sha256: str, take: Callable[[bytes], object]) -> None:
        fd = self._open(sha256)
        whole = hashlib.sha256()
        try:
            while piece := os.read(fd, _CHUNK):
                whole.update(piece)
                take(piece)
        finally:
            os.close(fd)
        if whole.hexdigest() != sha256:
            raise ConsoleError(f"Snapshot {sha256[:12]} is damaged; nothing was put back.", "Restore the rollback folder from a backup.")

    def _open(self, sha256: str) -> int:
        try:
            return os.open(sha256, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._dir)
        except OSError as error:
            raise ConsoleError(f"Snapshot {sha256[:12]} is missing.", "Restore the rollback folder from a backup.") from error

    def _snapshot(self, root: int, parts: tuple[str, ...], max_bytes: int) -> Image:
        try:
            draft = _Draft(self._dir)
            try:
                # 1. Copy into a file that has no name (or a random one) yet, hashing on the way.
                image = look(root, parts, max_bytes, draft.write)
                if image.sha256 is not None:
                    self._name(draft, image.sha256, image.size)
                return image
            finally:
                draft.close()
        except _StoreFailed as error:
            raise NotRecorded(
                f"The snapshot could not be written: {error}.", "Free space on the disk; the action was not allowed."
            ) from error

    def _holds(self, sha256: str) -> bool:
        """Whether the very content is there already: by its bytes, since its name and size would hide what happened to it."""
        with contextlib.suppress(ConsoleError, OSError):
            self._pass_on(sha256, len)
            return True
        return False

    def _name(self, draft: _Draft, sha256: str, size: int) -> None:
        if self._holds(sha256):
            return
        with self._lock:
            if self._total + size > self._max_total:
                raise NotRecorded(
                    f"The rollback store holds {self._total:,} of {self._max_total:,} bytes and has no room.",
                    "Raise its limit or remove old snapshots.",
                )
            # 2. The content is on disk, then 3. it gets its name, then 4. the name is on disk.
            draft.publish(sha256)
            self._total += size

    def _clean(self) -> None:
        with os.scandir(self._dir) as found:
            left = [entry.name for entry in found if entry.name.startswith(_DRAFT)]
        for name in left:  # of a crash in mid-write, on a file system without O_TMPFILE
            os.unlink(name, dir_fd=self._dir)


class _StoreFailed(Exception):
    """The store's own disk failed (told apart from errors of the agent's file); the text is the system's."""


class _Draft:
    """A content on its way in."""

    def __init__(self, folder: int) -> None:
        self._folder = folder
        self._named = ""
        try:
            self._fd = os.open(".", os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o400, dir_fd=folder)
            return
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
                raise _StoreFailed(error.strerror) from error
        try:  # no O_TMPFILE on this file system: a name nobody can guess, that must not be there yet
            name = f"{_DRAFT}{secrets.token_hex(16)}"
            self._fd = os.open(name, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_RDWR | os.O_CLOEXEC, 0o400, dir_fd=folder)
            self._named = name
        except OSError as error:
            raise _StoreFailed(error.strerror) from error

    def write(self, piece: bytes) -> None:
        try:
            write_all(self._fd, piece)
        except OSError as error:
            raise _StoreFailed(error.strerror) from error

    def publish(self, name: str) -> None:
        try:
            os.fsync(self._fd)
            source = self._named or f"/proc/self/fd/{self._fd}"
            try:
                # linkat(2): AT_SYMLINK_FOLLOW on /proc/self/fd/N gives an O_TMPFILE its name.
                os.link(source, name, src_dir_fd=self._folder, dst_dir_fd=self._folder, follow_symlinks=not self._named)
            except FileExistsError:
                # A name with other bytes below it (they were compared before): damaged; replace it by what was just read.
                os.unlink(name, dir_fd=self._folder)
                os.link(source, name, src_dir_fd=self._folder, dst_dir_fd=self._folder, follow_symlinks=not self._named)
            os.fsync(self._folder)
        except OSError as error:
            raise _StoreFailed(error.strerror) from error

    def close(self) -> None:
        os.close(self._fd)
        if self._named:
            os.unlink(self._named, dir_fd=self._folder)


def write_all(fd: int, data: bytes) -> None:
    """All of it, or OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
