"""The engine's log stream: frames, however cut."""

from __future__ import annotations

import io
import struct

from console.sandbox.container_output import read_piece


def frame(content: bytes, kind: int = 1) -> bytes:
    return struct.pack(">BxxxL", kind, len(content)) + content


def test_frames_are_read_one_by_one_and_empty_ones_skipped() -> None:
    stream = io.BytesIO(frame(b"one") + frame(b"") + frame(b"two\n", 2) + frame(b"x" * 200_000))
    assert [read_piece(stream), read_piece(stream), len(read_piece(stream)), read_piece(stream)] == [b"one", b"two\n", 200_000, b""]


def test_a_stream_that_breaks_off_gives_what_there_was() -> None:
    stream = io.BytesIO(frame(b"whole")[:-2])
    assert read_piece(stream) == b"who"
    assert read_piece(stream) == b""
