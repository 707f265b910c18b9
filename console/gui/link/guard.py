"""The guard's socket, opened in advance: one JSON line each way. What the panic control presses must not wait for a supervisor."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from time import monotonic
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtNetwork import QLocalSocket

from console.domain.errors import ConsoleError, Unreachable
from console.domain.guard import ANSWER_S, LINE_LIMIT, decode, encode
from console.gui.link.pending import Pending

RETRY_MS = 500
LATE_MS = 50
"""How often it is looked whether an answer is late."""


class GuardLink(QObject):
    """Answers come in the order of the requests. ``alive`` follows whether the guard answers within 300 ms, a press included: whoever is
    slower counts as dead, and is pressed past. Two presses do no harm; one that nobody carries out does."""

    alive = Signal(bool)
    status_came = Signal(dict)

    def __init__(self, socket: Path | None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._path = socket
        self._socket = QLocalSocket(self)
        self._socket.connected.connect(self._connected)
        self._socket.disconnected.connect(self._lost)
        self._socket.errorOccurred.connect(lambda _error: self._lost())
        self._socket.readyRead.connect(self._read)
        self._waiting: deque[tuple[Pending[dict[str, Any]], float, float]] = deque()
        self._buffer = b""
        self.is_alive = False
        self.last_ms: float | None = None
        """How long the last answer took."""
        self.last_status: dict[str, Any] = {}
        self._retry = QTimer(self)
        self._retry.setInterval(RETRY_MS)
        self._retry.timeout.connect(self._connect)
        self._late = QTimer(self)
        self._late.setInterval(LATE_MS)
        self._late.timeout.connect(self._judge_late)
        self._poll = QTimer(self)
        self._poll.timeout.connect(self.ask_status)

    def lead_to(self, socket: Path) -> None:
        """An instance appeared; ``start`` connects to it."""
        self._path = socket

    def start(self, poll_ms: int = 1000) -> None:
        """Connects now and stays connected; asks for the status every ``poll_ms``."""
        if self._path is None:
            return
        self._connect()
        self._retry.start()
        self._late.start()
        self._poll.start(poll_ms)

    def stop(self) -> None:
        """Closes the socket. A hold that is open stays frozen: the guard sees to that."""
        for timer in (self._retry, self._late, self._poll):
            timer.stop()
        self._path = None
        self._socket.abort()

    def poll_every(self, ms: int) -> None:
        """Another pace for the status (faster while something is being killed)."""
        if self._poll.isActive() and self._poll.interval() != ms:
            self._poll.setInterval(ms)

    def call(self, op: str, **fields: Any) -> Pending[dict[str, Any]]:
        """One request. Fails with Unreachable when the guard is silent, with its own words when it refuses."""
        pending: Pending[dict[str, Any]] = Pending()
        if self._socket.state() is not QLocalSocket.LocalSocketState.ConnectedState:
            pending.reject(_silent())
            return pending
        try:
            line = encode({"op": op, **fields})
        except ValueError:
            pending.reject(ConsoleError("The request to the guard is too long.", "Give a shorter reason."))
            return pending
        self._waiting.append((pending, monotonic(), monotonic() + ANSWER_S))
        self._socket.write(line)
        self._socket.flush()
        return pending

    def ask_status(self) -> None:
        """Asks once; the answer comes by ``status_came``."""
        if not any(True for _ in self._waiting):
            self.call("status").then(self._keep)

    def _keep(self, answer: dict[str, Any]) -> None:
        self.last_status = answer
        self.status_came.emit(answer)

    def _connect(self) -> None:
        if self._path is not None and self._socket.state() is QLocalSocket.LocalSocketState.UnconnectedState:
            self._socket.connectToServer(str(self._path))

    def _connected(self) -> None:
        self._buffer = b""
        self.ask_status()

    def _lost(self) -> None:
        waiting, self._waiting = list(self._waiting), deque()
        for pending, _, _ in waiting:
            pending.reject(_silent())
        self._set_alive(False)

    def _judge_late(self) -> None:
        if self._waiting and monotonic() > self._waiting[0][2]:
            self._socket.abort()  # later answers could no longer be matched to their questions
            self._lost()

    def _read(self) -> None:
        self._buffer += bytes(self._socket.readAll().data())
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            self._answer(line)
        if len(self._buffer) > LINE_LIMIT:
            self._socket.abort()
            self._lost()

    def _answer(self, line: bytes) -> None:
        if not self._waiting:
            return
        pending, asked, _ = self._waiting.popleft()
        try:
            answer = decode(line + b"\n")
        except ValueError:
            pending.reject(_silent())
            return
        self.last_ms = (monotonic() - asked) * 1000
        self._set_alive(True)
        if answer.get("ok") is True:
            pending.resolve(answer)
        else:
            pending.reject(ConsoleError(str(answer.get("error", "The guard refused.")), str(answer.get("remedy", ""))))

    def _set_alive(self, alive: bool) -> None:
        if alive != self.is_alive:
            self.is_alive = alive
            self.alive.emit(alive)


def _silent() -> Unreachable:
    return Unreachable("The guard does not answer.", "A press works all the same: it kills from the registry on disk.")
