"""Room kept on the disk for the records that must still be written when it is full: kills and stops."""

from __future__ import annotations

import os
from pathlib import Path


class Reserve:
    """A file of real blocks. While it is not whole nothing but a kill or stop is recorded, so that it is never eaten by the rest."""

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._size = size
        self.whole = False

    def take(self) -> bool:
        """Makes it whole again if there is room; True when it is."""
        if self.whole:
            return True
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            return False
        try:
            os.posix_fallocate(fd, 0, self._size)
            self.whole = True
        except OSError:
            os.ftruncate(fd, 0)  # what it got in part is of use to others
        finally:
            os.close(fd)
        return self.whole

    def free(self) -> None:
        """Gives the room back to the disk. Never raises: it is called on the way to a kill's record."""
        self.whole = False
        try:
            self._path.unlink(missing_ok=True)
        except OSError:
            return
