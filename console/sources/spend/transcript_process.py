"""The second process, which reads transcripts: it is asked for files and answers what is new in each, until its input ends.

Frames of msgpack behind their length: ``Asked`` on standard input, ``Reply`` on standard output.
"""

from __future__ import annotations

import gc
import os
import struct
from collections.abc import Callable, Iterable

import msgspec

from console.domain.spend import Answer
from console.sources.spend.transcript_files import Answers, Found, Place, Transcript, Transcripts, follow

LENGTH = struct.Struct("<I")
LONGEST = 256 << 20
"""Bytes of one frame."""


class Asked(msgspec.Struct, array_like=True):
    """One file to read."""

    number: int
    source: str
    path: bytes
    ours: bool
    before: Place | None


class Reply(msgspec.Struct, array_like=True):
    """What is new in it, or a part of that."""

    number: int
    is_last: bool
    place: Place | None
    found: Found
    answers: list[Answer]


_REPLY = msgspec.msgpack.Encoder()
_ASKED = msgspec.msgpack.Decoder(Asked)


def main(kinds: Iterable[Transcripts]) -> None:
    """Answer until standard input ends, or the reader of the answers is gone."""
    gc.set_threshold(10_000, 20, 20)
    known = {kind.source: kind for kind in kinds}
    with open(0, "rb", closefd=False) as asks, open(1, "wb", closefd=False) as tells:
        try:
            while head := asks.read(LENGTH.size):
                asked = _ASKED.decode(asks.read(*LENGTH.unpack(head)))
                answer(asked, known[asked.source], tells.write)
                tells.flush()
        except BrokenPipeError:
            os._exit(0)  # what is left in the buffer has no reader


def answer(asked: Asked, kind: Transcripts, write: Callable[[bytes], object]) -> None:
    """Reads it and writes frames."""
    answers: Answers = {}

    def tell(place: Place | None, found: Found, *, is_last: bool) -> None:
        said = _REPLY.encode(Reply(asked.number, is_last, place, found, list(answers.values())))
        write(LENGTH.pack(len(said)) + said)
        answers.clear()

    found = Found()
    transcript = Transcript(asked.source, os.fsdecode(asked.path), asked.ours)
    place = follow(transcript, kind, asked.before, answers, found, lambda _answers: tell(None, Found(), is_last=False))
    tell(place, found, is_last=True)
