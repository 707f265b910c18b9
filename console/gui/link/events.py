"""The supervisor's event stream (SSE) with reconnect, back-off, Last-Event-ID and resync."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtNetwork import QNetworkReply

from console.api.agents.fleet_changes import FleetChanges
from console.api.endpoints import EVENTS
from console.gui.link.decode import Decoder, Read
from console.gui.link.http import Link
from console.gui.timers import once

FIRST_WAIT_MS = 250
LONG_WAIT_MS, LONGEST_WAIT_MS = 1_000, 5_000


class Events(QObject):
    """Emits each delta once. After a gap the stream says ``resync``; a new connection asks for what follows the last one seen."""

    delta = Signal(object)
    """A Delta of any kind but ``agents``."""
    changes = Signal(object)
    """What the one given to ``keep`` made of an ``agents`` delta; without one, the FleetChanges."""
    resync = Signal()
    """Everything may have changed: read it again."""
    connected = Signal(bool)

    def __init__(self, link: Link, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._link = link
        link.heard.connect(self.hasten)
        self._reply: QNetworkReply | None = None
        self._decoder = Decoder(self)
        self._decoder.read.connect(self._take, Qt.ConnectionType.QueuedConnection)
        self._connection = 0
        self._last_id = ""
        self._wait = FIRST_WAIT_MS
        self._up = False
        self._timer = once(self, 0, self._open)
        self._running = False

    def keep(self, taker: Callable[[FleetChanges], object]) -> None:
        """``taker`` gets each FleetChanges in order, in the thread that reads the stream. Before ``start``; it raises nothing."""
        self._decoder.keep = taker

    def start(self) -> None:
        """Connects, and again after each loss, until ``stop``."""
        self._running = True
        self._decoder.start()
        if self._link.exists:
            self._open()

    def stop(self) -> None:
        """Ends the stream for good."""
        self._running = False
        self._timer.stop()
        if self._reply is not None:
            self._reply.abort()
        self._decoder.stop()

    @property
    def last_seq(self) -> int:
        """Number of the last message that was read; 0: none."""
        return int(self._last_id or 0)

    def hasten(self) -> None:
        """The supervisor answers again: connects at once if the next try is far away. A stream that breaks off at once keeps its pace."""
        if self._timer.isActive() and self._wait > LONG_WAIT_MS:
            self._timer.start(0)

    def _open(self) -> None:
        if not self._running or self._reply is not None:
            return
        request = self._link.request_for(EVENTS.path)
        request.setRawHeader(b"Accept", b"text/event-stream")
        request.setRawHeader(b"Cache-Control", b"no-cache")
        if self._last_id:
            request.setRawHeader(b"Last-Event-ID", self._last_id.encode())
        self._connection += 1
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
        self._decoder.feed(self._connection, bytes(self._reply.readAll().data()))

    def _take(self, read: Read) -> None:
        if not self._running or read.connection != self._connection:
            return
        if read.ended:
            self._reopen()
        elif read.too_long:
            if self._reply is not None:
                self._reply.abort()
        else:
            self._last_id = read.last_id or self._last_id
            if read.value is None:
                self.resync.emit()
            elif isinstance(read.value, FleetChanges):
                self.changes.emit(read.kept)
            else:
                self.delta.emit(read.value)

    def _ended(self) -> None:
        reply, self._reply = self._reply, None
        if reply is not None:
            if reply.error() is not QNetworkReply.NetworkError.NoError and self._running:
                self._link.failed(reply)
            refused = reply.error() is QNetworkReply.NetworkError.NoError and not self._up
            reply.deleteLater()
            if refused:
                self._wait = LONGEST_WAIT_MS
        if self._up:
            self._up = False
            self.connected.emit(False)
        self._decoder.end(self._connection)  # what came before is read first, so that nothing is asked for twice

    def _reopen(self) -> None:
        self._timer.start(self._wait)
        self._wait = min(LONGEST_WAIT_MS, self._wait * 2)
