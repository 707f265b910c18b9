"""POST /v1/execute on an agent's own socket: judged, executed, and answered as it goes, one JSON object a line."""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from console.api.agents.execute import ExecuteBody
from console.domain.agent import AgentId
from console.services.execute.service import ExecuteDesk, Running
from console.services.routes.responses import body_of


class Executing:
    """One agent's calls."""

    __slots__ = ("_id", "_desk")

    def __init__(self, agent_id: AgentId, desk: ExecuteDesk) -> None:
        self._id, self._desk = agent_id, desk

    async def execute(self, request: Request) -> Response:
        """Refused with rule and reason, before anything runs; else begun, output, ended."""
        body = await body_of(request, ExecuteBody)
        return _Lines(await self._desk.begin(self._id, body, request.is_disconnected))


class _Lines(StreamingResponse):
    """Stream the call's lines. When the caller hangs up, the call ends: a call without a listener does not run on."""

    def __init__(self, call: Running) -> None:
        super().__init__(_lines(call), media_type="application/x-ndjson")
        self._call = call

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._call.heard = True
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._call.left = True


async def _lines(call: Running) -> AsyncIterator[bytes]:
    while (line := await call.lines.get()) is not None:
        yield line.to_json().encode() + b"\n"
