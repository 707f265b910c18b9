"""What readers of transcripts share: what one pass met, records, moments and counts as they are written. All of it is hostile."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, TypeVar, cast

import msgspec

from console.domain.spend import NANO

TOLERANT_MAX = 4 << 20
"""Longest record in bytes that is taken apart field by field: programs write a hundredth of it, and parsing takes ten times its size."""
_LATEST = 4e9
_COUNT_MAX = 1e15
T = TypeVar("T")


@dataclass(slots=True)
class Reading:
    """What one pass met."""

    answers: int = 0
    odd: int = 0
    """Records with usage that could not be read, or whose numbers no model gives: said, never guessed."""


def at_of(text: object) -> float:
    """ISO 8601 as seconds since the epoch; 0: not known."""
    try:
        at = datetime.fromisoformat(text).timestamp() if isinstance(text, str) else 0.0
    except (ValueError, OverflowError, OSError):
        return 0.0
    return at if 0 < at < _LATEST else 0.0


def lines_with(data: bytes, *marks: bytes) -> Iterator[bytes]:
    """The lines that hold one of the marks, in their order. A history is mostly lines that hold none: they are never taken apart."""
    if len(marks) == 1:
        return (data[start:end] for start, end in _lines_with(data, marks[0]))
    return (data[start:end] for start, end in sorted({one for mark in marks for one in _lines_with(data, mark)}))


def _lines_with(data: bytes, mark: bytes) -> Iterator[tuple[int, int]]:
    """Where each of them begins and ends."""
    find = _finder(data, mark)
    position = find(0)
    while position >= 0:
        start = data.rfind(b"\n", 0, position) + 1
        end = data.find(b"\n", position)
        end = len(data) if end < 0 else end
        yield start, end
        position = find(end)


def _finder(data: bytes, mark: bytes) -> Callable[[int], int]:
    """Where the next mark is from a place on, or -1; while ``data`` is held.

    The C library looks in half the time that ``bytes.find`` takes, and lets other threads run meanwhile.
    """
    memmem = _libc_memmem()
    if memmem is None:
        return lambda start: data.find(mark, start)
    base, size = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0, len(data)

    def find(start: int) -> int:
        at = memmem(base + start, size - start, mark, len(mark)) if start < size else None
        return -1 if at is None else at - base

    return find


@cache
def _libc_memmem() -> Callable[[int, int, bytes, int], int | None] | None:
    try:
        found = ctypes.CDLL(None).memmem
    except (OSError, AttributeError):
        return None
    found.restype = ctypes.c_void_p
    found.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
    return cast(Callable[[int, int, bytes, int], int | None], found)


def records(data: bytes, *marks: bytes, of: msgspec.json.Decoder[T], seen: Reading) -> Iterator[T]:
    """The records in whole lines that hold one of the marks; what cannot be read, or is too long, is counted.

    ``of`` names the fields that are asked for. Nothing is made of the others, which hold nearly all of the text.
    """
    for line in lines_with(data, *marks):
        record = decoded(line, of) if len(line) <= TOLERANT_MAX else None
        if record is None:
            seen.odd += 1
        else:
            yield record


def decoded(line: bytes | str, of: msgspec.json.Decoder[T]) -> T | None:
    """One record; None: it cannot be read. What the fast decoder refuses (half a surrogate, NaN) the standard library's takes."""
    try:
        return of.decode(line)
    except (msgspec.DecodeError, ValueError, RecursionError):
        pass
    try:
        found: T = msgspec.convert(_sound(json.loads(line)), of.type)
        return found
    except (msgspec.ValidationError, ValueError, RecursionError):
        return None


def _sound(found: Any) -> Any:
    """The same with a sign in place of each half of a surrogate: such text can be neither stored nor sent."""
    if isinstance(found, str):
        return found if found.isascii() else found.encode("utf-8", "replace").decode()
    if isinstance(found, list):
        return [_sound(one) for one in found]
    return {_sound(name): _sound(value) for name, value in found.items()} if isinstance(found, dict) else found


def count(record: object, *names: str) -> int:
    """A count in an object, under the first of these names that is there; 0: none is. Raises ValueError on what is no count."""
    if not isinstance(record, dict):
        return 0
    for name in names:
        value = record.get(name)
        if type(value) is int and 0 <= value < _COUNT_MAX:
            return value
        if value is not None:
            if not isinstance(value, float) or not 0 <= value < _COUNT_MAX:
                raise ValueError(f"{name} is no count")
            return int(value)
    return 0


def reported(cost: object) -> int | None:
    """Nano-dollars that a program says an answer cost; None: it does not say, or says nothing, which is no price."""
    if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 < cost < 1e6:
        return None
    return round(cost * NANO)
