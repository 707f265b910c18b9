"""One supervisor per state directory: the lock says who holds it."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from pathlib import Path
from typing import IO

from console.domain.errors import Conflict
from console.killswitch.client.patience import Patience, lock_holder

HELD_S = 5.0
"""How long a supervisor that neither answers nor lets go may stand still."""
LOOK_S = 0.05


def take_lock(path: Path, sock: Path | None = None, still_s: float = HELD_S) -> IO[str]:
    """Hold the lock until the file is closed. Raises Conflict that names the holder when another supervisor has it.

    ``sock``: where that supervisor would answer. While it does not, it starts or ends: it is waited for as long as it makes progress.
    """
    handle = path.open("a+")
    path.chmod(0o600)
    patience = Patience(lock_holder(path), still_s)
    while not _took(handle):
        if sock is None or listens(sock) or patience.is_over():
            handle.seek(0)
            holder = _holder(handle.read(200))
            handle.close()
            raise Conflict(f"Another supervisor holds {path.parent}: {holder}.", "Use it, or end it first, or name another --state-dir.")
        time.sleep(LOOK_S)
    handle.truncate(0)
    handle.write(json.dumps({"pid": os.getpid()}))
    handle.flush()
    return handle


def _took(handle: IO[str]) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def listens(path: Path) -> bool:
    """Return whether a process takes connections there. A full queue means yes as well."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.setblocking(False)
        try:
            line.connect(str(path))
        except BlockingIOError:
            return True
        except OSError:
            return False
    return True


def _holder(text: str) -> str:
    try:
        return f"pid {int(json.loads(text)['pid'])}"
    except (ValueError, KeyError, TypeError):
        return "its pid is not known"
