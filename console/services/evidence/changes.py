"""What changed in a session's workspace since a moment: names, sizes, times, hashes. No link is followed, no mount crossed."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from console.domain.errors import ConsoleError
from console.rollback.safe_open import open_beneath, open_regular, workspace

HASHED_BYTES = 1 << 20
"""Larger files are listed without a hash."""
HASHED_TOTAL = 64 << 20
SKIPPED = 200
"""Reasons kept; more are counted."""
DEPTH = 64
_SLACK_S = 0.05
"""File times come from the kernel's coarse clock, a few ms behind."""


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """One file that was written, made or renamed."""

    path: str
    """Below the workspace; bytes that are no UTF-8 are shown escaped."""
    kind: str
    size: int
    mtime: float
    """Seconds since the epoch; the agent can set it."""
    ctime: float
    """Seconds since the epoch; the kernel's own, so a back-dated file is seen."""
    sha256: str = ""
    note: str = ""
    """Why there is no hash, or where a link points (it was not followed)."""


@dataclass(slots=True)
class Changes:
    """Of one workspace."""

    context_id: str
    since: float
    looked_at: int = 0
    files: list[ChangedFile] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    skipped_count: int = 0
    cut: str = ""
    """Which bound ended the look before its end, or ''."""


class _Cut(Exception):
    """A bound was reached."""


class Looker:
    """Looks at one workspace until ``until`` on ``clock`` (monotonic seconds) or ``files_max`` changed files."""

    __slots__ = ("_hashed", "_until", "_files_max", "_clock")

    def __init__(self, until: float, files_max: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._until, self._files_max, self._clock = until, files_max, clock
        self._hashed = 0

    def changed_since(self, workspaces_dir: Path, context_id: str, since: float) -> Changes:
        """What was found, partial when a bound was reached; never raises on what is in the workspace."""
        changes = Changes(context_id, since)
        try:
            with workspace(workspaces_dir, context_id) as root:
                self._walk(root, changes)
        except _Cut as cut:
            changes.cut = str(cut)
        except (ConsoleError, OSError) as error:
            _skip(changes, f"the workspace: {error}")
        return changes

    def _walk(self, root: int, changes: Changes) -> None:
        waiting: list[tuple[str, ...]] = [()]
        while waiting:
            parts = waiting.pop()
            self._check(changes)
            try:
                folder = open_beneath(root, parts or (".",), os.O_RDONLY | os.O_DIRECTORY)
            except OSError as error:
                _skip(changes, f"{_text('/'.join(parts))}: {error.strerror}")
                continue
            try:
                deeper = list(self._folder(root, folder, parts, changes))
            finally:
                os.close(folder)
            waiting.extend(deeper)

    def _folder(self, root: int, folder: int, parts: tuple[str, ...], changes: Changes) -> Iterator[tuple[str, ...]]:
        """Notes the changed entries of one folder, gives the folders in it."""
        with os.scandir(folder) as entries:
            for entry in entries:
                self._check(changes)
                changes.looked_at += 1
                path = (*parts, entry.name)
                try:
                    seen = entry.stat(follow_symlinks=False)
                except OSError as error:
                    _skip(changes, f"{_text('/'.join(path))}: {error.strerror}")
                    continue
                if not stat.S_ISDIR(seen.st_mode):
                    if max(seen.st_mtime, seen.st_ctime) >= changes.since - _SLACK_S:
                        changes.files.append(self._file(root, folder, path, seen))
                elif len(path) > DEPTH:
                    _skip(changes, f"{_text('/'.join(path))}: deeper than {DEPTH} folders")
                else:
                    yield path

    def _file(self, root: int, folder: int, path: tuple[str, ...], seen: os.stat_result) -> ChangedFile:
        digest, note = "", ""
        if stat.S_ISLNK(seen.st_mode):
            note = f"to {_target(path[-1], folder)}"
        elif stat.S_ISREG(seen.st_mode):
            digest, note = self._digest(root, path, seen.st_size)
        return ChangedFile(_text("/".join(path)), _kind(seen.st_mode), seen.st_size, seen.st_mtime, seen.st_ctime, digest, note)

    def _digest(self, root: int, path: tuple[str, ...], size: int) -> tuple[str, str]:
        """(hash, "") or ("", why there is none)."""
        if size > HASHED_BYTES:
            return "", f"larger than {HASHED_BYTES} bytes"
        if self._hashed + size > HASHED_TOTAL:
            return "", f"{HASHED_TOTAL} bytes were hashed already"
        try:
            descriptor = open_regular(root, path, HASHED_BYTES)
        except (ConsoleError, OSError) as error:
            return "", getattr(error, "what", None) or str(error)
        if descriptor is None:
            return "", "gone meanwhile"
        with os.fdopen(descriptor, "rb") as file:
            try:
                raw = file.read(HASHED_BYTES)
            except OSError as error:
                return "", f"not readable: {error.strerror}"
        self._hashed += len(raw)
        return hashlib.sha256(raw).hexdigest(), ""

    def _check(self, changes: Changes) -> None:
        if self._clock() >= self._until:
            raise _Cut("time")
        if len(changes.files) >= self._files_max:
            raise _Cut(f"{self._files_max} files")


def _skip(changes: Changes, words: str) -> None:
    changes.skipped_count += 1
    if len(changes.skipped) < SKIPPED:
        changes.skipped.append(words[:500])


def _text(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _target(name: str, folder: int) -> str:
    try:
        return _text(os.readlink(name, dir_fd=folder))
    except OSError:
        return "?"


def _kind(mode: int) -> str:
    kinds = ((stat.S_ISREG, "file"), (stat.S_ISLNK, "link"), (stat.S_ISFIFO, "fifo"), (stat.S_ISSOCK, "socket"))
    return next((words for test, words in kinds if test(mode)), "device")
