"""Routes of started programs: what can be started, a preview, a start, talking to one that runs, and ending it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from console.api import endpoints as ep
from console.api.agents import programs as pm
from console.api.messages import LaunchBody
from console.services.launch.program_ending import Endings
from console.services.launch.programs import Programs
from console.services.routes.request_identity import asked_by
from console.services.routes.responses import Handlers, answer, body_of

PreviewLaunch = Callable[[LaunchBody], Awaitable[pm.ProgramPreview]]
"""What any command could do, before it is launched."""


def program_routes(programs: Programs, endings: Endings, preview_launch: PreviewLaunch) -> Handlers:
    """GET and POST /api/programs, POST /api/programs/preview and /preview-command, POST /api/agents/{id}/message, /interrupt and /end."""

    async def listed(_request: Request) -> Response:
        return answer(await asyncio.to_thread(programs.view))

    async def preview(request: Request) -> Response:
        return answer(await programs.preview(await body_of(request, ep.PREVIEW_PROGRAMS.body)))

    async def preview_a_command(request: Request) -> Response:
        return answer(await preview_launch(await body_of(request, ep.PREVIEW_COMMAND.body)))

    async def start(request: Request) -> Response:
        return answer(await programs.start(await body_of(request, ep.START.body), asked_by(request)))

    async def say(request: Request) -> Response:
        return answer(await programs.say(request.path_params["id"], await body_of(request, ep.MESSAGE.body), asked_by(request)))

    async def interrupt(request: Request) -> Response:
        await body_of(request, ep.INTERRUPT.body)
        return answer(await programs.interrupt(request.path_params["id"], asked_by(request)))

    async def end(request: Request) -> Response:
        return answer(await endings.end(request.path_params["id"], await body_of(request, ep.FINISH.body), asked_by(request)))

    return {
        ep.PROGRAMS: listed,
        ep.START: start,
        ep.PREVIEW_PROGRAMS: preview,
        ep.PREVIEW_COMMAND: preview_a_command,
        ep.MESSAGE: say,
        ep.INTERRUPT: interrupt,
        ep.FINISH: end,
    }
