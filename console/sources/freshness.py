"""What needs no second look: files and folders of which somebody watches and nobody told that they changed.

A watch is a hint and no promise (a network file system tells nobody, a queue overflows): whoever trusts it looks all the same now and then.
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
        """What was told of, and the folders it is in; what changed last comes last."""
        self.begun = 0
        """When a folder was watched anew last: what happened in it before nobody told."""
        self.lapsed = 0
        """Grows when something is watched no more, or all of it begins anew: whoever waits to be told of a place asks once himself."""

    def begins(self, watch: str, folders: Iterable[str]) -> None:
        """These are watched from now on, by this watch, and no others. What it watched before goes on: no change of it was missed."""
        with self._lock:
            self._number += 1
            had, folders = self._watched.get(watch, {}), set(folders)
            self.lapsed += not had.keys() <= folders
            self._watched[watch] = {folder: had.get(folder, self._number) for folder in folders}
            self._since = {folder: since for each in self._watched.values() for folder, since in each.items()}
            self.begun = max(self._since.values(), default=self.begun)

    def ends(self, watch: str) -> None:
        """It watches nothing any more."""
        with self._lock:
            self.lapsed += bool(self._watched.pop(watch, None))
            self._since = {folder: since for each in self._watched.values() for folder, since in each.items()}

    def changed(self, paths: Iterable[str]) -> None:
        """Of something in these places a watch told."""
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
        """Grows with every change of what has this name; 0: nobody watches its folder, so look yourself. Ask before you look."""
        since = self._since.get(path.rpartition("/")[0], 0)
        return max(since, self._paths.get(path, 0)) if since else 0

    def within(self, folder: str) -> int:
        """Grows with every change of anything right in this folder; 0: nobody watches it."""
        since = self._since.get(folder, 0)
        return max(since, self._inside.get(folder, 0)) if since else 0

    def since(self, number: int) -> tuple[int, set[str]]:
        """The number now, and every place that changed after ``number``: what was told of, and the folders it is in."""
        with self._lock:
            changed = {*_after(self._paths, number), *_after(self._inside, number)}
            if self.begun > number:
                changed.update(folder for folder, at in self._since.items() if at > number)
            return self._number, changed

    def watches(self, folder: str) -> bool:
        """Whether somebody watches it."""
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
