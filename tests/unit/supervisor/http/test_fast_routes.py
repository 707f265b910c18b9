"""The short way to a route answers as the long one does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from console.domain.errors import Killed
from console.services.routes.responses import refusals
from console.supervisor.agent_door import quick
from console.supervisor.http.asgi import App


async def usage(request: Request) -> Response:
    body = await request.body()
    if body == b"killed":
        raise Killed("Everything was stopped.", "")
    if body == b"broken":
        raise RuntimeError("a secret of ours")
    return Response(b"counted " + body)


async def asked(app: App, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
    sent: list[Any] = []
    queue = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        return queue.pop(0) if queue else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "headers": [], "query_string": b"", "root_path": "", "raw_path": path.encode()}
    try:
        await app(scope, receive, send)
    except RuntimeError:
        pass  # the router tells the server as well
    return sent[0]["status"], b"".join(m.get("body", b"") for m in sent[1:])


@pytest.mark.parametrize("body", [b"1", b"", b"killed", b"broken"])
@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/v1/usage"), ("GET", "/v1/usage"), ("POST", "/v1/usage/"), ("POST", "/v1/other"), ("POST", "/v1/Usage")]
)
async def test_it_answers_as_the_router_does(body: bytes, method: str, path: str) -> None:
    routes = [Route("/v1/usage", usage, methods=["POST"]), Route("/v1/other", usage, methods=["POST"])]
    app = Starlette(routes=routes, exception_handlers=refusals())
    assert await asked(quick(app, "/v1/usage"), method, path, body) == await asked(app, method, path, body)


async def test_the_router_is_not_asked_for_it() -> None:
    async def long_way(_scope: Any, _receive: Any, _send: Any) -> None:
        raise AssertionError

    app = Starlette(routes=[Route("/v1/usage", usage, methods=["POST"])])
    app.middleware_stack = long_way
    assert await asked(quick(app, "/v1/usage"), "POST", "/v1/usage", b"7") == (200, b"counted 7")
    status, words = await asked(quick(app, "/v1/usage"), "POST", "/v1/usage", b"broken")
    assert status == 500 and b"secret" not in words and json.loads(words)["exit_code"] == 1
