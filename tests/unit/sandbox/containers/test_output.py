"""The engine's log stream: frames, however cut."""

from __future__ import annotations

import io
import socket
import struct
import threading
from pathlib import Path

import pytest

from console.sandbox.containers.output import Follower, read_piece


def frame(content: bytes, kind: int = 1) -> bytes:
    return struct.pack(">BxxxL", kind, len(content)) + content


def test_frames_are_read_one_by_one_and_empty_ones_skipped() -> None:
    stream = io.BytesIO(frame(b"one") + frame(b"") + frame(b"two\n", 2) + frame(b"x" * 200_000))
    assert [read_piece(stream), read_piece(stream), len(read_piece(stream)), read_piece(stream)] == [b"one", b"two\n", 200_000, b""]


def test_a_stream_that_breaks_off_gives_what_there_was() -> None:
    stream = io.BytesIO(frame(b"whole")[:-2])
    assert read_piece(stream) == b"who"
    assert read_piece(stream) == b""


@pytest.mark.parametrize(
    ("answer", "is_whole", "kept"),
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n" + frame(b"words") + b"\r\n0\r\n\r\n", True, b"words"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n" + frame(b"words") + b"\r\n", False, b"words"),
        (b"HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n", False, b""),
        (b"", False, b""),
    ],
)
def test_a_log_that_did_not_come_to_its_end_is_not_called_kept(tmp_path: Path, answer: bytes, is_whole: bool, kept: bytes) -> None:
    def serve() -> None:
        end, _ = engine.accept()
        with end:
            end.recv(4096)
            end.sendall(answer)

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as engine:
        engine.bind(str(tmp_path / "e.sock"))
        engine.listen()
        thread = threading.Thread(target=serve)
        thread.start()
        follower = Follower(str(tmp_path / "e.sock"), "ab" * 32, tmp_path / "out.log", 100)
        assert follower.finish(60) is is_whole
        thread.join()
    assert (tmp_path / "out.log").read_bytes() == kept
