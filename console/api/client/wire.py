"""The wire beneath the client: one request over operator.sock, and every outcome as a view or a ConsoleError kind."""

from __future__ import annotations

import http.client
import json
import os
import shlex
import socket
import struct
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import quote, urlencode

import console
from console.api.client.refusals import error_from
from console.domain.errors import ConsoleError, NotFound, TimedOut, Unreachable
from console.settings.places import Places

if TYPE_CHECKING:
    from console.api.endpoints import Endpoint
    from console.domain.message import Message

V = TypeVar("V", bound="Message")

CONNECT_S = 2.0
CONNECT_PAUSE_S = 0.01
NOT_STARTED = "Ask root to run: systemctl status watchfloor. It says why. watchfloor panic works without it."
BUSY = "Try again in a moment; watchfloor panic does not need it."
CHANGE_S = 60.0
"""Longest wait in seconds for a change: Envoy validates before it applies, agents may be halted."""
ANSWER_LIMIT = 64 * 1024 * 1024
"""Bytes of one answer or one event; a fleet of 10,000 agents is about 8 MB."""
STARTS_S = 60.0
"""Longest wait in seconds for the answer of a service that systemd is starting because we connected."""
SILENCE_S = 60.0
"""A stream of events this long without even a heartbeat counts as broken."""


def unreachable(places: Places, why: str = "") -> Unreachable:
    """The error every verb shows when no supervisor answers."""
    detail = f" ({why})" if why else ""
    if places.by_role:
        return Unreachable(
            f"The host's supervisor does not run{detail}.", "Ask root to run: systemctl start watchfloor. Panic works without it."
        )
    return Unreachable(
        f"No supervisor runs for {places.state_dir}{detail}.",
        f"Start one with: watchfloor supervisor --state-dir {shlex.quote(str(places.state_dir))}. Agents that go on without one keep to no "
        "limit of time, cost or calls; watchfloor panic stops them without it.",
    )


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket; a connection that could not be made leaves no descriptor behind."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("watchfloor", timeout=timeout_s)
        self._path = path
        self.is_starting = False
        """Whether it was systemd that listened: it starts the service for us."""

    def connect(self) -> None:
        """Connect within the time-out. TimeoutError when the backlog stays full for so long: the server is there, but busy."""
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        until = time.monotonic() + min(CONNECT_S, self.timeout or CONNECT_S)
        try:
            made.settimeout(min(CONNECT_S, self.timeout or CONNECT_S))
            while True:
                try:
                    made.connect(self._path)
                    break
                except BlockingIOError as error:  # unix(7): EAGAIN, the backlog is full
                    if time.monotonic() > until:
                        raise TimeoutError from error
                    time.sleep(CONNECT_PAUSE_S)
            self.is_starting = _is_systemds(made)
            made.settimeout(max(STARTS_S, self.timeout or 0.0) if self.is_starting else self.timeout)
        except OSError:
            made.close()
            raise
        self.sock = made

    def ask(self, method: str, target: str, content: bytes | None, headers: dict[str, str]) -> http.client.HTTPResponse:
        """The answer. One that came before the request was sent (a refusal at the door) is an answer as well."""
        with suppress(BrokenPipeError):
            self.request(method, target, content, headers)
        return self.getresponse()


