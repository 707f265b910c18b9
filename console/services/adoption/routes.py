"""Routes of adoption."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from console.api import endpoints as ep
from console.services.adoption.service import AdoptDesk
from console.services.routes.request_identity import caller_of
from console.services.routes.responses import Handlers, answer, body_of


def adopt_routes(desk: AdoptDesk, by: Callable[[Request], str]) -> Handlers:
    """GET /api/adopt/candidates?agent=, POST /api/adopt."""

    async def candidates(request: Request) -> Response:
        return answer(await desk.candidates(request.query_params.get("agent", "")[:80], caller_of(request).pid))

    async def adopt(request: Request) -> Response:
        return answer(await desk.adopt(await body_of(request, ep.ADOPT.body), by(request), caller_of(request).pid))

    return {ep.CANDIDATES: candidates, ep.ADOPT: adopt}
