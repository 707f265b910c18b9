"""Routes of the rules: for operators alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from console.api.policy import rules as p
from console.services.policy.exact_rules import ExactDesk
from console.services.policy.profiles import Profiles
from console.services.policy.review import PolicyReview
from console.services.routes.responses import answer, body_of


def policy_routes(review: PolicyReview, profiles: Profiles, exact: ExactDesk, by: Callable[[Request], str]) -> list[Route]:
    """GET and POST /api/policy and /api/policy/profiles, what a change would do, and rules that are made of approvals."""

    async def view(_request: Request) -> Response:
        return answer(await asyncio.to_thread(review.view))

    async def attempt(request: Request) -> Response:
        return answer(await asyncio.to_thread(review.attempt, await body_of(request, p.PolicyTryBody)))

    async def save(request: Request) -> Response:
        return answer(await review.save(await body_of(request, p.PolicySaveBody), by(request)))

    async def drafted(request: Request) -> Response:
        approval = await asyncio.to_thread(review.approval_or_404, request.path_params["id"])
        return answer(await asyncio.to_thread(review.draft_of, approval))

    async def offered(request: Request) -> Response:
        return answer(await asyncio.to_thread(exact.offer, request.path_params["id"]))

    async def allow(request: Request) -> Response:
        return answer(await exact.add(request.path_params["id"], await body_of(request, p.ExactBody), by(request)))

    async def remove(request: Request) -> Response:
        await exact.remove(await body_of(request, p.ExactRemoveBody), by(request))
        return answer(await asyncio.to_thread(review.view))

    return [
        *_profile_routes(review, profiles, by),
        Route("/api/approvals/{id}/rule", offered, methods=["GET"]),
        Route("/api/approvals/{id}/rule", allow, methods=["POST"]),
        Route("/api/policy/exact/remove", remove, methods=["POST"]),
        Route("/api/policy", view, methods=["GET"]),
        Route("/api/policy", save, methods=["POST"]),
        Route("/api/policy/backtest", attempt, methods=["POST"]),
        Route("/api/approvals/{id}/draft", drafted, methods=["GET"]),
    ]


def _profile_routes(review: PolicyReview, profiles: Profiles, by: Callable[[Request], str]) -> list[Route]:
    async def chosen(_request: Request) -> Response:
        return answer(profiles.view())

    async def compare(_request: Request) -> Response:
        return answer(await asyncio.to_thread(review.compare))

    async def choose(request: Request) -> Response:
        return answer(await profiles.choose(await body_of(request, p.ProfileBody), by(request)))

    return [
        Route("/api/policy/profiles", chosen, methods=["GET"]),
        Route("/api/policy/profiles/compare", compare, methods=["GET"]),
        Route("/api/policy/profiles", choose, methods=["POST"]),
    ]
