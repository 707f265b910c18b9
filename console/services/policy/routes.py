"""Routes of the rules: for operators alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from console.api import endpoints as ep
from console.services.policy.exact_rules import ExactDesk
from console.services.policy.profiles import Profiles
from console.services.policy.review import PolicyReview
from console.services.routes.responses import Handlers, answer, body_of


def policy_routes(review: PolicyReview, profiles: Profiles, exact: ExactDesk, by: Callable[[Request], str]) -> Handlers:
    """GET and POST /api/policy and /api/policy/profiles, what a change would do, and rules that are made of approvals."""

    async def view(_request: Request) -> Response:
        return answer(await asyncio.to_thread(review.view))

    async def attempt(request: Request) -> Response:
        return answer(await asyncio.to_thread(review.attempt, await body_of(request, ep.TRY_POLICY.body)))

    async def save(request: Request) -> Response:
        return answer(await review.save(await body_of(request, ep.SAVE_POLICY.body), by(request)))

    async def drafted(request: Request) -> Response:
        approval = await asyncio.to_thread(review.approval_or_404, request.path_params["id"])
        return answer(await asyncio.to_thread(review.draft_of, approval))

    async def offered(request: Request) -> Response:
        return answer(await asyncio.to_thread(exact.offer, request.path_params["id"]))

    async def allow(request: Request) -> Response:
        return answer(await exact.add(request.path_params["id"], await body_of(request, ep.ADD_RULE.body), by(request)))

    async def remove(request: Request) -> Response:
        await exact.remove(await body_of(request, ep.REMOVE_RULE.body), by(request))
        return answer(await asyncio.to_thread(review.view))

    return {
        **_profile_routes(review, profiles, by),
        ep.OFFERED_RULE: offered,
        ep.ADD_RULE: allow,
        ep.REMOVE_RULE: remove,
        ep.POLICY: view,
        ep.SAVE_POLICY: save,
        ep.TRY_POLICY: attempt,
        ep.DRAFT: drafted,
    }


def _profile_routes(review: PolicyReview, profiles: Profiles, by: Callable[[Request], str]) -> Handlers:
    async def chosen(_request: Request) -> Response:
        return answer(profiles.view())

    async def compare(_request: Request) -> Response:
        return answer(await asyncio.to_thread(review.compare))

    async def choose(request: Request) -> Response:
        return answer(await profiles.choose(await body_of(request, ep.CHOOSE_PROFILE.body), by(request)))

    return {
        ep.PROFILES: chosen,
        ep.COMPARE_PROFILES: compare,
        ep.CHOOSE_PROFILE: choose,
    }
