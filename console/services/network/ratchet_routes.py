"""Routes of the operator's half of the ratchet, and of a session's history."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from console.api import endpoints as ep
from console.services.network.ratchet import TightenDesk
from console.services.routes.responses import Handlers, answer, body_of


def tighten_routes(desk: TightenDesk, by: Callable[[Request], str]) -> Handlers:
    """POST /api/network/stricter, POST /api/network/private-data, GET /api/contexts/{id}/modes."""

    async def stricter(request: Request) -> Response:
        return answer(await desk.stricter(await body_of(request, ep.STRICTER.body), by(request)))

    async def register(request: Request) -> Response:
        return answer(await desk.register(await body_of(request, ep.REGISTER_DATA.body), by(request)))

    async def modes(request: Request) -> Response:
        agent_id = request.query_params.get("agent", "")[:80]
        return answer(await asyncio.to_thread(desk.history, request.path_params["id"], agent_id))

    return {
        ep.STRICTER: stricter,
        ep.REGISTER_DATA: register,
        ep.MODES: modes,
    }
