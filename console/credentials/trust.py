"""Whether a file, or what a path leads through, could be another user's: what the rotation runs and writes must be the operator's alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from console.domain.errors import ConsoleError


def check_way(path: Path, *, owners: frozenset[int] = frozenset()) -> None:
    """Raise ConsoleError when an account except root, our own or ``owners`` could put another file in this place.

    On the way there must be no symbolic link, no folder of another account, and none that others can write to (except sticky ones, as
    /tmp).
    """
    trusted = {0, os.geteuid()} | owners
    for folder in reversed(path.parents):
        try:
            seen = folder.lstat()
        except OSError as error:
            raise ConsoleError(f"{folder} cannot be looked at: {error.strerror}.", "Check the path in the rotation plan.") from error
        if stat.S_ISLNK(seen.st_mode):
            raise ConsoleError(f"{folder} is a symbolic link.", "Name the real path in the rotation plan.")
        if seen.st_uid not in trusted:
            raise ConsoleError(f"{folder} belongs to another account (uid {seen.st_uid}).", "Move the file to a folder of your own.")
        # In a sticky folder no other account can rename or remove the file; elsewhere who may write may exchange it.
        if seen.st_mode & stat.S_IWOTH and not seen.st_mode & stat.S_ISVTX:
            raise ConsoleError(f"{folder} can be written by every account.", f"chmod o-w {folder}")


def check_program(path: str) -> None:
    """Raises ConsoleError unless this is a program that only root or we ourselves can change."""
    # Links on the way (/bin, /usr/bin/python3) are fine once what they lead to is.
    try:
        real = Path(path).resolve(strict=True)
        seen = real.stat()
    except (OSError, RuntimeError) as error:
        raise ConsoleError(f"{path} cannot be run: {getattr(error, 'strerror', None) or error}.", "Check the path in the plan.") from error
    if not stat.S_ISREG(seen.st_mode) or not os.access(real, os.X_OK):
        raise ConsoleError(f"{path} is not a program that can be run.", f"chmod u+x {path}")
    if seen.st_uid not in (0, os.geteuid()) or seen.st_mode & 0o022:
        raise ConsoleError(f"{path} can be changed by another account.", f"chown it to yourself and chmod go-w {path}")
    check_way(real)
