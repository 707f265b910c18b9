"""Small files and folders that outlive a power cut: the old one or the new one, never a torn one."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path


def replace_file(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Writes ``data`` beside ``path``, fsyncs it, renames it over ``path`` and fsyncs the folder.

    ``mode`` holds from the first byte on under any umask (O_CREAT with it, O_EXCL, O_NOFOLLOW).
    Raises OSError; then ``path`` is as it was.
    """
    draft = path.with_name(f".{path.name}-{secrets.token_hex(6)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if os.fstat(file.fileno()).st_mode & 0o7777 != mode:
                os.fchmod(file.fileno(), mode)  # a umask took of it: what others are to read, they read
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sweep_drafts(path: Path) -> None:
    """Takes away the drafts of ``path`` that killed writers left. The caller holds the lock that every writer takes. Raises OSError."""
    for entry in list(path.parent.iterdir()):
        if re.fullmatch(re.escape(f".{path.name}-") + "[0-9a-f]{12}", entry.name):
            entry.unlink(missing_ok=True)


def make_folder(folder: Path, mode: int = 0o700) -> None:
    """Makes it, and what is missing above it; their names are durable when it returns (fsync(2): a new name is synced with its folder).

    ``mode`` is that of ``folder`` alone. Raises OSError.
    """
    missing = []
    for place in (folder, *folder.parents):
        if place.is_dir():
            break
        missing.append(place)
    folder.mkdir(parents=True, exist_ok=True, mode=mode)
    for place in reversed(missing):
        sync_folder(place.parent)


def sync_folder(folder: Path) -> None:
    """The names in it are durable when it returns. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
