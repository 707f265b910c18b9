"""Routes of what is kept: the audit log, rollback records, signing keys."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from console.api import endpoints as ep
from console.api.message import SCHEMA_VERSION
from console.audit.anchors import anchor_of
from console.audit.receipt_seal import Given
from console.domain.engine.command import Record
from console.services.records.audit_log import AuditDesk
from console.services.records.key_retirement import apply
from console.services.records.rollback import RollbackDesk
from console.services.routes.responses import Handlers, answer, answer_data, body_of, number_in, shown_once
from console.settings.places import Places

By = Callable[[Request], str]
"""Who asks."""


def audit_routes(desk: AuditDesk, by: By) -> Handlers:
    """GET /api/audit, GET /api/audit/export, POST /api/audit/verify, POST /api/audit/acknowledge."""

    async def page(request: Request) -> Response:
        before = number_in(request, "before", 0, 1 << 60) or None
        limit = number_in(request, "limit", 200, 200)
        return answer(await asyncio.to_thread(desk.page, before, limit, request.query_params.get("q", "")[:200]))

    async def exported(request: Request) -> Response:
        fmt, after = request.query_params.get("format", "jsonl"), number_in(request, "after", 0, 1 << 60)
        # As it is: a word that became a secret later would not fit the hashes. What was known is in no record.
        return shown_once(answer(await asyncio.to_thread(desk.piece, fmt, after)))

    async def verified(request: Request) -> Response:
        body = await body_of(request, ep.VERIFY_AUDIT.body)
        receipts = [Given(body.name, body.receipt.encode(errors="replace"))] if body.receipt is not None else []
        return answer(await asyncio.to_thread(desk.verify, receipts, [anchor_of(text) for text in body.anchors]))

    async def acknowledged(request: Request) -> Response:
        body = await body_of(request, ep.ACKNOWLEDGE.body)
        return answer(await asyncio.to_thread(desk.acknowledge_loss, body.reason, by(request)))

    return {
        ep.AUDIT: page,
        ep.EXPORT_AUDIT: exported,
        ep.VERIFY_AUDIT: verified,
        ep.ACKNOWLEDGE: acknowledged,
    }


def rollback_routes(desk: RollbackDesk, by: By) -> Handlers:
    """GET /api/rollback, GET /api/rollback/{id}, POST /api/rollback/{id}/restore."""

    async def listed(_request: Request) -> Response:
        rows = await asyncio.to_thread(desk.rows)
        body = {"schema_version": SCHEMA_VERSION, "records": [r.as_data() for r in rows]}
        return answer_data(body)

    async def detail(request: Request) -> Response:
        return answer(await asyncio.to_thread(desk.detail, request.path_params["id"]))

    async def restored(request: Request) -> Response:
        body = await body_of(request, ep.RESTORE.body)
        return answer(await desk.restore(request.path_params["id"], body, by(request)))

    return {
        ep.ROLLBACK: listed,
        ep.ROLLBACK_DETAIL: detail,
        ep.RESTORE: restored,
    }


def key_routes(places: Places, record_first: Callable[[Record], None], by: By) -> Handlers:
    """POST /api/keys/retire: one at a time."""
    turn = asyncio.Lock()

    async def retired(request: Request) -> Response:
        body = await body_of(request, ep.RETIRE_KEY.body)
        async with turn:
            return answer(await asyncio.to_thread(apply, places, body, by(request), record_first))

    return {ep.RETIRE_KEY: retired}