def _is_systemds(connection: socket.socket) -> bool:
    """Whether systemd (sd_booted(3)) alone keeps this socket open: no service listened yet, or the one that did has ended."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))  # of who listened last (unix(7))
    pid = int(struct.unpack("3i", raw)[0])
    if pid < 1 or not Path("/run/systemd/system").is_dir():
        return False
    with suppress(PermissionError):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
    return pid == 1


class Wire:
    """Sends one request and turns every outcome into a view or a ConsoleError. One connection per request: threads share nothing."""

    def __init__(self, places: Places, timeout_s: float) -> None:
        self.places = places
        self._timeout_s = timeout_s

    def ask(
        self,
        endpoint: Endpoint[Any, V],
        *ids: str | int,
        body: Message | None = None,
        query: Mapping[str, Any] | None = None,
        wait_s: float | None = None,
    ) -> V:
        """Ask an endpoint; ``ids`` fill its path. Raises Unreachable, TimedOut, or the kind the supervisor's answer names."""
        content = None if body is None else body.to_json().encode()
        path = endpoint.at(segment, *ids)
        received, _ = self._sent(endpoint.method, path, content, query, wait_s or endpoint.wait_s)
        return _read(endpoint.answer, path, received)

    def look(self, view: Callable[[], type[V]], method: str, path: str, content: dict[str, Any] | None = None) -> V:
        """As `ask`, for verbs that must not wait for the messages to load: the answer's fields as they came, where its supervisor is of
        this version. ``view`` imports the message, which is taken for an answer of any other version.
        """
        received, server = self._sent(method, path, None if content is None else json.dumps(content).encode())
        if server != f"watchfloor/{console.__version__}":
            return _read(view(), path, received)
        try:
            return cast("V", json.loads(received, object_hook=Answer))
        except ValueError as error:
            raise _unreadable(path) from error

    def _sent(
        self, method: str, path: str, content: bytes | None, query: Mapping[str, Any] | None = None, timeout_s: float | None = None
    ) -> tuple[bytes, str]:
        """The body of the answer, and what its supervisor calls itself."""
        wanted = {k: v for k, v in (query or {}).items() if v is not None}
        target = f"{path}?{urlencode(wanted)}" if wanted else path
        with self._opened(timeout_s or self._timeout_s) as connection:
            try:
                answer = connection.ask(method, target, content, {"content-type": "application/json"} if content is not None else {})
                received = answer.read(ANSWER_LIMIT)
            except TimeoutError as error:
                raise TimedOut(
                    "The supervisor did not answer in time; whether it acted is not known.", "watchfloor status shows its state."
                ) from error
            except (OSError, http.client.HTTPException) as error:
                if connection.is_starting:
                    raise Unreachable("The service watchfloor did not start.", NOT_STARTED) from error
                raise Unreachable(
                    "The connection to the supervisor broke before it answered; whether it acted is not known.",
                    "watchfloor status shows its state.",
                ) from error
        if not 200 <= answer.status < 300:
            raise error_from(answer.status, received)
        return received, answer.headers.get("server", "")

    def stream(self, path: str, headers: dict[str, str]) -> Iterator[str]:
        """Lines of an endless answer; ends when the supervisor closes it. Raises Unreachable when it breaks or falls silent."""
        with self._opened(SILENCE_S) as connection:
            try:
                answer = connection.ask("GET", path, None, headers)
                if answer.status != 200:
                    raise error_from(answer.status, answer.read(ANSWER_LIMIT))
                while line := answer.readline(ANSWER_LIMIT):
                    yield line.decode(errors="replace").rstrip("\r\n")
            except (OSError, http.client.HTTPException) as error:
                raise Unreachable("The stream of events broke off.", "It can be opened again.") from error

    @contextmanager
    def _opened(self, timeout_s: float) -> Iterator[_UnixConnection]:
        connection = _UnixConnection(str(self.places.operator_sock), timeout_s)
        try:
            connection.connect()
        except TimeoutError as error:  # its backlog is full: it lives but does not accept
            raise TimedOut("The supervisor is busy: it accepts no connection. Nothing was asked of it.", BUSY) from error
        except OSError as error:
            why = error.strerror if isinstance(error, PermissionError) else ""
            raise unreachable(self.places, why or "") from error
        try:
            yield connection
        finally:
            connection.close()


class Answer(dict[str, Any]):
    """A JSON object whose fields are attributes too, as those of a message."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def as_data(self, *, exclude: Collection[str] = ()) -> dict[str, Any]:
        """The fields, as a message gives them."""
        return {name: value for name, value in self.items() if name not in exclude}


def _read(view: type[V], path: str, received: bytes) -> V:
    try:
        return view.read_json(received)
    except ValueError as error:
        raise _unreadable(path) from error


def _unreadable(path: str) -> ConsoleError:
    return ConsoleError(f"The supervisor's answer to {path} cannot be read.", "Run console and supervisor of the same version.")


def segment(text: str) -> str:
    """A hostile id as one path segment: never empty, never ``..``, at most 200 characters."""
    if not text or len(text) > 200 or "\0" in text or text in (".", ".."):
        raise NotFound(f"Nothing has the id {text[:80]!r}.", "watchfloor fleet lists the ids.")
    try:
        return quote(text, safe="")
    except UnicodeEncodeError as error:
        raise NotFound("That id is not valid UTF-8, so nothing has it.", "watchfloor fleet lists the ids.") from error
