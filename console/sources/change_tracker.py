"""Tell which files and folders need no second look: those that a watch covers and for which it reported no change.

A watch is a hint and no promise: a network file system reports nothing, and a queue can overflow. So a user of it looks all the same now
and then.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

PATHS_MAX = 20_000
"""Changed paths kept one by one; beyond, everything counts as changed once."""


class Freshness:
    """Numbers that only grow. Told by the threads that watch, asked by any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._number = 0
        self._watched: dict[str, dict[str, int]] = {}
        """By watch: each folder, and since which number it is watched."""
        self._since: dict[str, int] = {}
        """The same of all watches; replaced whole, so that asking takes no lock."""
        self._paths: dict[str, int] = {}
        self._inside: dict[str, int] = {}
        """The places that changed, and their folders; the latest change comes last."""
        self.begun = 0
        """The number at which a folder was last watched from the start: earlier changes in it were not reported."""
        self.lapsed = 0
        """Grows when a watch ends or starts over. A reader that relies on a watch must then look once itself."""

    def begins(self, watch: str, folders: Iterable[str]) -> None:
        """Watch these folders from now on, and no others, with this watch. A folder that it watched before stays watched without a gap."""
        with self._lock:
            self._number += 1
            had, folders = self._watched.get(watch, {}), set(folders)
            self.lapsed += not had.keys() <= folders
            self._watched[watch] = {folder: had.get(folder, self._number) for folder in folders}
            self._since = {folder: since for each in self._watched.values() for folder, since in each.items()}
            self.begun = max(self._since.values(), default=self.begun)

    def ends(self, watch: str) -> None:
        """End this watch."""
        with self._lock:
            self.lapsed += bool(self._watched.pop(watch, None))
            self._since = {folder: since for each in self._watched.values() for folder, since in each.items()}

    def changed(self, paths: Iterable[str]) -> None:
        """Note that a watch reported changes in these places."""
        with self._lock:
            self._number += 1
            if len(self._paths) > PATHS_MAX:
                self._watched = {watch: dict.fromkeys(each, self._number) for watch, each in self._watched.items()}
                self._since = dict.fromkeys(self._since, self._number)
                self._paths, self._inside, self.begun, self.lapsed = {}, {}, self._number, self.lapsed + 1
            for path in paths:
                _last(self._paths, path, self._number)
                _last(self._inside, path.rpartition("/")[0], self._number)

    def of(self, path: str) -> int:
        """Return a number that grows with every change of this path; 0: its folder is not watched. Ask before you look."""
        since = self._since.get(path.rpartition("/")[0], 0)
        return max(since, self._paths.get(path, 0)) if since else 0

    def within(self, folder: str) -> int:
        """Return a number that grows with every change of an entry of this folder; 0: it is not watched."""
        since = self._since.get(folder, 0)
        return max(since, self._inside.get(folder, 0)) if since else 0

    def since(self, number: int) -> tuple[int, set[str]]:
        """Return the number now, and every place that changed after ``number``, with its folder."""
        with self._lock:
            changed = {*_after(self._paths, number), *_after(self._inside, number)}
            if self.begun > number:
                changed.update(folder for folder, at in self._since.items() if at > number)
            return self._number, changed

    def watches(self, folder: str) -> bool:
        """Return whether a watch covers the folder."""
        return folder in self._since


def _last(numbers: dict[str, int], place: str, number: int) -> None:
    numbers.pop(place, None)
    numbers[place] = number


def _after(numbers: dict[str, int], number: int) -> Iterator[str]:
    """Of thousands that changed once only those that changed since are met."""
    for place, at in reversed(numbers.items()):
        if at <= number:
            return
        yield place
