"""A file that holds one secret: read and replaced without following links, 0600, its owner kept."""

from __future__ import annotations

import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from console.credentials.trust import check_way
from console.domain.errors import ConsoleError

LIMIT = 64 * 1024


@dataclass(frozen=True, slots=True)
class Held:
    """What the file holds, and whose it is."""

    value: str
    end: str
    """A last line feed is kept as it was; it is no part of the value."""
    uid: int
    gid: int


def read_secret(path: Path) -> Held | None:
    """The value, or None when there is no such file. Raises ConsoleError when it is no plain file of a trusted place."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        check_way(path)
        return None
    except OSError as error:
        raise ConsoleError(f"{path} cannot be read: {error.strerror}.", "Fix its permissions; a link is not followed.") from error
    with os.fdopen(descriptor, "rb") as file:
        seen = os.fstat(descriptor)
        if not stat.S_ISREG(seen.st_mode) or seen.st_nlink != 1:
            # A second name could be another user's doing: the file he cannot read, linked to where we read it.
            raise ConsoleError(f"{path} is no plain file with one name.", "Put the secret into a file of its own.")
        check_way(path, owners=frozenset({seen.st_uid}))
        raw = file.read(LIMIT + 1)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise ConsoleError(f"{path} holds no text.", "A secret's file holds one line of text.") from error
    if len(raw) > LIMIT or not text.strip():
        raise ConsoleError(f"{path} is empty or over 64 KiB.", "A secret's file holds one line of text.")
    end = "\n" if text.endswith("\n") else ""
    return Held(text.removesuffix("\n"), end, seen.st_uid, seen.st_gid)


def write_secret(path: Path, value: str) -> None:
    """Replaces the file whole: it holds the old or the new value, never a part. Raises ConsoleError; then it is as it was."""
    held = read_secret(path)
    folder = -1
    draft = f".{path.name[:100]}-{secrets.token_hex(6)}"
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(draft, flags, 0o600, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write((value + (held.end if held else "")).encode())
                file.flush()
                if held is not None and (held.uid, held.gid) != (os.geteuid(), os.getegid()):
                    os.fchown(file.fileno(), held.uid, held.gid)
                os.fchmod(file.fileno(), 0o600)
                os.fsync(file.fileno())
            os.replace(draft, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            _forget(draft, folder)
            raise
        os.fsync(folder)
    except OSError as error:
        raise ConsoleError(f"{path} cannot be written: {error.strerror}.", "Fix its permissions, or free some space.") from error
    finally:
        if folder >= 0:
            os.close(folder)


def _forget(draft: str, folder: int) -> None:
    try:
        os.unlink(draft, dir_fd=folder)
    except FileNotFoundError:
        pass
