"""The guard's journal: one JSON line for every press, freeze, thaw and unlatch, fsynced; the supervisor folds it into the audit."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from console.killswitch.durable import Reserve, sync_folder, write_all

LONGEST = 16 * 1024


class Journal:
    """Append-only. A line that could not be written whole is cut off again, so no torn line stays in the middle."""

    def __init__(self, folder: Path, reserve: Reserve | None = None) -> None:
        self.path = folder / "journal.jsonl"
        self._reserve = reserve
        self._lock = threading.Lock()
        self._seq = 0
        self.generation = 0
        """The highest latch generation that any line names."""
        for line in read_journal(self.path):
            self._seq = max(self._seq, line["seq"])
            seen = line.get("generation", 0)
            self.generation = max(self.generation, seen if isinstance(seen, int) else 0)

    def append(self, kind: str, **data: Any) -> int:
        """Durable when it returns; OSError when it is not. Gives the line's number."""
        with self._lock:
            try:
                return self._append(kind, data)
            except OSError:
                if self._reserve is None or kind != "press" or not self._reserve.spend():
                    raise  # nothing but a kill spends the reserve that a kill may need
                return self._append(kind, data)

    def _append(self, kind: str, data: dict[str, Any]) -> int:
        line = json.dumps({"seq": self._seq + 1, "at": round(time.time(), 3), "kind": kind, **data}).encode() + b"\n"
        if len(line) > LONGEST:
            line = json.dumps({"seq": self._seq + 1, "at": round(time.time(), 3), "kind": kind, "cut": True}).encode() + b"\n"
        is_new = not self.path.exists()
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
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
    for raw in lines:
        try:
            line = json.loads(raw)
        except (ValueError, RecursionError):
            continue
        if isinstance(line, dict) and isinstance(line.get("seq"), int) and line["seq"] > after:
            yield line


def _is_torn(path: Path, end: int) -> bool:
    """Whether the file ends in the middle of a line (power was lost while it was written)."""
    if end == 0:
        return False
    with path.open("rb") as file:
        file.seek(end - 1)
        return file.read(1) != b"\n"
