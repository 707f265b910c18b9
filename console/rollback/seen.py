"""What files were found to hold, remembered as long as their stamp stays, so that a list does not hash them all each time."""

from __future__ import annotations

import os
import threading
import time

from console.domain.errors import Denied
from console.rollback.beneath import check_plain, open_beneath
from console.rollback.images import ABSENT, Image, look, stamp_of
from console.rollback.journal import Entry

_MOST = 20_000
# A file changed twice within one tick of the kernel's clock keeps its ctime: a stamp counts only once it is older than this.
_SETTLED_S = 0.1


class Seen:
    """Images by session and path. An agent can set mtime but not ctime (utimensat(2)), so a stamp cannot be forged."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._images: dict[tuple[str, str], Image] = {}

    def remember(self, entry: Entry, image: Image) -> None:
        """After a look at the whole file."""
        with self._lock:
            if len(self._images) >= _MOST:
                self._images.clear()
            if image.sha256 is not None and time.time() - image.stamp[4] / 1e9 > _SETTLED_S:
                self._images[entry.context_id, entry.path] = image

    def look(self, root: int, entry: Entry, budget: list[int] | None) -> Image | None:
        """The file now; None when reading it would exceed what is left of ``budget`` (bytes, counted down). Raises Denied."""
        size = 0
        try:
            handle = open_beneath(root, entry.parts, os.O_PATH)
        except FileNotFoundError:
            return ABSENT
        except OSError as error:
            raise Denied(f"The file cannot be opened: {error.strerror}.") from error
        try:
            found = os.fstat(handle)
            check_plain(found, os.fstat(root).st_dev, repr(entry.path[:120]), self._max_bytes)
            size = found.st_size
            with self._lock:
                known = self._images.get((entry.context_id, entry.path))
            if known is not None and known.stamp == stamp_of(found):
                return known
        finally:
            os.close(handle)
        if budget is not None:
            if size > budget[0]:
                return None
            budget[0] -= size
        image = look(root, entry.parts, self._max_bytes)
        self.remember(entry, image)
        return image
