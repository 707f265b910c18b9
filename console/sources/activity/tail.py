"""Follows one file as it grows: by the file itself and not its name, complete lines only, a bounded part at a time."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass, field

from console.domain.activity import FilePlace

LINE_MAX = 4 << 20
"""Bytes. A longer line is skipped, and reported. Programs write a hundredth of it, and parsing it needs ten times its size."""
STEP_MAX = 1 << 20
"""Bytes read from one file at once, so that one long history does not delay the others."""
FIRST_MAX = 32 << 20
"""Bytes of a history that was never read. What lies before is left out, and reported."""
_MARK = 64
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK | os.O_NOFOLLOW


@dataclass(slots=True)
class Tailed:
    """What is new in a file."""

    place: FilePlace
    lines: list[bytes] = field(default_factory=list)
    again: bool = False
    """It was truncated, rewritten or replaced: this is its beginning."""
    left_out: int = 0
    """Bytes of a long history before the first line."""
    too_long: int = 0
    """Lines that were passed over."""
    more: bool = False
    """There is more of it already."""
    problem: str = ""
    """Why it cannot be read, or empty."""
    is_gone: bool = False


def tail(path: str, before: FilePlace | None, uid: int, *, first_max: int = FIRST_MAX) -> Tailed:
    """The lines since ``before``; ``uid``: whose file it must be, whatever it says of itself. Never raises."""
    place = before or FilePlace(path)
    try:
        fd = os.open(path, _FLAGS)
    except FileNotFoundError:
        return Tailed(place, is_gone=True)
    except (OSError, ValueError) as error:
        return Tailed(place, problem=getattr(error, "strerror", None) or "its name is no name of a file")
    try:
        return _read(fd, path, before, uid, first_max)
    except OSError as error:
        return Tailed(place, problem=error.strerror or "it cannot be read")
    finally:
        os.close(fd)


Signature = tuple[int, int, int, int]


def signature(path: str) -> Signature | None:
    """By what it is seen that a file changed: one stat. None: it is not there."""
    try:
        seen = os.stat(path, follow_symlinks=False)  # noqa: PTH116 - asked for every file that is followed, a few times a second
    except (OSError, ValueError):
        return None
    return seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns


def database_signature(path: str) -> Signature | None:
    """The same of an SQLite database: what is new stands in its write-ahead log first."""
    own, log = signature(path), signature(f"{path}-wal")
    if own is None or log is None:
        return own
    return own[0], own[1], own[2] + log[2], max(own[3], log[3])


def _read(fd: int, path: str, before: FilePlace | None, uid: int, first_max: int) -> Tailed:
    seen = os.fstat(fd)
    if not stat.S_ISREG(seen.st_mode):
        return Tailed(before or FilePlace(path), problem="it is no regular file")
    if seen.st_uid != uid:
        return Tailed(before or FilePlace(path), problem=f"it belongs to uid {seen.st_uid}, the agent to uid {uid}")
    inode, left_out = _number(seen), 0
    place = before if before is not None and (before.inode, before.dev) == (inode, seen.st_dev) else None
    lead, data = _part(fd, place.offset, seen.st_size) if place is not None else (b"", b"")
    is_first = place is None or not place.offset and seen.st_size > first_max
    if place is None or is_first or seen.st_size < place.offset or _mark(lead) != place.mark:
        left_out = max(0, seen.st_size - first_max)
        place = FilePlace(path, seen.st_dev, inode)
        lead, data = _part(fd, left_out, seen.st_size)
    found = Tailed(place, again=before is not None and place is not before and before.offset > 0, left_out=left_out)
    offset, skipping = place.offset + left_out, place.skipping or left_out > 0
    end = data.rfind(b"\n") + 1
    if not end and len(data) == STEP_MAX:
        data = os.pread(fd, LINE_MAX + 1, offset)
        end = data.rfind(b"\n") + 1
    if not end and (skipping or len(data) > LINE_MAX):
        # No end of the line in sight: what comes of it is passed over.
        found.too_long += 0 if skipping else 1
        end, skipping = len(data), True
    elif end:
        lines = data[: end - 1].split(b"\n")
        kept = [line for line in lines[1 if skipping else 0 :] if len(line) <= LINE_MAX]
        found.too_long += len(lines) - (1 if skipping else 0) - len(kept)
        found.lines, skipping = [line for line in kept if line.strip()], False
    found.more = bool(end) and offset + len(data) < seen.st_size
    last = data[end - _MARK : end] if end >= _MARK else (lead + data[:end])[-_MARK:]
    found.place = FilePlace(path, seen.st_dev, inode, offset + end, _mark(last), place.state, skipping)
    return found


def _part(fd: int, offset: int, size: int) -> tuple[bytes, bytes]:
    """The bytes by which ``offset`` is known again, and what follows of a file that is so large."""
    lead = min(_MARK, offset)
    held = os.pread(fd, lead + min(STEP_MAX, max(0, size - offset)), offset - lead)
    return held[:lead], held[lead:]


def _number(seen: os.stat_result) -> int:
    """The inode, as SQLite can hold it."""
    return seen.st_ino & ((1 << 63) - 1)


def _mark(last: bytes) -> str:
    """Return a mark of the bytes before a place, so that a file rewritten in place is noticed and read again."""
    return hashlib.sha256(last).hexdigest()[:24] if last else ""
