"""HTTP over the supervisor's unix socket with Qt's own network manager: no thread, no second event loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from PySide6.QtCore import QObject, QUrl, Signal
from PySide6.QtNetwork import QNetworkAccessManager, QNetworkReply, QNetworkRequest

from console.api.client.refusals import error_from
from console.api.endpoints import Endpoint
from console.domain import errors
from console.domain.errors import ConsoleError
from console.domain.message import Malformed, Message
from console.gui.link.pending import Pending
from console.gui.timers import every

V = TypeVar("V", bound=Message)
TIMEOUT_S = 15.0
_BROKEN = (
    QNetworkReply.NetworkError.OperationCanceledError,
    QNetworkReply.NetworkError.TimeoutError,
    QNetworkReply.NetworkError.RemoteHostClosedError,
)
"""An answer that stopped half-way is none, whatever status it began with."""
_LOST = (
    QNetworkReply.NetworkError.ConnectionRefusedError,
    QNetworkReply.NetworkError.RemoteHostClosedError,
    QNetworkReply.NetworkError.HostNotFoundError,
    QNetworkReply.NetworkError.TimeoutError,
    QNetworkReply.NetworkError.OperationCanceledError,
    QNetworkReply.NetworkError.UnknownNetworkError,
    QNetworkReply.NetworkError.TemporaryNetworkFailureError,
    QNetworkReply.NetworkError.NetworkSessionFailedError,
    QNetworkReply.NetworkError.UnknownServerError,
)
"""The connection itself failed, or nothing came over it in time."""
_START = "Start one: watchfloor supervisor"


# Qt opens six connections; the stream uses one. It queues the rest itself, and after its connections failed together (a supervisor
# that is gone) it never looks at that queue again (Qt 6.11). So Qt never gets a queue, and a manager that failed is not used again.
AT_ONCE = 5
"""Requests that Qt handles at the same time. Further ones wait in our own queue."""


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """A request that Qt has not got yet."""

    start: Callable[[], None]
    refuse: Callable[[ConsoleError], None]
    until: float
    """Monotonic seconds."""


class Link(QObject):
    """Requests to one supervisor. ``heard`` is emitted with every answer, ``silent`` with every request that got no answer."""

    heard = Signal()
    silent = Signal(str)

    def __init__(self, socket: Path | None, parent: QObject | None = None, *, named: Callable[[str], str] = str) -> None:
        """``socket`` None: there is no instance yet; every request fails with what to do. ``named`` puts names into a refusal."""
        super().__init__(parent)
        self._named = named
        self._socket = socket
        self.manager = QNetworkAccessManager(self)
        self._spent: list[QNetworkAccessManager] = []
        """Managers that are asked nothing more, until their last answers have come."""
        self._open: set[QNetworkReply] = set()
        self._waiting: deque[_Asked] = deque()
        self._expiry = every(self, 500, self._expire)

    @property
    def in_flight(self) -> int:
        """Answers still on their way."""
        return len(self._open) + len(self._waiting)

    def close(self) -> None:
        """Ends every request; what they asked for is answered with an error."""
        self._socket = None
        self._drop(lambda _asked: True)
        for reply in list(self._open):
            reply.abort()

    def request_for(self, path: str) -> QNetworkRequest:
        """A request to ``path`` over the socket."""
        request = QNetworkRequest(QUrl(f"unix+http://localhost{path}"))
        request.setAttribute(QNetworkRequest.Attribute.FullLocalServerNameAttribute, str(self._socket))
        request.setAttribute(QNetworkRequest.Attribute.Http2AllowedAttribute, False)
        request.setRawHeader(b"Accept", b"application/json")
        return request

    def ask(
        self, endpoint: Endpoint[Any, V], *ids: str | int, body: Message | None = None, wait_s: float | None = None, **query: Any
    ) -> Pending[V]:
        """Ask an endpoint; ``ids`` fill its path in their order. ``wait_s`` replaces the endpoint's own."""
        timeout_s = wait_s or endpoint.wait_s or TIMEOUT_S
        pending: Pending[V] = Pending()
        if self._socket is None:
            pending.reject(errors.Unreachable("No supervisor runs here.", _START))
            return pending
        given = {k: v for k, v in query.items() if v not in (None, "")}
        request = self.request_for(endpoint.at(segment, *ids) + (f"?{urlencode(given)}" if given else ""))
        request.setTransferTimeout(int(timeout_s * 1000))
        data = b""
        if body is not None:
            request.setHeader(QNetworkRequest.KnownHeaders.ContentTypeHeader, "application/json")
            data = body.to_json().encode()

        def start() -> None:
            reply = self.manager.sendCustomRequest(request, endpoint.method.encode(), data)
            self._open.add(reply)
            reply.finished.connect(lambda: self._finish(reply, endpoint.answer, pending))

        asked = _Asked(start, pending.reject, monotonic() + timeout_s)
        if endpoint.method == "GET":
            self._waiting.append(asked)
        else:
            self._waiting.appendleft(asked)  # what a person does goes before what is only read
        self._next()
        return pending

    def lead_to(self, socket: Path) -> None:
        """An instance appeared: requests go there from now on."""
        self._socket = socket

    @property
    def exists(self) -> bool:
        """Whether there is a socket to talk to."""
        return self._socket is not None

    def failed(self, reply: QNetworkReply) -> None:
        """A connection failed: whatever follows is asked of a new manager."""
        if reply.manager() is self.manager:
            self._spent.append(self.manager)
            self.manager = QNetworkAccessManager(self)
        for manager in [one for one in self._spent if not any(left.manager() is one for left in self._open)]:
            if not any(left.isRunning() for left in manager.findChildren(QNetworkReply)):
                self._spent.remove(manager)
                manager.deleteLater()

    def _next(self) -> None:
        while self._waiting and len(self._open) < AT_ONCE:
            self._waiting.popleft().start()
        if bool(self._waiting) != self._expiry.isActive():
            self._expiry.start() if self._waiting else self._expiry.stop()

    def _expire(self) -> None:
        """What waited for as long as its answer may take is not asked any more."""
        now = monotonic()
        self._drop(lambda asked: asked.until < now)
        self._next()

    def _drop(self, which: Callable[[_Asked], bool]) -> None:
        gone = [asked for asked in self._waiting if which(asked)]
        self._waiting = deque(asked for asked in self._waiting if asked not in gone)
        for asked in gone:
            asked.refuse(errors.TimedOut("The supervisor did not answer in time; this was not sent.", "Try again."))

    def _finish(self, reply: QNetworkReply, view: type[V], pending: Pending[V]) -> None:
        self._open.discard(reply)
        # What was connected holds this link, and Qt lets go of it in the middle of deleting the reply: were it the last that does, the
        # link's managers, and with them this reply, would be deleted a second time.
        reply.finished.disconnect()
        if reply.error() in _LOST:
            self.failed(reply)
        self._next()
        reply.deleteLater()
        status = reply.attribute(QNetworkRequest.Attribute.HttpStatusCodeAttribute)
        broken = reply.error() in _BROKEN
        data = bytes(reply.readAll().data()) if reply.isOpen() else b""
        if status is None or broken:
            self.silent.emit(reply.errorString())
            pending.reject(_unanswered(reply))
            return
        self.heard.emit()
        if int(status) >= 400:
            error = error_from(int(status), data)
            error.what, error.remedy = self._named(error.what), self._named(error.remedy)
            pending.reject(error)
            return
        try:
            value = view.read_json(data)
        except Malformed:
            pending.reject(
                ConsoleError("The supervisor's answer could not be read.", "Console and supervisor may be of different versions.")
            )
            return
        pending.resolve(value)


def _unanswered(reply: QNetworkReply) -> ConsoleError:
    if reply.error() in (QNetworkReply.NetworkError.OperationCanceledError, QNetworkReply.NetworkError.TimeoutError):
        return errors.TimedOut("The supervisor did not answer in time; the outcome is unknown.", "Look at the fleet before you try again.")
    return errors.Unreachable("The supervisor does not answer.", _START)


def segment(text: str) -> str:
    """A hostile id as one path segment that leads nowhere else."""
    return quote(text[:200].encode("utf-8", "replace"), safe="") or "-"
