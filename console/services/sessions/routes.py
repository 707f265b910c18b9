"""Routes of sessions' workspaces on operator.sock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from console.api import endpoints as ep
from console.api.agents import sessions as v
from console.domain.errors import NotFound
from console.services.routes.responses import Handlers, answer, body_of
from console.services.sessions.workspaces import Contexts


def context_view(contexts: Contexts) -> v.ContextsView:
    """Every session's workspace, and all of them together. Blocks."""
    room, views = contexts.room, []
    for row, live, goes_at in contexts.rows():
        views.append(
            v.ContextView(
                context_id=row.context_id,
                agent=row.agent,
                path=str(contexts.root / row.context_id),
                agents_live=live,
                bytes=row.bytes,
                complete=row.complete,
                measured_at=row.measured_at,
                created_at=row.created_at,
                last_used=row.last_used,
                goes_at=goes_at,
                stateless=row.stateless,
                hold=row.hold,
                over=contexts.over.get(row.context_id, ""),
            )
        )
    return v.ContextsView(
        contexts=views,
        used=room.used,
        capacity=room.capacity,
        maximum=room.maximum,
        complete=room.complete,
        is_full=room.is_full,
        ttl_days=contexts.options.ttl_days,
    )


def context_routes(contexts: Contexts, by: Callable[[Request], str]) -> Handlers:
    """GET /api/contexts, POST /api/contexts/{id}/{verb}."""

    async def listed(_request: Request) -> Response:
        return answer(await asyncio.to_thread(context_view, contexts))

    async def act(request: Request) -> Response:
        acts = {"hold": contexts.hold, "release": contexts.release, "delete": contexts.delete}
        verb = acts.get(request.path_params["verb"])
        if verb is None:
            raise NotFound("There is no such route.", "hold, release or delete.")
        body = await body_of(request, ep.SESSION_ACT.body)
        await asyncio.to_thread(verb, request.path_params["id"], body.reason, by(request))
        return answer(await asyncio.to_thread(context_view, contexts))

    return {ep.CONTEXTS: listed, ep.SESSION_ACT: act}
