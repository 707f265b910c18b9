"""Routes of the inbox: for operators alone."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from console.api.policy import approvals as a
from console.services.approvals.service import ApprovalDesk
from console.services.routes.responses import answer, body_of


def approval_routes(desk: ApprovalDesk, by: Callable[[Request], str]) -> list[Route]:
    """GET and POST /api/approvals, GET /api/approvals/{id}, and what sessions were given."""

    async def listed(_request: Request) -> Response:
        return answer(await desk.inbox())

    async def one(request: Request) -> Response:
        return answer(await desk.detail(request.path_params["id"]))

    async def decide(request: Request) -> Response:
        return answer(await desk.decide(await body_of(request, a.DecideBody), by(request)))

    async def grants(_request: Request) -> Response:
        return answer(await desk.grants())

    async def end(request: Request) -> Response:
        return answer(await desk.end_grants(await body_of(request, a.EndGrantBody), by(request)))

    return [
        Route("/api/approvals", listed, methods=["GET"]),
        Route("/api/approvals", decide, methods=["POST"]),
        Route("/api/approvals/grants", grants, methods=["GET"]),
        Route("/api/approvals/grants/end", end, methods=["POST"]),
        Route("/api/approvals/{id}", one, methods=["GET"]),
    ]
