"""Tells at once when something in some folders changed (inotify, through watchfiles); where that cannot be had, says why.

Folders are watched one by one, never what lies below them: a long history or a link costs nothing. Nothing is opened, names alone are told.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from watchfiles._rust_notify import RustNotify

from console.sources.change_tracker import Freshness

log = logging.getLogger(__name__)
TOGETHER_MS = 120
"""A burst of changes is told as one: it ends when nothing changed for ``STEP_MS``, or after so long."""
STEP_MS = 60
REST_MS = 50
"""What an old watch may still have to tell when a new one has begun."""
LOOK_MS = 400
"""How often it is looked whether other folders are to be watched."""
ABSENT_S = 1.0
"""Seconds until the next check while none of the folders exists."""
_DELETED = 3
"""As watchfiles counts kinds of changes."""
AGAIN_S = 30.0
"""After watching was refused, the next try."""
FOLDERS_MAX = 4000
Folders = Callable[[], Iterable[Path]]
Changed = Callable[[frozenset[str]], None]


class FolderWatch:
    """A thread that watches. ``changed`` gets the paths, in that thread; nothing when folders came or went meanwhile."""

    def __init__(self, name: str, folders: Folders, changed: Changed, fresh: Freshness | None = None) -> None:
        """``fresh``: told the same, before ``changed`` is."""
        self._name, self._folders, self._changed = name, folders, changed
        self._fresh = fresh or Freshness()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self.problem = "nothing is watched yet"
        """Why changes are not told at once; empty: they are."""
        self.tells = False
        """Whether changes are reported, or will be once the first folder exists."""

    def start(self) -> None:
        """Begins; once."""
        self._thread = threading.Thread(target=self._run, name=f"watch-{self._name}", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Ends it; it may take a moment."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self._watch()
            except (OSError, RuntimeError) as error:  # watchfiles raises RuntimeError for what it cannot name
                self.problem, self.tells = _why(error), False
                log.warning("%s: folders are not watched: %s", self._name, self.problem)
                self._ended.wait(AGAIN_S)

    def _watch(self) -> None:
        """Until there is nothing to watch. Raises OSError or RuntimeError when the kernel refuses."""
        marks = self._marks()
        if not marks:
            self.problem, self.tells = "none of its folders is there yet", True
            self._ended.wait(ABSENT_S)
            return
        watcher = _notify(marks)
        try:
            self._begun(marks, marks)
            while not self._ended.is_set():
                gone = self._take(watcher.watch(TOGETHER_MS, STEP_MS, LOOK_MS, self._ended), marks)
                now = self._marks()
                if not gone and now == marks:
                    continue
                if not now:
                    return
                # The new one watches before the old one ends: of a folder that both know nothing is missed.
                old, watcher = watcher, _notify(now)
                try:
                    gone |= self._take(old.watch(REST_MS, REST_MS, REST_MS, self._ended), marks)
                finally:
                    old.close()
                self._begun(now, {path for path in now if path in gone or now[path] != marks.get(path)})
                marks = now
        finally:
            self._fresh.ends(self._name)
            watcher.close()

    def _begun(self, marks: dict[str, tuple[int, int]], new: Iterable[str]) -> None:
        """What happened in ``new`` before it was watched is not told: one look at everything."""
        self.problem = "" if len(marks) < FOLDERS_MAX else f"only {FOLDERS_MAX:,} folders are watched"
        self.tells = not self.problem
        self._fresh.begins(self._name, marks.keys() - set(new))
        self._fresh.begins(self._name, marks)
        self._changed(frozenset())

    def _take(self, found: object, marks: dict[str, tuple[int, int]]) -> set[str]:
        """Report what changed. Returns the folders that are gone themselves: a new folder of that name may even have the same inode
        number."""
        if not isinstance(found, set):
            return set()
        paths = frozenset(path for _, path in found)
        self._fresh.changed(paths)
        self._changed(paths)
        return {path for kind, path in found if kind == _DELETED and path in marks}

    def _marks(self) -> dict[str, tuple[int, int]]:
        """Folders that are there, each with what tells it from a later one of its name."""
        marks: dict[str, tuple[int, int]] = {}
        for folder in self._folders():
            if len(marks) >= FOLDERS_MAX:
                break
            try:
                seen = folder.stat()
            except (OSError, ValueError):
                continue
            marks[str(folder)] = (seen.st_dev, seen.st_ino)
        return marks


def _notify(marks: Iterable[str]) -> RustNotify:
    return RustNotify(list(marks), False, False, 0, False, True)


def _why(error: Exception) -> str:
    words = str(error)
    if "limit" in words.lower() or "no space" in words.lower() or getattr(error, "errno", None) in (24, 28):
        return "this account's limit of inotify watches is reached (fs.inotify.max_user_watches, max_user_instances)"
    return f"the kernel refused: {words[:200]}"
