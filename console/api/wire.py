"""The wire beneath the client: one request over operator.sock, and every outcome as a view or a ConsoleError kind."""

from __future__ import annotations

import http.client
import shlex
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from pydantic import BaseModel, ValidationError

from console.api import messages as m
from console.domain.errors import (
    AlreadyEnded,
    Conflict,
    ConsoleError,
    Denied,
    ExitCode,
    Killed,
    NotFound,
    NotRecorded,
    TimedOut,
    TokenRefused,
    TooLarge,
    TooMany,
    Unavailable,
    Unconfirmed,
    Unreachable,
    UsageProblem,
)
from console.settings.places import Places

V = TypeVar("V", bound=BaseModel)

CONNECT_S = 2.0
CONNECT_PAUSE_S = 0.01
BUSY = "Try again in a moment; watchfloor panic does not need it."
CHANGE_S = 60.0
"""Longest wait in seconds for a change: Envoy validates before it applies, agents may be halted."""
ANSWER_LIMIT = 64 * 1024 * 1024
"""Bytes of one answer or one event; a fleet of 10,000 agents is about 8 MB."""
SILENCE_S = 60.0
"""A stream of events this long without even a heartbeat counts as broken."""
_KINDS: dict[int, type[ConsoleError]] = {
    kind.http_status: kind
    for kind in (
        AlreadyEnded,
        UsageProblem,
        TooLarge,
        NotFound,
        Denied,
        TokenRefused,
        Conflict,
        Killed,
        TimedOut,
        Unreachable,
        Unavailable,
        NotRecorded,
        TooMany,
        Unconfirmed,
    )
}
_KINDS[422] = UsageProblem
_KINDS[405] = NotFound


def unreachable(places: Places, why: str = "") -> Unreachable:
    """The error every verb shows when no supervisor answers."""
    detail = f" ({why})" if why else ""
    return Unreachable(
        f"No supervisor runs for {places.state_dir}{detail}.",
        f"Start one with: watchfloor supervisor --state-dir {shlex.quote(str(places.state_dir))}. Agents that go on without one keep to no "
        "limit of time, cost or calls; watchfloor panic stops them without it.",
    )


def error_from(status: int, body: bytes) -> ConsoleError:
    """The ConsoleError kind of an answer that is not 2xx; words and exit code are the supervisor's own when it sent them."""
    kind = _KINDS.get(status, ConsoleError)
    try:
        view = m.ErrorView.model_validate_json(body)
    except ValidationError:
        return kind(f"The supervisor answered {status} without saying why.", "watchfloor status shows its state.")
    error = kind(view.error, view.remedy)
    error.http_status = status
    try:
        # A refusal is never a success, but for one: there is nothing left to kill.
        error.exit_code = ExitCode.DONE if kind is AlreadyEnded else ExitCode(view.exit_code) or ExitCode.FAILURE
    except ValueError:
        error.exit_code = ExitCode.FAILURE
    return error


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket; a connection that could not be made leaves no descriptor behind."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("watchfloor", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        """Connects within the time-out. TimeoutError when its backlog stays full for so long: somebody lives there, and is busy."""
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
            made.settimeout(self.timeout)
        except OSError:
            made.close()
            raise
        self.sock = made

    def ask(self, method: str, target: str, content: bytes | None, headers: dict[str, str]) -> http.client.HTTPResponse:
        """The answer. One that came before the request was sent (a refusal at the door) is an answer as well."""
        with suppress(BrokenPipeError):
            self.request(method, target, content, headers)
        return self.getresponse()


class Wire:
    """Sends one request and turns every outcome into a view or a ConsoleError. One connection per request: threads share nothing."""

    def __init__(self, places: Places, timeout_s: float) -> None:
        self.places = places
        self._timeout_s = timeout_s

    def ask(
        self,
        view: type[V],
        method: str,
        path: str,
        *,
        body: BaseModel | None = None,
        query: Mapping[str, Any] | None = None,
        timeout_s: float | None = None,
    ) -> V:
        """Raises Unreachable, TimedOut, or the kind the supervisor's answer names."""
        content = None if body is None else body.model_dump_json().encode()
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
                raise Unreachable(
                    "The connection to the supervisor broke before it answered; whether it acted is not known.",
                    "watchfloor status shows its state.",
                ) from error
        if not 200 <= answer.status < 300:
            raise error_from(answer.status, received)
        try:
            return view.model_validate_json(received)
        except ValidationError as error:
            raise ConsoleError(
                f"The supervisor's answer to {path} cannot be read.", "Run console and supervisor of the same version."
            ) from error

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


def segment(text: str) -> str:
    """A hostile id as one path segment: never empty, never ``..``, at most 200 characters."""
    if not text or len(text) > 200 or "\0" in text or text in (".", ".."):
        raise NotFound(f"Nothing has the id {text[:80]!r}.", "watchfloor fleet lists the ids.")
    try:
        return quote(text, safe="")
    except UnicodeEncodeError as error:
        raise NotFound("That id is not valid UTF-8, so nothing has it.", "watchfloor fleet lists the ids.") from error
