"""Routes of the inbox: for operators alone."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from console.api import endpoints as ep
from console.services.approvals.service import ApprovalDesk
from console.services.routes.responses import Handlers, answer, body_of


def approval_routes(desk: ApprovalDesk, by: Callable[[Request], str]) -> Handlers:
    """GET and POST /api/approvals, GET /api/approvals/{id}, and what sessions were given."""

    async def listed(_request: Request) -> Response:
        return answer(await desk.inbox())

    async def one(request: Request) -> Response:
        return answer(await desk.detail(request.path_params["id"]))

    async def decide(request: Request) -> Response:
        return answer(await desk.decide(await body_of(request, ep.DECIDE.body), by(request)))

    async def grants(_request: Request) -> Response:
        return answer(await desk.grants())

    async def end(request: Request) -> Response:
        return answer(await desk.end_grants(await body_of(request, ep.END_GRANTS.body), by(request)))

    return {
        ep.APPROVALS: listed,
        ep.DECIDE: decide,
        ep.GRANTS: grants,
        ep.END_GRANTS: end,
        ep.APPROVAL: one,
    }
