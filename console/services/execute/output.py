"""What an executed call writes, handed on as it comes: so much of each stream, then counted and thrown away; a flood ends the call."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from console.api.agents.execute import ExecuteOutput

PIECE = 32 * 1024
SMALL = 4096
"""A stream that gives less at once rests for REST_S: neither this process nor the asker's queue is drowned in tiny pieces."""
REST_S = 0.05
LINE = 4096
"""A line cut by the end of a piece is handed on with the rest of it, up to so many bytes: a secret is looked for in whole lines."""
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
    told: int = 0
    """Bytes of them that were handed on."""
    held: bytes = b""
    """The beginning of a line that is handed on with what follows."""
    is_open: bool = True
    rest: asyncio.TimerHandle | None = None

    @property
    def cut(self) -> int:
        """Bytes that were not handed on, once it was drained."""
        return self.seen - self.told


class CallOutput:
    """Read both streams on the event loop. A slow listener never holds them up."""

    __slots__ = ("_redact", "flood_bytes", "out", "err", "_most", "_total", "_tell")

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
            self._listen(stream)

    def stop(self) -> None:
        """No more of them; what lies in the pipes stays there for ``drain``."""
        for stream in (self.out, self.err):
            asyncio.get_running_loop().remove_reader(stream.fd)
            if stream.rest is not None:
                stream.rest.cancel()

    def drain(self) -> None:
        """Read what was written before the end. No process writes any more, so that is at most what a pipe holds."""
        for stream in (self.out, self.err):
            for _ in range(64):
                if not stream.is_open or not self._read(stream):
                    break
            self._hand_on(stream, b"")

    def _listen(self, stream: Stream) -> None:
        if stream.is_open:
            asyncio.get_running_loop().add_reader(stream.fd, self._ready, stream)

    def _ready(self, stream: Stream) -> None:
        if 0 < self._read(stream) < SMALL:
            loop = asyncio.get_running_loop()
            loop.remove_reader(stream.fd)
            stream.rest = loop.call_later(REST_S, self._listen, stream)

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
        stream.seen += len(data)
        begun = data[data.rfind(b"\n") + 1 :]
        self._hand_on(stream, data, begun if len(data) >= SMALL and len(begun) < min(LINE, len(data)) else b"")
        return len(data)

    def _hand_on(self, stream: Stream, data: bytes, begun: bytes = b"") -> None:
        """``begun``: the end of ``data`` that waits for what follows it."""
        whole = stream.held + data[: len(data) - len(begun)]
        stream.held = begun
        room = max(0, min(self._most - stream.told, self._total - self.out.told - self.err.told))
        if whole and room:
            stream.told += min(len(whole), room)
            clean = self._redact(whole)
            clean = clean if len(whole) <= room else clean[:room]  # cut afterwards: no half of a secret is left at the bound
            self._tell(ExecuteOutput(stream=stream.name, b64=base64.b64encode(clean).decode()))
