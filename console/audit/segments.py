"""Setting a damaged log aside, whole as it is, so that a new segment can begin beside it."""

from __future__ import annotations

import os
import time
from pathlib import Path

from console.audit.checkpoints import beside
from console.domain.errors import NotRecorded


def set_aside(path: Path, at: float | None = None) -> Path:
    """Moves the log and its checkpoints into a folder beside it and returns the moved log's path.

    `verify_file` works on it there. Call it only when no `AuditLog` is open. Raises NotRecorded when it cannot be moved.
    """
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(at))
    try:
        folder = _fresh(path.parent / f"{path.stem}-set-aside-{stamp}")
        # The log's own file after its -wal: one that is left behind by a crash would be played into the new file of that name.
        for name in (path.name + "-wal", path.name + "-shm", path.name, beside(path).name):
            part = path.with_name(name)
            if os.path.lexists(part):
                part.rename(folder / name)
    except OSError as error:
        raise NotRecorded(f"The damaged audit log cannot be set aside: {error.strerror}.", f"Move {path} away by hand.") from error
    return folder / path.name


def _fresh(wanted: Path) -> Path:
    for number in range(1000):
        folder = wanted if number == 0 else wanted.with_name(f"{wanted.name}-{number}")
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return folder
    raise FileExistsError(17, "too many segments were set aside in one second")
