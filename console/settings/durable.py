"""One way to replace a small file so that a crash leaves the old one or the new one, never a torn one."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def replace_file(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Writes ``data`` beside ``path``, fsyncs it, renames it over ``path`` and fsyncs the folder.

    ``mode`` holds from the first byte on (O_CREAT with it, O_EXCL, O_NOFOLLOW). Raises OSError; then ``path`` is as it was.
    """
    draft = path.with_name(f".{path.name}-{secrets.token_hex(6)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
