"""One supervisor per state directory: the lock says who holds it."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import IO

from console.domain.errors import Conflict


def take_lock(path: Path) -> IO[str]:
    """Holds the lock until the file is closed; Conflict that names the holder when another supervisor has it."""
    handle = path.open("a+")
    path.chmod(0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        handle.seek(0)
        holder = _holder(handle.read(200))
        handle.close()
        raise Conflict(
            f"Another supervisor holds {path.parent}: {holder}.", "Use it, or end it first, or name another --state-dir."
        ) from error
    handle.truncate(0)
    handle.write(json.dumps({"pid": os.getpid()}))
    handle.flush()
    return handle


def _holder(text: str) -> str:
    try:
        return f"pid {int(json.loads(text)['pid'])}"
    except (ValueError, KeyError, TypeError):
        return "its pid is not known"
