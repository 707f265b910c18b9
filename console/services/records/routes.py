"""Routes of what is kept: the audit log, rollback records, signing keys."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from console.api import messages as m
from console.api.records import AcknowledgeLossBody, RestoreBody
from console.api.secrets import RetireKeyBody
from console.domain.engine.command import Record
from console.services.records.audit_log import AuditDesk
from console.services.records.key_retirement import apply
from console.services.records.rollback import RollbackDesk
from console.services.routes.responses import answer, body_of, number_in, shown_once
from console.settings.places import Places

By = Callable[[Request], str]
"""Who asks."""


def audit_routes(desk: AuditDesk, by: By) -> list[Route]:
    """GET /api/audit, GET /api/audit/export, POST /api/audit/verify, POST /api/audit/acknowledge."""

    async def page(request: Request) -> Response:
        before = number_in(request, "before", 0, 1 << 60) or None
        limit = number_in(request, "limit", 200, 200)
        return answer(await asyncio.to_thread(desk.page, before, limit, request.query_params.get("q", "")[:200]))

    async def exported(request: Request) -> Response:
        fmt, after = request.query_params.get("format", "jsonl"), number_in(request, "after", 0, 1 << 60)
        # As it is: a word that became a secret later would not fit the hashes. What was known is in no record.
        return shown_once(answer(await asyncio.to_thread(desk.piece, fmt, after)))

    async def verified(_request: Request) -> Response:
        return answer(await asyncio.to_thread(desk.verify))

    async def acknowledged(request: Request) -> Response:
        body = await body_of(request, AcknowledgeLossBody)
        return answer(await asyncio.to_thread(desk.acknowledge_loss, body.reason, by(request)))

    return [
        Route("/api/audit", page, methods=["GET"]),
        Route("/api/audit/export", exported, methods=["GET"]),
        Route("/api/audit/verify", verified, methods=["POST"]),
        Route("/api/audit/acknowledge", acknowledged, methods=["POST"]),
    ]


def rollback_routes(desk: RollbackDesk, by: By) -> list[Route]:
    """GET /api/rollback, GET /api/rollback/{id}, POST /api/rollback/{id}/restore."""

    async def listed(_request: Request) -> Response:
        rows = await asyncio.to_thread(desk.rows)
        body = {"schema_version": m.SCHEMA_VERSION, "records": [r.model_dump() for r in rows]}
        return Response(json.dumps(body), media_type="application/json")

    async def detail(request: Request) -> Response:
        return answer(await asyncio.to_thread(desk.detail, request.path_params["id"]))

    async def restored(request: Request) -> Response:
        body = await body_of(request, RestoreBody)
        return answer(await desk.restore(request.path_params["id"], body, by(request)))

    return [
        Route("/api/rollback", listed, methods=["GET"]),
        Route("/api/rollback/{id}", detail, methods=["GET"]),
        Route("/api/rollback/{id}/restore", restored, methods=["POST"]),
    ]


def key_routes(places: Places, record_first: Callable[[Record], None], by: By) -> list[Route]:
    """POST /api/keys/retire: one at a time."""
    turn = asyncio.Lock()

    async def retired(request: Request) -> Response:
        body = await body_of(request, RetireKeyBody)
        async with turn:
            return answer(await asyncio.to_thread(apply, places, body, by(request), record_first))

    return [Route("/api/keys/retire", retired, methods=["POST"])]
