"""The route about signing keys on operator.sock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from console.api.key_messages import RetireKeyBody
from console.domain.command import Record
from console.services.records.key_retirement import apply
from console.services.routes.responses import answer, body_of
from console.settings.places import Places


def key_routes(places: Places, record_first: Callable[[Record], None], by: Callable[[Request], str]) -> list[Route]:
    """POST /api/keys/retire: one at a time."""
    turn = asyncio.Lock()

    async def retired(request: Request) -> Response:
        body = await body_of(request, RetireKeyBody)
        async with turn:
            return answer(await asyncio.to_thread(apply, places, body, by(request), record_first))

    return [Route("/api/keys/retire", retired, methods=["POST"])]
