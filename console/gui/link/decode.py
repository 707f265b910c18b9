"""Reads the event stream in a thread of its own: a delta of thousands of agents costs the window nothing but its changes.

Only bytes go in and only checked values come out, in order; no widget is touched here. What the fleet's deltas say is handed to
``keep`` in this thread, one after the other, and its answer goes to the window.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any

from PySide6.QtCore import QObject, Signal

from console.api.agents.fleet_changes import FleetChanges, changes_of, read_changes
from console.api.messages import Delta

Incoming = SimpleQueue[tuple[int, bytes | None] | None]
LONGEST_MESSAGE = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Read:
    """One message of the stream, or the end of a connection. ``value`` None: it could not be read, or it says resync."""

    connection: int
    value: Delta | FleetChanges | None = None
    last_id: str = ""
    ended: bool = False
    too_long: bool = False
    kept: object = None
    """What ``keep`` made of a FleetChanges."""


class Decoder(QObject):
    """``read`` is emitted in the receiver's thread with each Read. ``feed`` takes bytes as they come."""

    read = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.keep: Callable[[FleetChanges], object] = lambda changes: changes
        """Called in the decoder's thread with each FleetChanges. Set it before ``start``; it raises nothing."""
        self._queue: Incoming = SimpleQueue()
        self._stopped = Event()
        self._thread: Thread | None = None

    def start(self) -> None:
        """Begins; again after ``stop`` too."""
        if self._thread is None:
            self._queue, self._stopped = SimpleQueue(), Event()
            self._thread = Thread(target=self._work, args=(self._queue, self._stopped), name="console-decoder", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Ends the thread; what was not read by then is dropped."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._stopped.set()
            self._queue.put(None)
            thread.join()

    def feed(self, connection: int, data: bytes) -> None:
        """Bytes of a connection."""
        self._queue.put((connection, data))

    def end(self, connection: int) -> None:
        """That connection is over: said back once all that came before was read."""
        self._queue.put((connection, None))

    def _work(self, queue: Incoming, stopped: Event) -> None:
        buffer, current = b"", -1
        while (item := queue.get()) is not None and not stopped.is_set():
            connection, data = item
            if connection != current:
                buffer, current = b"", connection
            if data is None:
                self.read.emit(Read(connection, ended=True))
                continue
            *blocks, buffer = (buffer + data).replace(b"\r\n", b"\n").split(b"\n\n")
            for block in blocks:
                found = read_block(connection, block)
                if stopped.is_set():
                    return
                if found is not None:
                    is_fleet = isinstance(found.value, FleetChanges)
                    self.read.emit(replace(found, kept=self.keep(found.value)) if is_fleet else found)  # type: ignore[arg-type]
            if len(buffer) > LONGEST_MESSAGE:
                buffer = b""
                self.read.emit(Read(connection, too_long=True))


def read_block(connection: int, block: bytes) -> Read | None:
    """One message; None for a comment that keeps the connection alive."""
    fields: dict[str, str] = {}
    for line in block.decode("utf-8", "replace").split("\n"):
        name, _, value = line.partition(":")
        if name:
            value = value.removeprefix(" ")
            fields[name] = f"{fields[name]}\n{value}" if name == "data" and "data" in fields else value
    kind = fields.get("event", "")
    if not kind and "data" not in fields:
        return None
    last_id = fields["id"] if fields.get("id", "").isdigit() else ""
    if kind == "resync":
        return Read(connection, None, last_id)
    try:
        return Read(connection, _value(kind, fields.get("data", ""), int(last_id or 0)), last_id)
    except (ValueError, TypeError, KeyError, RecursionError):
        return Read(connection, None, last_id)


def _value(kind: str, text: str, seq: int) -> Delta | FleetChanges:
    """Raises ValueError, TypeError or KeyError. Both shapes are read: the bare data, and a whole Delta as data."""
    if kind == "agents" and not text.startswith('{"seq"'):
        return read_changes(seq, text)
    data: Any = json.loads(text)
    if not isinstance(data, dict):
        raise TypeError("a delta's data is an object")
    if set(data) >= {"seq", "kind", "data"} and isinstance(data["data"], dict):
        seq, kind, data = int(data["seq"]), str(data["kind"]), data["data"]
    return changes_of(seq, data) if kind == "agents" else Delta(seq=seq, kind=kind, data=data)
