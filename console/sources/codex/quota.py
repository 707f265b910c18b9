"""Read how much of a subscription's window is used, from a program's own files: Codex writes it into its rollouts, Claude Code does not.

Only the ends of the newest rollouts are read, as hostile bytes: another program wrote them.
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from console.sources.quota import Window
from console.sources.reading import at_of

TAIL = 256 * 1024
FILES = 5
_MARK = b'"rate_limits"'
_MOST_ENTRIES = 5000


def windows(homes: Iterable[Path]) -> list[Window]:
    """The windows that the newest rollout which names any knows of; empty: none does. Blocks; never raises on what is in a file."""
    newest: list[tuple[float, Path]] = []
    for home in homes:
        newest += _rollouts(home / ".codex" / "sessions")
    for _, path in sorted(newest, reverse=True)[:FILES]:
        if found := _windows_in(_tail(path)):
            return found
    return []


def _rollouts(folder: Path) -> list[tuple[float, Path]]:
    """The rollouts of the latest days: sessions/YYYY/MM/DD/rollout-*.jsonl."""
    days = [folder]
    for _ in range(3):
        days = [inner for day in days for inner in _newest_folders(day)]
    found: list[tuple[float, Path]] = []
    for day in days:
        for entry in _entries(day):
            try:
                if entry.name.startswith("rollout-") and entry.name.endswith(".jsonl") and entry.is_file(follow_symlinks=False):
                    found.append((entry.stat(follow_symlinks=False).st_mtime, Path(entry.path)))
            except OSError:
                continue
    return found


def _newest_folders(folder: Path) -> list[Path]:
    names = [e for e in _entries(folder) if e.name.isascii() and e.name.isdigit() and e.is_dir(follow_symlinks=False)]
    return [Path(e.path) for e in sorted(names, key=lambda e: e.name, reverse=True)[:2]]


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry, _ in zip(entries, range(_MOST_ENTRIES), strict=False)]
    except OSError:
        return []


def _tail(path: Path) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return b""
    try:
        seen = os.fstat(fd)
        return os.pread(fd, TAIL, max(0, seen.st_size - TAIL)) if stat.S_ISREG(seen.st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(fd)


def _windows_in(data: bytes) -> list[Window]:
    for line in reversed(data.split(b"\n")):
        if _MARK in line:
            try:
                record = json.loads(line)
                found = list(_windows(record["payload"]["rate_limits"], at_of(str(record.get("timestamp", "")))))
            except (ValueError, KeyError, TypeError, RecursionError):
                continue
            if found:
                return found
    return []


def _windows(limits: Any, at: float) -> Iterator[Window]:
    for name in ("primary", "secondary") if isinstance(limits, dict) else ():
        one = limits.get(name)
        if isinstance(one, dict) and (share := _number(one.get("used_percent"), 1000.0)) is not None:
            minutes = _number(one.get("window_minutes"), 1e6)
            at_end, left = _number(one.get("resets_at"), 1e11), _number(one.get("resets_in_seconds"), 1e9)
            yield Window(
                int(minutes or 0), share / 100, at_end if at_end is not None else at + left if left is not None and at else None, at
            )


def _number(value: object, most: float) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not 0 <= value <= most:
        return None
    return float(value)
