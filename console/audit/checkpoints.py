"""Checkpoints: the chain's head, noted now and then in a second file, so that a cut or rewritten log is noticed.

One JSON line each, linked by hash to the line before.

Two attacks stay unnoticed until checkpoints also go off the host:

* An attacker who can write both files can cut or rewrite both alike.
* While no supervisor runs, records newer than the last checkpoint can be cut.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import dataclass
from pathlib import Path

from console.audit.database import check_plain
from console.audit.record import GENESIS

LIMIT_BYTES = 512 << 20
"""Of a checkpoint file; one a minute makes 100 MB a year."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Record ``seq`` had ``hash`` at ``at`` (seconds since the epoch). seq 0 with GENESIS: the log began."""

    seq: int
    hash: str
    at: float


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """What a checkpoint file says."""

    points: tuple[Checkpoint, ...]
    problem: str = ""
    """Why the file itself cannot be trusted, or empty."""
    size: int = 0
    """Bytes of whole lines; a torn last line (a crash in mid-write, never acknowledged) is not counted."""
    link: str = GENESIS
    """Of the last line."""
    lines: int = 0
    """Whole lines there are, readable or not."""


def beside(path: Path) -> Path:
    """Where the checkpoints of an audit log are."""
    return path.with_suffix(".checkpoints")


def read_checkpoints(path: Path) -> Checkpoints:
    """Reads and checks the file; never raises on its content. Raises OSError when it is there but cannot be read."""
    try:
        check_plain(path)
        with path.open("rb") as file:
            # One byte more than the limit tells a file that is too large from one of exactly that size.
            raw = file.read(LIMIT_BYTES + 1)
    except FileNotFoundError:
        return Checkpoints((), "the checkpoint file is missing")
    if len(raw) > LIMIT_BYTES:
        return Checkpoints((), "the checkpoint file is larger than any that is written", lines=1)
    whole = _without_torn_end(raw)
    points: list[Checkpoint] = []
    link = GENESIS
    lines = whole.splitlines()
    for number, line in enumerate(lines, 1):
        point = _parse(line, link)
        # Numbers of records only grow, so a smaller one is a line that was moved or copied here.
        if point is None or (points and point.seq < points[-1].seq):
            return Checkpoints(tuple(points), f"line {number} of the checkpoint file was changed", lines=len(lines))
        points.append(point)
        link = _link(point, link)
    if not points:
        return Checkpoints((), "the checkpoint file is empty")
    return Checkpoints(tuple(points), "", len(whole), link, len(lines))


class CheckpointFile:
    """The writer's end: append only, synced before `add` returns."""

    def __init__(self, path: Path, known: Checkpoints) -> None:
        """``known`` is what `read_checkpoints` said; a new file is begun when it holds nothing. Raises OSError."""
        self.path = path
        self._size = known.size
        self._link = known.link
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.ftruncate(self._fd, self._size)  # a torn last line
            if not known.points:
                _sync_folder(path.parent)
        except OSError:
            os.close(self._fd)
            raise

    def add(self, point: Checkpoint) -> None:
        """Raises OSError, and then nothing of it stays."""
        if why := self.foreign():
            raise OSError(0, why)
        link = _link(point, self._link)
        line = json.dumps({"at": point.at, "hash": point.hash, "link": link, "seq": point.seq}, separators=(",", ":")).encode() + b"\n"
        try:
            if os.write(self._fd, line) != len(line):
                raise OSError(0, "the checkpoint was written in part only")
            # The checkpoint is the proof against a cut end (decision 0009), so it must not be lost with the end of the log.
            os.fsync(self._fd)
        except OSError:
            os.ftruncate(self._fd, self._size)
            raise
        self._size += len(line)
        self._link = link

    def foreign(self) -> str:
        """Return what another process did to the file since, in words, or ''."""
        try:
            named, own = self.path.lstat(), os.fstat(self._fd)
        except OSError as error:
            return f"the checkpoint file is gone: {error.strerror}"
        if (named.st_dev, named.st_ino) != (own.st_dev, own.st_ino):
            return "the checkpoint file was replaced by another process"
        return "" if own.st_size == self._size else "the checkpoint file was changed by another process"

    def close(self) -> None:
        """Once."""
        os.close(self._fd)


def _without_torn_end(raw: bytes) -> bytes:
    """Whole lines. A power cut may tear the last: its end is missing, or sectors of it never reached the disk and read as zero."""
    whole = raw[: raw.rfind(b"\n") + 1]
    last = whole[whole.rfind(b"\n", 0, -1) + 1 :]
    return whole[: -len(last)] if b"\0" in last else whole


def _parse(line: bytes, link: str) -> Checkpoint | None:
    try:
        fields = json.loads(line)
        point = Checkpoint(fields["seq"], fields["hash"], float(fields["at"]))
        sound = type(point.seq) is int and point.seq >= 0 and isinstance(point.hash, str) and math.isfinite(point.at)
        return point if sound and fields["link"] == _link(point, link) else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _link(point: Checkpoint, before: str) -> str:
    return hashlib.sha256(f"watchfloor-audit-checkpoint-1|{before}|{point.seq}|{point.hash}|{point.at!r}".encode()).hexdigest()


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
