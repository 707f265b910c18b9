"""The wire beneath the client: one request over operator.sock, and every outcome as a view or a ConsoleError kind."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ValidationError

from console.api import messages as m
from console.domain.errors import (
    Conflict,
    ConsoleError,
    Denied,
    ExitCode,
    Killed,
    NotFound,
    NotRecorded,
    TimedOut,
    TooLarge,
    Unavailable,
    Unreachable,
    UsageProblem,
)
from console.settings.places import Places

V = TypeVar("V", bound=BaseModel)

_BASE = "http://watchfloor"
SILENCE_S = 60.0
"""A stream of events this long without even a heartbeat counts as broken."""
_KINDS: dict[int, type[ConsoleError]] = {
    kind.http_status: kind
    for kind in (UsageProblem, TooLarge, NotFound, Denied, Conflict, Killed, TimedOut, Unreachable, Unavailable, NotRecorded)
}
_KINDS[422] = UsageProblem
_KINDS[405] = NotFound


def unreachable(places: Places, why: str = "") -> Unreachable:
    """The error every verb shows when no supervisor answers."""
    detail = f" ({why})" if why else ""
    return Unreachable(
        f"No supervisor runs for {places.state_dir}{detail}.",
        f"Start one with: watchfloor supervisor --state-dir {shlex.quote(str(places.state_dir))}",
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
        error.exit_code = ExitCode(view.exit_code)
    except ValueError:
        error.exit_code = ExitCode.FAILURE
    return error


class Wire:
    """Sends one request and turns every outcome into a view or a ConsoleError."""

    def __init__(self, places: Places, timeout_s: float) -> None:
        self.places = places
        self._timeout_s = timeout_s
        self._http = self._open(timeout_s)

    def _open(self, timeout_s: float) -> httpx.Client:
        transport = httpx.HTTPTransport(uds=str(self.places.operator_sock))
        timeout = httpx.Timeout(timeout_s, connect=min(2.0, self._timeout_s))
        return httpx.Client(transport=transport, base_url=_BASE, timeout=timeout, trust_env=False)

    def close(self) -> None:
        """Closes the connections; the client cannot be used afterwards."""
        self._http.close()

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
        headers = {"content-type": "application/json"} if content is not None else {}
        wanted = {k: v for k, v in (query or {}).items() if v is not None}
        try:
            answer = self._http.request(
                method, path, content=content, params=wanted, headers=headers, timeout=timeout_s or httpx.USE_CLIENT_DEFAULT
            )
        except httpx.TimeoutException as error:
            if isinstance(error, httpx.ConnectTimeout):
                raise unreachable(self.places, "its socket does not accept") from error
            raise TimedOut(
                "The supervisor did not answer in time; whether it acted is not known.", "watchfloor status shows its state."
            ) from error
        except (httpx.ConnectError, httpx.UnsupportedProtocol) as error:
            raise unreachable(self.places) from error
        except httpx.HTTPError as error:
            raise Unreachable(
                "The connection to the supervisor broke before it answered; whether it acted is not known.",
                "watchfloor status shows its state.",
            ) from error
        if not answer.is_success:
            raise error_from(answer.status_code, answer.content)
        try:
            return view.model_validate_json(answer.content)
        except ValidationError as error:
            raise ConsoleError(
                f"The supervisor's answer to {path} cannot be read.", "Run console and supervisor of the same version."
            ) from error

    def stream(self, path: str, headers: dict[str, str]) -> Iterator[str]:
        """Lines of an endless answer; ends when the supervisor closes it. Raises Unreachable."""
        with self._open(SILENCE_S) as http:
            try:
                with http.stream("GET", path, headers=headers) as answer:
                    if not answer.is_success:
                        raise error_from(answer.status_code, answer.read())
                    yield from answer.iter_lines()
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                raise unreachable(self.places) from error
            except httpx.HTTPError as error:
                raise Unreachable("The stream of events broke off.", "It can be opened again.") from error


def segment(text: str) -> str:
    """A hostile id as one path segment: never empty, never ``..``, at most 200 characters."""
    if not text or len(text) > 200 or "\0" in text or text in (".", ".."):
        raise NotFound(f"Nothing has the id {text[:80]!r}.", "watchfloor fleet lists the ids.")
    try:
        return quote(text, safe="")
    except UnicodeEncodeError as error:
        raise NotFound("That id is not valid UTF-8, so nothing has it.", "watchfloor fleet lists the ids.") from error
