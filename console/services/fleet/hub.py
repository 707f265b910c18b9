"""The delta stream: what changed, numbered, kept for a while so that a console that comes back misses nothing."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from console.domain.message import as_json


@dataclass(slots=True)
class Sent:
    """A delta with its line of the stream, made once however many consoles listen."""

    seq: int
    kind: str
    data: dict[str, Any]
    _line: bytes = b""

    @property
    def entries(self) -> int:
        """Count what it speaks of, at least 1: a delta of a hundred agents takes a hundred times the memory of one."""
        return 1 + sum(len(value) for value in self.data.values() if isinstance(value, list | tuple | dict))

    def line(self) -> bytes:
        """``id``, ``event`` and ``data`` as a message of server-sent events."""
        if not self._line:
            self._line = f"id: {self.seq}\nevent: {self.kind}\ndata: {as_json(self.data)}\n\n".encode()
        return self._line


KEEP = 2000
"""Entries kept for consoles that connect again: an entry is one agent in one delta, some 2 KB of memory."""
QUEUE = 20_000
"""Entries a slow console may lag behind before it is told to read everything again."""


class Hub:
    """Fans deltas out to any number of consoles; lives on the event loop's thread."""

    __slots__ = ("seq", "_kept", "_entries_kept", "_queues")

    def __init__(self) -> None:
        self.seq = 0
        self._kept: deque[Sent] = deque()
        self._entries_kept = 0
        self._queues: dict[asyncio.Queue[Sent | None], int] = {}
        """Each console's, with the entries that wait in it."""

    @property
    def listeners(self) -> int:
        """How many consoles listen."""
        return len(self._queues)

    def publish(self, kind: str, data: dict[str, Any]) -> None:
        """Numbers a delta and hands it to every listener; one that lags too far is cut off and resyncs."""
        self.seq += 1
        delta = Sent(seq=self.seq, kind=kind, data=data)
        entries = delta.entries
        self._kept.append(delta)
        self._entries_kept += entries
        while self._entries_kept > KEEP and len(self._kept) > 1:
            self._entries_kept -= self._kept.popleft().entries
        for queue, waiting in list(self._queues.items()):
            if waiting + entries > QUEUE and waiting:
                del self._queues[queue]
                queue.put_nowait(None)
            else:
                self._queues[queue] = waiting + entries
                queue.put_nowait(delta)

    async def listen(self, after: int | None) -> AsyncIterator[Sent | None]:
        """Deltas after ``after``; a first ``resync`` when those are gone; None every 15 s as a sign of life."""
        queue: asyncio.Queue[Sent | None] = asyncio.Queue()
        missed = [d for d in self._kept if after is not None and d.seq > after]
        gap = after is not None and after != self.seq and (not self._kept or self._kept[0].seq > after + 1 or after > self.seq)
        self._queues[queue] = 0
        try:
            if gap:
                yield Sent(seq=self.seq, kind="resync", data={})
            else:
                for delta in missed:
                    yield delta
            while True:
                try:
                    async with asyncio.timeout(15):
                        delta_or_cut = await queue.get()
                except TimeoutError:
                    yield None
                    continue
                if delta_or_cut is None:
                    return
                if queue in self._queues:
                    self._queues[queue] -= delta_or_cut.entries
                yield delta_or_cut
        finally:
            self._queues.pop(queue, None)

    def close(self) -> None:
        """Ends every stream (shutdown)."""
        for queue in list(self._queues):
            queue.put_nowait(None)
        self._queues.clear()
