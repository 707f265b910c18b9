"""The guard's socket, opened in advance: one JSON line each way. A press must not wait for a supervisor."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from PySide6.QtCore import QObject, QSocketNotifier, QTimer, Signal

from console.domain.errors import ConsoleError, Unreachable
from console.domain.guard import ANSWER_S, LINE_LIMIT, decode, encode

RETRY_MS = 500
REST_RETRY_MS = 5_000
LATE_MS = 50
"""How often it is looked whether an answer is late."""

Answered = Callable[[dict[str, Any]], object]
Failed = Callable[[ConsoleError], object]


def _ignore(_value: object) -> None:
    """For a caller that needs no answer."""


@dataclass(frozen=True, slots=True)
class _Question:
    """A request that waits for its answer."""

    answered: Answered
    failed: Failed
    asked: float
    late: float


class GuardLink(QObject):
    """Answers come in the order of the requests. ``alive`` follows whether the guard answers within 300 ms, a press included.

    A slower guard counts as dead, and is pressed past. Two presses do no harm; one that nothing carries out does. A plain socket and a
    notifier, not QLocalSocket: the panic window then needs no QtNetwork (3 MB and a tenth of its start).
    """

    alive = Signal(bool)
    status_came = Signal(dict)

    def __init__(self, path: Path | None, parent: QObject | None = None, patience_s: float | None = None) -> None:
        """``patience_s``: another time for answers, of operations that take longer than a press may."""
        super().__init__(parent)
        self.path, self._patience_s = path, patience_s
        self._socket: socket.socket | None = None
        self._notifier: QSocketNotifier | None = None
        self._waiting: deque[_Question] = deque()
        self._buffer = b""
        self.is_alive = False
        self.last_ms: float | None = None
        """How long the last answer took."""
        self._retry = self._timer(RETRY_MS, self._connect)
        self._late = self._timer(LATE_MS, self._judge_late)
        self._poll = self._timer(1000, self.ask_status)

    def _timer(self, ms: int, then: Callable[[], object]) -> QTimer:
        timer = QTimer(self)
        timer.setInterval(ms)
        timer.timeout.connect(then)
        return timer

    def lead_to(self, path: Path) -> None:
        """An instance appeared; ``start`` connects to it."""
        self.path = path

    def start(self, poll_ms: int = 1000) -> None:
        """Connects now and stays connected; asks for the status every ``poll_ms``."""
        if self.path is None:
            return
        self._connect()
        self._retry.start(RETRY_MS)
        self._late.start()
        self._poll.start(poll_ms)
        self.ask_status()

    def rest(self) -> None:
        """Stays connected and asks nothing: what a hidden window costs."""
        self._poll.stop()
        self._late.stop()
        self._retry.setInterval(REST_RETRY_MS)

    def stop(self) -> None:
        """Closes the socket. A hold that is open stays frozen: the guard sees to that."""
        for timer in (self._retry, self._late, self._poll):
            timer.stop()
        self.path = None
        self._close()

    def poll_every(self, ms: int) -> None:
        """Another pace for the status (faster while something is being killed)."""
        if self._poll.isActive() and self._poll.interval() != ms:
            self._poll.setInterval(ms)

    def call(self, op: str, answered: Answered = _ignore, failed: Failed = _ignore, **fields: Any) -> None:
        """One request. ``failed`` gets Unreachable when the guard is silent, and the guard's own words when it refuses."""
        if self._socket is None:
            failed(_silent())
            return
        try:
            line = encode({"op": op, **fields})
        except ValueError:
            failed(ConsoleError("The request to the guard is too long.", "Give a shorter reason."))
            return
        now = monotonic()
        self._waiting.append(_Question(answered, failed, now, now + (self._patience_s or ANSWER_S)))
        try:
            is_sent = self._socket.send(line) == len(line)
        except OSError:
            is_sent = False
        if not is_sent:  # closed, or a guard that reads nothing: what is half sent could not be answered
            self._lost()

    def ask_status(self) -> None:
        """Asks once; the answer comes by ``status_came``."""
        # One question at a time: a guard that is slow for a moment must not find a row of status requests afterwards.
        if not self._waiting:
            self.call("status", self.status_came.emit)

    def _connect(self) -> None:
        if self.path is None or self._socket is not None:
            return
        # Not blocking: a guard that is stopped leaves its backlog full, and the window's thread would stand in connect.
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            made.connect(str(self.path))  # a unix socket is connected at once, or refused (connect(2))
        except OSError:
            made.close()
            return
        self._socket, self._buffer = made, b""
        self._notifier = QSocketNotifier(made.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._read)
        self.ask_status()

    def _close(self) -> None:
        if self._notifier is not None:
            self._notifier.setEnabled(False)
            self._notifier.deleteLater()
            self._notifier = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _lost(self) -> None:
        self._close()
        waiting, self._waiting = list(self._waiting), deque()
        for question in waiting:
            question.failed(_silent())
        self._set_alive(False)

    def _judge_late(self) -> None:
        if not self._waiting or monotonic() <= self._waiting[0].late:
            return
        self._read()  # this thread may have been the one that was late: the answer is there then
        if self._waiting and monotonic() > self._waiting[0].late:
            self._lost()  # later answers could no longer be matched to their questions

    def _read(self) -> None:
        while self._socket is not None:
            try:
                data = self._socket.recv(16 * LINE_LIMIT)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._lost()
                return
            self._take(data)

    def _take(self, data: bytes) -> None:
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        if len(self._buffer) > LINE_LIMIT:
            self._lost()
            return
        for line in lines:
            self._answer(line)

    def _answer(self, line: bytes) -> None:
        if not self._waiting:
            return
        question = self._waiting.popleft()
        try:
            answer = decode(line + b"\n")
        except ValueError:
            question.failed(_silent())
            return
        self.last_ms = (monotonic() - question.asked) * 1000
        self._set_alive(True)
        if answer.get("ok") is True:
            question.answered(answer)
        else:
            question.failed(ConsoleError(str(answer.get("error", "The guard refused.")), str(answer.get("remedy", ""))))

    def _set_alive(self, alive: bool) -> None:
        if alive != self.is_alive:
            self.is_alive = alive
            self.alive.emit(alive)


def _silent() -> Unreachable:
    return Unreachable("The guard does not answer.", "Panic still works: it kills from the registry on disk.")


def ask_beside(link: GuardLink, patience_s: float, op: str, answered: Answered, failed: Failed, **fields: Any) -> None:
    """One request over a connection of its own: an operation that takes seconds holds up no press."""
    own = GuardLink(link.path, link, patience_s)

    def over(then: Callable[[Any], object], given: Any) -> None:
        own.stop()
        own.deleteLater()
        then(given)

    own.start(REST_RETRY_MS)
    own.call(op, lambda answer: over(answered, answer), lambda error: over(failed, error), **fields)
