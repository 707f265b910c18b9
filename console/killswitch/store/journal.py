"""The guard's journal: one JSON line for every press, freeze, thaw and unlatch, fsynced; the supervisor folds it into the audit."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from console.killswitch.store.atomic_file import Reserve, sync_folder, write_all

LONGEST = 16 * 1024
TAIL = 8 * LONGEST
LOCK_S = 1.0
"""A line waits no longer for another writer (a stopped guard, say)."""


class Journal:
    """Append-only. A line that could not be written whole is cut off again, so no torn line stays in the middle."""

    def __init__(self, folder: Path, reserve: Reserve | None = None) -> None:
        self.path = folder / "journal.jsonl"
        self._reserve = reserve
        self._lock = threading.Lock()
        self._seq = 0
        self._end = 0
        """Where the last line seen ended."""
        self.generation = 0
        """The highest latch generation that any of the last lines names."""
        with contextlib.suppress(OSError), self.path.open("rb") as file:
            self._read_tail(file.fileno())

    def append(self, kind: str, **data: Any) -> int:
        """Durable when it returns; OSError when it is not. Gives the line's number."""
        with self._lock:
            try:
                return self._append(kind, data)
            except OSError:
                if self._reserve is None or kind != "press" or not self._reserve.spend():
                    raise  # nothing but a kill spends the reserve that a kill may need
                return self._append(kind, data)

    def _read_tail(self, fd: int) -> None:
        """Lines of other writers count too; nothing before the last few can be newer."""
        end = os.fstat(fd).st_size
        if end == self._end:
            return
        for line in _parse(os.pread(fd, TAIL, max(0, end - TAIL)).splitlines()):
            self._seq = max(self._seq, line["seq"])
            seen = line.get("generation", 0)
            self.generation = max(self.generation, seen if isinstance(seen, int) else 0)
        self._end = end

    def _append(self, kind: str, data: dict[str, Any]) -> int:
        is_new = not self.path.exists()
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            _lock(fd)
            self._read_tail(fd)
            line = json.dumps({"seq": self._seq + 1, "at": round(time.time(), 3), "kind": kind, **data}).encode() + b"\n"
            if len(line) > LONGEST:
                line = json.dumps({"seq": self._seq + 1, "at": round(time.time(), 3), "kind": kind, "cut": True}).encode() + b"\n"
            end = os.lseek(fd, 0, os.SEEK_END)
            try:
                write_all(fd, (b"\n" if _is_torn(self.path, end) else b"") + line)
                os.fsync(fd)
            except OSError:
                os.ftruncate(fd, end)
                raise
        finally:
            os.close(fd)
        if is_new:
            sync_folder(self.path.parent)
        self._seq += 1
        return self._seq


def read_journal(path: Path, after: int = 0) -> Iterator[dict[str, Any]]:
    """The lines numbered above ``after``; a torn or foreign line is left out."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return
    yield from (line for line in _parse(lines) if line["seq"] > after)


def _parse(lines: list[bytes]) -> Iterator[dict[str, Any]]:
    for raw in lines:
        try:
            line = json.loads(raw)
        except (ValueError, RecursionError):
            continue
        if isinstance(line, dict) and isinstance(line.get("seq"), int):
            yield line


def _lock(fd: int) -> None:
    deadline = time.monotonic() + LOCK_S
    while time.monotonic() < deadline:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.005)
        else:
            return


def _is_torn(path: Path, end: int) -> bool:
    """Whether the file ends in the middle of a line (power was lost while it was written)."""
    if end == 0:
        return False
    with path.open("rb") as file:
        file.seek(end - 1)
        return file.read(1) != b"\n"
