"""Decide how long to wait for a starting process: as long as it makes progress, because a busy machine does not mean that it is broken."""

from __future__ import annotations

import time
from pathlib import Path

# Progress alone is no reason to wait for ever: a program in an endless loop makes it too.
MOST = 20
"""The longest wait for a process that makes progress, as a multiple of the time for which it may stand still."""
# A starting guard has a few processes at most; a tree beyond this is something else, and each one costs several reads.
TREE_MAX = 64


class Patience:
    """``is_over`` once neither the process nor any below it has done anything for ``still_s``; at the latest after ``MOST`` times that.

    Of a process that is not known (None), or that is gone, nothing is seen, so it stands still.
    """

    def __init__(self, pid: int | None, still_s: float) -> None:
        self._pid, self._still_s = pid, still_s
        self._began = self._moved = time.monotonic()
        self._done = self._look()

    @property
    def waited_s(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._began

    def is_over(self) -> bool:
        """Asked again and again, with rests in between."""
        done, now = self._look(), time.monotonic()
        if done != self._done:
            self._done, self._moved = done, now
        return now - self._moved >= self._still_s or now - self._began >= MOST * self._still_s

    def _look(self) -> tuple[int, ...]:
        return done_by(self._pid) if self._pid is not None else ()


def done_by(pid: int) -> tuple[int, ...]:
    """(processes, their processor ticks, their reads and writes) of a process and what is below it. What cannot be seen is nothing."""
    waiting, seen, ticks, calls = [pid], 0, 0, 0
    while waiting and seen < TREE_MAX:
        place = Path("/proc", str(waiting.pop()))
        seen += 1
        ticks += _ticks(place)
        calls += _calls(place)
        waiting += _children(place)
    return seen, ticks, calls


def _ticks(place: Path) -> int:
    """proc(5): utime and stime are fields 14 and 15, and the name in field 2 may hold anything."""
    try:
        fields = (place / "stat").read_text(errors="replace").rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    except (OSError, ValueError, IndexError):
        return 0


def _calls(place: Path) -> int:
    try:
        lines = (place / "io").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith(("syscr:", "syscw:")))
    except (OSError, ValueError, IndexError):
        return 0


def _children(place: Path) -> list[int]:
    found = list[int]()
    try:
        for task in (place / "task").iterdir():
            found += [int(word) for word in (task / "children").read_text().split()]
    except (OSError, ValueError):
        pass
    return found


def lock_holder(lock: Path) -> int | None:
    """Return the pid of the process that holds this flock, from the kernel; None: no process, or not visible from here."""
    try:
        wanted = str(lock.stat().st_ino)
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()
            if len(words) >= 6 and words[1] == "FLOCK" and words[5].rpartition(":")[2] == wanted and int(words[4]) > 0:
                return int(words[4])
    except (OSError, ValueError):
        pass
    return None
