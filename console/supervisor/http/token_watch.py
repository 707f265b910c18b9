"""Long-lived answers end with the token they were opened with: a stream outlives no rotation and no revocation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from console.domain.errors import ConsoleError
from console.services.secrets.calls import secret_call
from console.supervisor.http.asgi import App, BrokenOff, Scope

LOOK_S = 0.5
"""How often a running answer's token is looked at again."""


def watched(app: App, accepts: Callable[[str], bool]) -> App:
    """The app; a request that brought a token is cut off within a second once the token is no longer accepted.

    Whether it is accepted to begin with is for the gate behind this. ``accepts`` reads the store, so it is called in a thread.
    """

    async def served(scope: Scope, receive: Any, send: Any) -> None:
        token = _token_of(scope)
        if token is None:
            await app(scope, receive, send)
            return
        work = asyncio.ensure_future(app(scope, receive, send))
        try:
            while not (await asyncio.wait([work], timeout=LOOK_S))[0]:
                if not await _holds(accepts, token):
                    break
            if work.done():
                await work
                return
        finally:
            if not work.done():
                work.cancel()
                await asyncio.wait([work])
        raise BrokenOff  # the server closes the connection, whether or not the answer was begun

    return served


async def _holds(accepts: Callable[[str], bool], token: str) -> bool:
    try:
        return await secret_call(accepts, token)
    except ConsoleError:
        return False  # what cannot be checked is not accepted


def _token_of(scope: Scope) -> str | None:
    for name, value in scope.get("headers", ()):
        if name == b"authorization":
            kind, _, token = bytes(value).decode("latin-1").partition(" ")
            return token if kind == "Bearer" else ""
    return None
