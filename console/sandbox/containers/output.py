"""Keeps what a container writes: follows the engine's log into the agent's output file, within its bound, in a thread of its own.

The file is written from the log's beginning each time, so a supervisor that restarts has the whole of it and no line twice.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import struct
import threading
from pathlib import Path
from typing import IO

from console.sandbox.launcher import open_output

LIMIT_NOTE = b"\n[watchfloor: the output limit is reached; the rest is not kept]\n"
CONNECT_S = 30.0
# A frame's length is the engine's word: read piece by piece, a wrong one cannot make us reserve 4 GiB.
_LARGEST_PIECE = 64 * 1024


class Follower:
    """One thread that ends with its container, or when told to stop."""

    def __init__(self, engine_socket: str, container_id: str, output: Path, limit: int) -> None:
        """Raises OSError when the engine does not answer, ConsoleError or OSError when the file cannot be opened."""
        self._container_id = container_id
        self._limit = limit
        self._is_whole = False
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(CONNECT_S)
            self._socket.connect(engine_socket)
            self._fd = open_output(output)
        except BaseException:
            self._socket.close()
            raise
        # The engine gives the log from its beginning again, so what an earlier supervisor kept would stand there twice.
        os.ftruncate(self._fd, 0)
        self._thread = threading.Thread(target=self._run, name=f"output-{container_id[:12]}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        # What a broken engine says no more of is lost; the agent's life does not hang on it.
        try:
            with contextlib.suppress(OSError, http.client.HTTPException, ValueError, struct.error):
                self._copy()
        finally:
            os.close(self._fd)
            self._socket.close()

    def _copy(self) -> None:
        connection = http.client.HTTPConnection("engine")
        connection.sock = self._socket
        connection.request("GET", f"/containers/{self._container_id}/logs?follow=1&stdout=1&stderr=1")
        with contextlib.closing(connection.getresponse()) as answer:
            if answer.status != 200:
                return
            self._socket.settimeout(None)  # an agent may be silent for hours; stop() cuts the socket
            kept = 0
            while piece := read_piece(answer):
                room = self._limit - kept
                if room > 0:
                    os.write(self._fd, piece[:room] + (LIMIT_NOTE if len(piece) >= room else b""))
                kept += len(piece)
            self._is_whole = True

    def finish(self, timeout: float) -> bool:
        """Waits for the rest of the log of an ended container, at most ``timeout`` seconds. Whether it came to its end, and is kept."""
        self._thread.join(timeout)
        return self._is_whole

    def stop(self) -> None:
        """Cuts the stream and waits for the thread, briefly."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(5.0)


def read_piece(stream: IO[bytes] | http.client.HTTPResponse) -> bytes:
    """The next frame's content, empty at the end (Engine API, "Stream format": one byte of kind, three of nothing, a length)."""
    while header := stream.read(8):
        length = struct.unpack(">BxxxL", header)[1]
        if length:
            return _read_up_to(stream, length)
    return b""


def _read_up_to(stream: IO[bytes] | http.client.HTTPResponse, length: int) -> bytes:
    pieces = []
    while length > 0:
        piece = stream.read(min(length, _LARGEST_PIECE))
        if not piece:
            break
        pieces.append(piece)
        length -= len(piece)
    return b"".join(pieces)
