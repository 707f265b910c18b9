"""Routes of the policy page: reads, for operators alone."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from console.api import endpoints as ep
from console.domain.errors import UsageProblem
from console.services.policy.page import PolicyLook
from console.services.routes.responses import Handlers, answer, body_of

RULE_MAX = 1200


def policy_page_routes(look: PolicyLook) -> Handlers:
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
        return answer(await look.explain(await body_of(request, ep.EXPLAIN.body)))

    return {
        ep.LINT: lint,
        ep.TOOLS: tools,
        ep.SEQUENCES: sequences,
        ep.CALLS: calls,
        ep.EXPLAIN: explain,
    }
