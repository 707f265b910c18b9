"""Routes that are asked hundreds of times a second, reached without a router: the same handlers, answers and refusals."""

from __future__ import annotations

from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Route

from console.domain.errors import ConsoleError
from console.services.routes.responses import refusal, refusals
from console.supervisor.http.asgi import App, Scope


def quick(app: Starlette, *paths: str) -> App:
    """The app; what is asked of exactly these paths, by a method that their routes have, goes there straight away."""
    known = {(method, r.path): r.endpoint for r in app.routes if isinstance(r, Route) and r.path in paths for method in r.methods or ()}
    failed = refusals()[Exception]

    async def served(scope: Scope, receive: Any, send: Any) -> None:
        handler = known.get((scope.get("method", ""), scope.get("path", "")))
        if handler is None:
            await app(scope, receive, send)
            return
        request = Request(scope, receive, send)
        try:
            response = await handler(request)
        except ConsoleError as error:
            response = refusal(error)
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001 - as the router's own last handler: logged, answered, and nobody else's trouble
            response = await failed(request, error)
        await response(scope, receive, send)

    return served
