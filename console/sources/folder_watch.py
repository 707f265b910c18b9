"""Tells at once when something in some folders changed (inotify, through watchfiles); where that cannot be had, says why.

Folders are watched one by one, never what lies below them: a long history or a link costs nothing. Nothing is opened, names alone are told.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from watchfiles._rust_notify import RustNotify

log = logging.getLogger(__name__)
TOGETHER_MS = 120
"""A burst of changes is told as one: it ends when nothing changed for ``STEP_MS``, or after so long."""
STEP_MS = 30
LOOK_MS = 400
"""How often it is looked whether other folders are to be watched."""
_DELETED = 3
"""As watchfiles counts kinds of changes."""
AGAIN_S = 30.0
"""After watching was refused, the next try."""
FOLDERS_MAX = 4000
Folders = Callable[[], Iterable[Path]]
Changed = Callable[[frozenset[str]], None]


class FolderWatch:
    """A thread that watches. ``changed`` gets the paths, in that thread; nothing when folders came or went meanwhile."""

    def __init__(self, name: str, folders: Folders, changed: Changed) -> None:
        self._name, self._folders, self._changed = name, folders, changed
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self.problem = "nothing is watched yet"
        """Why changes are not told at once; empty: they are."""

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
                self.problem = _why(error)
                log.warning("%s: folders are not watched: %s", self._name, self.problem)
                self._ended.wait(AGAIN_S)

    def _watch(self) -> None:
        """Until other folders are to be watched. Raises OSError or RuntimeError when the kernel refuses."""
        marks = self._marks()
        if not marks:
            self.problem = "none of its folders is there yet"
            self._ended.wait(LOOK_MS / 1000)
            return
        watcher = RustNotify(list(marks), False, False, 0, False, True)
        try:
            # What happened before it watched is not told: one look at everything.
            self.problem = "" if len(marks) < FOLDERS_MAX else f"only {FOLDERS_MAX:,} folders are watched"
            self._changed(frozenset())
            while not self._ended.is_set():
                found = watcher.watch(TOGETHER_MS, STEP_MS, LOOK_MS, self._ended)
                if isinstance(found, set):
                    self._changed(frozenset(path for _, path in found))
                is_gone = isinstance(found, set) and any(kind == _DELETED and path in marks for kind, path in found)
                if is_gone or self._marks() != marks:  # one made anew may even have the number of the one before
                    return
        finally:
            watcher.close()

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


def _why(error: Exception) -> str:
    words = str(error)
    if "limit" in words.lower() or "no space" in words.lower() or getattr(error, "errno", None) in (24, 28):
        return "this account's limit of inotify watches is reached (fs.inotify.max_user_watches, max_user_instances)"
    return f"the kernel refused: {words[:200]}"
