"""Alerts that wait for their delivery, on disk and in memory: bounded, the oldest first. A full disk keeps none from being sent.

Each is a file of its own, written before it is sent and removed when it was taken.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from console.domain.process.durable import make_folder, replace_file

MOST = 1000
"""Alerts that wait; one more takes the place of the oldest, which counts as given up."""
LONGEST = 1024 * 1024
"""Bytes of one alert on disk."""
DAY_S = 86_400.0


@dataclass(slots=True)
class Waiting:
    """One alert that was not delivered yet."""

    number: int
    alert_id: str
    body: bytes
    at: float
    """Seconds since the epoch, when it happened."""
    boot_s: float
    """CLOCK_BOOTTIME seconds at that moment: no changed clock makes it older."""
    boot_id: str
    saved: bool = False
    tries: int = 0
    """In this supervisor."""
    due: float = 0.0
    """CLOCK_MONOTONIC seconds of the next try."""

    def age_s(self, now_boot_id: str) -> float:
        """Seconds since it happened. By the calendar only where the host was started again since."""
        if now_boot_id and now_boot_id == self.boot_id:
            return time.clock_gettime(time.CLOCK_BOOTTIME) - self.boot_s
        return max(0.0, time.time() - self.at)


class Outbox:
    """What waits, and its files in one folder. On the loop's thread; files are written and read beside it, by one caller at a time."""

    __slots__ = ("waiting", "_folder", "_boot_id", "_next")

    def __init__(self, folder: Path, boot_id: str) -> None:
        self.waiting: list[Waiting] = []
        """The oldest first."""
        self._folder, self._boot_id, self._next = folder, boot_id, 1

    def add(self, alert_id: str, body: bytes) -> None:
        """One more, in memory alone."""
        number, self._next = self._next, self._next + 1
        boot_s = time.clock_gettime(time.CLOCK_BOOTTIME)
        self.waiting.append(Waiting(number, alert_id, body, time.time(), boot_s, self._boot_id))

    async def load(self) -> int:
        """Take in what an earlier supervisor left, before anything is saved. Returns how many files could not be read, and were removed."""
        found, broken = await asyncio.to_thread(self._left)
        after = max((one.number for one in found), default=0)
        for place, one in enumerate(self.waiting, after + 1):  # added before the folder was read
            one.number = place
        self.waiting, self._next = [*found, *self.waiting], after + 1 + len(self.waiting)
        return broken

    def _left(self) -> tuple[list[Waiting], int]:
        found, broken = [], 0
        try:
            files = sorted(file for file in self._folder.iterdir() if file.suffix == ".json" and file.stem.isdigit())
        except OSError:
            return [], 0
        for file in files:
            one = _read(file)
            if one is None:
                broken += 1
                self._unlink(file)
            else:
                found.append(one)
        return found, broken

    async def save(self) -> None:
        """All of it is durable when it returns. Raises OSError."""
        if unsaved := [one for one in self.waiting if not one.saved]:
            await asyncio.to_thread(self._write, unsaved)

    def _write(self, ones: list[Waiting]) -> None:
        for one in ones:
            make_folder(self._folder)
            kept = {"id": one.alert_id, "body": one.body.decode("ascii"), "at": one.at, "boot_s": one.boot_s, "boot_id": one.boot_id}
            replace_file(self._file(one), json.dumps(kept).encode())
            one.saved = True

    def next(self) -> Waiting | None:
        """The one that is due first."""
        return min(self.waiting, key=lambda one: (one.due, one.number), default=None)

    def over(self) -> list[Waiting]:
        """The oldest, as many as are too many."""
        return self.waiting[: max(0, len(self.waiting) - MOST)]

    async def remove(self, ones: list[Waiting]) -> None:
        """Forget them. A file that stays is sent once more by the next supervisor, under the same id."""
        await asyncio.to_thread(self._unlink, *map(self._file, ones))
        self.waiting = [one for one in self.waiting if one not in ones]

    def _file(self, one: Waiting) -> Path:
        return self._folder / f"{one.number:012}.json"

    def _unlink(self, *files: Path) -> None:
        for file in files:
            with suppress(OSError):
                file.unlink(missing_ok=True)


def _read(file: Path) -> Waiting | None:
    try:
        with file.open("rb") as source:
            kept = json.loads(source.read(LONGEST + 1))
        body = str(kept["body"]).encode("ascii")
        return Waiting(int(file.stem), str(kept["id"]), body, float(kept["at"]), float(kept["boot_s"]), str(kept["boot_id"]), saved=True)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
