"""Bodies in, answers out: the server's door, where every error becomes words, a status and an exit code."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from console.api import messages as m
from console.api.endpoints import ENDPOINTS, Endpoint
from console.domain.errors import ConsoleError, NotFound, UsageProblem
from console.domain.message import Malformed, Message, as_json

log = logging.getLogger(__name__)
B = TypeVar("B", bound=Message)
Handler = Callable[[Request], Awaitable[Response]]
"""What a route is answered by."""
Handlers = dict[Endpoint[Any, Any], Handler]
"""What answers each endpoint of a service."""

SHOWN_ONCE = b"x-watchfloor-shown-once"
"""Header of the few answers that are asked for a secret: a new key, a new token."""


def routed(handlers: Handlers) -> list[Route]:
    """Routes of the endpoints, in the order in which they are matched."""
    return [Route(row.path, handlers[row], methods=[row.method]) for row in ENDPOINTS if row in handlers]


async def body_of(request: Request, kind: type[B]) -> B:
    """The body as ``kind``; UsageProblem that names the field."""
    raw = await request.body()
    try:
        return kind.read_json(raw or b"{}")
    except Malformed as error:
        raise UsageProblem(f"{error.where or 'the body'}: {error.words}.", "Send JSON as the API's messages describe it.") from error


def number_in(request: Request, name: str, default: int, most: int) -> int:
    """A whole number from the query, bounded; UsageProblem otherwise."""
    text = request.query_params.get(name, str(default))
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise UsageProblem(f"{name} must be a whole number, not {text[:40]!r}.", "")
    return min(int(text), most)


def answer(view: Message) -> Response:
    """200 with the view."""
    try:
        return Response(view.to_json(), media_type="application/json")
    except ValueError:  # a lone surrogate in hostile text
        return answer_data(view.as_data())


def answer_data(data: Any) -> Response:
    """200 with plain data."""
    return Response(as_json(data), media_type="application/json")


def shown_once(response: Response) -> Response:
    """Send this answer as it is: the one place where its secret is shown, or an export that must fit its hashes."""
    response.headers[SHOWN_ONCE.decode()] = "1"
    response.headers["cache-control"] = "no-store"
    return response


def refusal(error: ConsoleError) -> Response:
    """The error's words with its status."""
    view = m.ErrorView(error=error.what, remedy=error.remedy, exit_code=int(error.exit_code))
    return Response(view.to_json(), status_code=error.http_status, media_type="application/json")


def refusals() -> Mapping[Any, Any]:
    """Starlette's exception handlers."""

    async def known(_request: Request, error: Exception) -> Response:
        assert isinstance(error, ConsoleError)
        return refusal(error)

    async def http(_request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if error.status_code in (404, 405):
            return refusal(NotFound("There is no such route.", "An id holds no slash; watchfloor --help lists the verbs."))
        return refusal(UsageProblem(str(error.detail)))

    async def unknown(_request: Request, error: Exception) -> Response:
        log.error("a request failed", exc_info=error)
        return refusal(ConsoleError("Something went wrong inside the supervisor.", "See its log file: supervisor.log."))

    return {ConsoleError: known, HTTPException: http, Exception: unknown}
