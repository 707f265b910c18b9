"""The bytes of a configuration file that were good last, beside it: a restart goes by them when the file breaks or goes.

What cannot be kept is not in force: whoever judges by it denies until it is kept, since after a restart nobody would know of it.
"""

from __future__ import annotations

import os
import secrets
import time
from contextlib import suppress
from pathlib import Path

from console.settings.durable import replace_file, sync_folder

AGAIN_S = 1.0
"""Between two tries to keep what could not be kept."""


class LastGood:
    """Not thread-safe: its desk has a lock."""

    def __init__(self, source: Path, path: Path) -> None:
        self._source, self._path = source, path
        self._owed: bytes | None = None
        self._again_at = 0.0
        self.trouble = ""
        """Why what is in force is not on disk; empty: it is."""

    @property
    def name(self) -> str:
        """The file's name."""
        return self._path.name

    def read(self) -> bytes:
        """What was kept. Raises OSError."""
        return self._path.read_bytes()

    def keep(self, data: bytes) -> None:
        """On disk when it returns without ``trouble``. Blocks."""
        self._owed = data
        try:
            with suppress(OSError):
                self._path.rmdir()  # somebody's empty folder in its place
            replace_file(self._path, data)
        except OSError as error:
            if not self._linked(data):
                self.trouble = (
                    f"{self.name}, by which a restart would know it, cannot be written: {error.strerror}. Nothing is allowed until it is."
                )
                self._again_at = time.monotonic() + AGAIN_S
                return
        self._owed, self.trouble = None, ""

    def settle(self) -> str:
        """Tries again what could not be kept, now and then. The trouble that is over by that; empty: none is."""
        if self._owed is None or time.monotonic() < self._again_at:
            return ""
        before = self.trouble
        self.keep(self._owed)
        return "" if self.trouble else before

    def _linked(self, data: bytes) -> bool:
        """A second name of the file itself takes no room on a full disk, and stays when the first one goes."""
        draft = self._path.with_name(f".{self.name}-{secrets.token_hex(6)}")
        try:
            os.link(self._source, draft, follow_symlinks=True)
            try:
                if draft.read_bytes() != data:
                    return False
                draft.replace(self._path)
            finally:
                draft.unlink(missing_ok=True)
            sync_folder(self._path.parent)
        except OSError:
            return False
        return True
