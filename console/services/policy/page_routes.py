"""Routes of the policy page: reads, for operators alone."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from console.api.policy import page as v
from console.domain.errors import UsageProblem
from console.services.policy.page import PolicyLook
from console.services.routes.responses import answer, body_of

RULE_MAX = 1200


def policy_page_routes(look: PolicyLook) -> list[Route]:
    """GET /api/policy/lint, tools, sequences and calls, POST /api/policy/explain."""

    async def lint(_request: Request) -> Response:
        return answer(await asyncio.to_thread(look.lint))

    async def tools(_request: Request) -> Response:
        return answer(look.tools())

    async def sequences(_request: Request) -> Response:
        return answer(look.sequences())

    async def calls(request: Request) -> Response:
        rule, verdict = request.query_params.get("rule", ""), request.query_params.get("verdict", "")
        if not rule or len(rule) > RULE_MAX or verdict not in ("allow", "ask", "deny"):
            raise UsageProblem("rule and verdict are needed.", "For example ?rule=shell(ls:*)&verdict=allow.")
        return answer(await asyncio.to_thread(look.calls, rule, verdict))

    async def explain(request: Request) -> Response:
        return answer(await look.explain(await body_of(request, v.ExplainBody)))

    return [
        Route("/api/policy/lint", lint, methods=["GET"]),
        Route("/api/policy/tools", tools, methods=["GET"]),
        Route("/api/policy/sequences", sequences, methods=["GET"]),
        Route("/api/policy/calls", calls, methods=["GET"]),
        Route("/api/policy/explain", explain, methods=["POST"]),
    ]
