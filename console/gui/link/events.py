"""The supervisor's event stream (SSE) with reconnect, back-off, Last-Event-ID and resync."""

from __future__ import annotations

import json
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtNetwork import QNetworkReply

from console.api.messages import Delta
from console.gui.link.http import Link

FIRST_WAIT_MS = 250
LONGEST_WAIT_MS = 5_000
LONGEST_MESSAGE = 32 * 1024 * 1024


class Events(QObject):
    """Emits each delta once. After a gap the stream says ``resync``; a new connection asks for what follows the last one seen."""

    delta = Signal(object)
    """A Delta."""
    resync = Signal()
    """Everything may have changed: read it again."""
    connected = Signal(bool)

    def __init__(self, link: Link, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._link = link
        self._reply: QNetworkReply | None = None
        self._buffer = b""
        self._last_id = ""
        self._wait = FIRST_WAIT_MS
        self._up = False
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._open)
        self._running = False

    def start(self) -> None:
        """Connects, and again after each loss, until ``stop``."""
        self._running = True
        if self._link.exists:
            self._open()

    def stop(self) -> None:
        """Ends the stream for good."""
        self._running = False
        self._timer.stop()
        if self._reply is not None:
            self._reply.abort()

    def seen(self, seq: int) -> None:
        """A snapshot is whole up to ``seq``: deltas up to it are not wanted again."""
        if not self._last_id.isdigit() or seq > int(self._last_id):
            self._last_id = str(seq)

    def _open(self) -> None:
        if not self._running or self._reply is not None:
            return
        request = self._link.request_for("/api/events")
        request.setRawHeader(b"Accept", b"text/event-stream")
        request.setRawHeader(b"Cache-Control", b"no-cache")
        if self._last_id:
            request.setRawHeader(b"Last-Event-ID", self._last_id.encode())
        self._buffer = b""
        self._reply = self._link.manager.get(request)
        self._reply.readyRead.connect(self._read)
        self._reply.finished.connect(self._ended)

    def _read(self) -> None:
        if self._reply is None or not self._reply.isOpen():
            return
        if not self._up:
            self._up = True
            self._wait = FIRST_WAIT_MS
            self.connected.emit(True)
        self._buffer += bytes(self._reply.readAll().data())
        if len(self._buffer) > LONGEST_MESSAGE:
            self._reply.abort()
            return
        *blocks, self._buffer = self._buffer.replace(b"\r\n", b"\n").split(b"\n\n")
        for block in blocks:
            self._take(block)

    def _take(self, block: bytes) -> None:
        fields: dict[str, str] = {}
        for line in block.decode("utf-8", "replace").split("\n"):
            name, _, value = line.partition(":")
            if name:
                value = value.removeprefix(" ")
                fields[name] = f"{fields[name]}\n{value}" if name == "data" and "data" in fields else value
        kind = fields.get("event", "")
        if not kind and "data" not in fields:
            return  # a comment that keeps the connection alive
        if fields.get("id", "").isdigit():
            self._last_id = fields["id"]
        if kind == "resync":
            self.resync.emit()
            return
        read = _delta(kind, fields.get("data", ""), self._last_id)
        if read is None:
            self.resync.emit()
        else:
            self.delta.emit(read)

    def _ended(self) -> None:
        reply, self._reply = self._reply, None
        if reply is not None:
            refused = reply.error() is QNetworkReply.NetworkError.NoError and not self._up
            reply.deleteLater()
            if refused:
                self._wait = LONGEST_WAIT_MS
        if self._up:
            self._up = False
            self.connected.emit(False)
        if self._running:
            self._timer.start(self._wait)
            self._wait = min(LONGEST_WAIT_MS, self._wait * 2)


def _delta(kind: str, text: str, seq: str) -> Delta | None:
    try:
        data: Any = json.loads(text)
    except ValueError:
        return None
    if not isinstance(data, dict):
        return None
    # Both shapes are read: the bare data, and a whole Delta as data.
    if set(data) >= {"seq", "kind", "data"} and isinstance(data["data"], dict):
        return Delta(seq=int(data["seq"]), kind=str(data["kind"]), data=data["data"])
    return Delta(seq=int(seq) if seq.isdigit() else 0, kind=kind, data=data)
