"""What an executed call writes, handed on as it comes: so much of each stream, then counted and thrown away; a flood ends the call."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from console.api.execute_messages import ExecuteOutput

PIECE = 32 * 1024
FLOOD_TIMES = 64
"""So many times what is handed on may be thrown away before the call is ended."""
FLOOD_LEAST = 16 * 1024 * 1024


@dataclass(slots=True)
class Stream:
    """One of the two."""

    name: Literal["stdout", "stderr"]
    fd: int
    seen: int = 0
    """Bytes that came."""
    cut: int = 0
    """Bytes of them that were not handed on."""
    is_open: bool = True


class CallOutput:
    """Reads both streams on the event loop; never waits for whoever listens."""

    def __init__(
        self, stdout: int, stderr: int, most: int, tell: Callable[[ExecuteOutput], None], redact: Callable[[bytes], bytes] = bytes
    ) -> None:
        """``most``: bytes of each stream that are handed on; of both together half as much again. ``redact`` takes known secrets out."""
        self._redact = redact
        self.out, self.err = Stream("stdout", stdout), Stream("stderr", stderr)
        self._most, self._total, self._tell = most, most + most // 2, tell
        self.flood_bytes = max(FLOOD_LEAST, FLOOD_TIMES * most)

    @property
    def is_flood(self) -> bool:
        """More was thrown away than anybody writes by mistake."""
        return self.out.seen + self.err.seen > self.flood_bytes

    def start(self) -> None:
        """From now on pieces are told as they come."""
        for stream in (self.out, self.err):
            asyncio.get_running_loop().add_reader(stream.fd, self._read, stream)

    def stop(self) -> None:
        """No more of them; what lies in the pipes stays there for ``drain``."""
        for stream in (self.out, self.err):
            asyncio.get_running_loop().remove_reader(stream.fd)

    def drain(self) -> None:
        """What was written before the end: at most what a pipe holds, since nobody writes any more."""
        for stream in (self.out, self.err):
            for _ in range(64):
                if not stream.is_open or not self._read(stream):
                    break

    def _read(self, stream: Stream) -> int:
        """One piece; how many bytes it had."""
        try:
            data = os.read(stream.fd, PIECE)
        except BlockingIOError:
            return 0
        except OSError:
            data = b""
        if not data:
            stream.is_open = False
            asyncio.get_running_loop().remove_reader(stream.fd)
            return 0
        told = self.out.seen - self.out.cut + self.err.seen - self.err.cut
        room = max(0, min(self._most - (stream.seen - stream.cut), self._total - told))
        stream.seen += len(data)
        stream.cut += max(0, len(data) - room)
        if room:
            self._tell(ExecuteOutput(stream=stream.name, b64=base64.b64encode(self._redact(data[:room])).decode()))
        return len(data)
