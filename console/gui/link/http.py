"""HTTP over the supervisor's unix socket with Qt's own network manager: no thread, no second event loop."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from pydantic import BaseModel, ValidationError
from PySide6.QtCore import QObject, QUrl, Signal
from PySide6.QtNetwork import QNetworkAccessManager, QNetworkReply, QNetworkRequest

from console.api.messages import ErrorView
from console.domain import errors
from console.domain.errors import ConsoleError
from console.gui.link.pending import Pending

V = TypeVar("V", bound=BaseModel)
TIMEOUT_S = 15.0
_KINDS: Mapping[int, type[ConsoleError]] = {
    kind.http_status: kind
    for kind in (
        errors.UsageProblem,
        errors.TooLarge,
        errors.NotFound,
        errors.Denied,
        errors.Conflict,
        errors.Killed,
        errors.TimedOut,
        errors.Unreachable,
        errors.Unavailable,
        errors.NotRecorded,
        errors.Unconfirmed,
    )
} | {422: errors.UsageProblem, 405: errors.NotFound}
_BROKEN = (
    QNetworkReply.NetworkError.OperationCanceledError,
    QNetworkReply.NetworkError.TimeoutError,
    QNetworkReply.NetworkError.RemoteHostClosedError,
)
"""An answer that stopped half-way is none, whatever status it began with."""
_START = "Start one: watchfloor supervisor"


class Link(QObject):
    """Requests to one supervisor. ``heard`` is emitted with every answer, ``silent`` with every request nobody answered."""

    heard = Signal()
    silent = Signal(str)

    def __init__(self, socket: Path | None, parent: QObject | None = None) -> None:
        """``socket`` None: there is no instance yet; every request fails with what to do."""
        super().__init__(parent)
        self._socket = socket
        self.manager = QNetworkAccessManager(self)
        self._open: set[QNetworkReply] = set()

    @property
    def in_flight(self) -> int:
        """Answers still on their way."""
        return len(self._open)

    def close(self) -> None:
        """Ends every request; what they asked for is answered with an error."""
        self._socket = None
        for reply in list(self._open):
            reply.abort()

    def request_for(self, path: str) -> QNetworkRequest:
        """A request to ``path`` over the socket."""
        request = QNetworkRequest(QUrl(f"unix+http://localhost{path}"))
        request.setAttribute(QNetworkRequest.Attribute.FullLocalServerNameAttribute, str(self._socket))
        request.setAttribute(QNetworkRequest.Attribute.Http2AllowedAttribute, False)
        request.setRawHeader(b"Accept", b"application/json")
        return request

    def get(self, path: str, view: type[V], **query: Any) -> Pending[V]:
        """GET; the answer as ``view``."""
        return self._send("GET", path, query, None, view)

    def send(
        self, verb: str, path: str, view: type[V], body: BaseModel | None = None, *, timeout_s: float = TIMEOUT_S, **query: Any
    ) -> Pending[V]:
        """POST, PUT or DELETE; the answer as ``view``."""
        return self._send(verb, path, query, body, view, timeout_s)

    def lead_to(self, socket: Path) -> None:
        """An instance appeared: requests go there from now on."""
        self._socket = socket

    @property
    def exists(self) -> bool:
        """Whether there is a socket to talk to."""
        return self._socket is not None

    def _send(
        self, verb: str, path: str, query: dict[str, Any], body: BaseModel | None, view: type[V], timeout_s: float = TIMEOUT_S
    ) -> Pending[V]:
        pending: Pending[V] = Pending()
        if self._socket is None:
            pending.reject(errors.Unreachable("No supervisor runs here.", _START))
            return pending
        given = {k: v for k, v in query.items() if v not in (None, "")}
        request = self.request_for(path + (f"?{urlencode(given)}" if given else ""))
        request.setTransferTimeout(int(timeout_s * 1000))
        data = b""
        if body is not None:
            request.setHeader(QNetworkRequest.KnownHeaders.ContentTypeHeader, "application/json")
            data = body.model_dump_json().encode()
        reply = self.manager.sendCustomRequest(request, verb.encode(), data)
        self._open.add(reply)
        reply.finished.connect(lambda: self._finish(reply, view, pending))
        return pending

    def _finish(self, reply: QNetworkReply, view: type[V], pending: Pending[V]) -> None:
        self._open.discard(reply)
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
            pending.reject(_refusal(int(status), data))
            return
        try:
            value = view.model_validate_json(data)
        except ValidationError:
            pending.reject(
                ConsoleError("The supervisor's answer could not be read.", "Console and supervisor may be of different versions.")
            )
            return
        pending.resolve(value)


def _unanswered(reply: QNetworkReply) -> ConsoleError:
    if reply.error() in (QNetworkReply.NetworkError.OperationCanceledError, QNetworkReply.NetworkError.TimeoutError):
        return errors.TimedOut("The supervisor did not answer in time; the outcome is unknown.", "Look at the fleet before you try again.")
    return errors.Unreachable("The supervisor does not answer.", _START)


def _refusal(status: int, data: bytes) -> ConsoleError:
    try:
        view = ErrorView.model_validate(json.loads(data))
    except (ValueError, ValidationError):
        view = ErrorView(error=f"The supervisor refused (HTTP {status}).")
    return _KINDS.get(status, ConsoleError)(view.error, view.remedy)


def segment(text: str) -> str:
    """A hostile id as one path segment that leads nowhere else."""
    return quote(text[:200].encode("utf-8", "replace"), safe="") or "-"
