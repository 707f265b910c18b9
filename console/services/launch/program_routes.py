"""Routes of started programs: what can be started, a preview, a start, talking to one that runs, and ending it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from console.api.agents import programs as pm
from console.api.messages import LaunchBody
from console.services.launch.program_ending import Endings
from console.services.launch.programs import Programs
from console.services.routes.responses import answer, asked_by, body_of

PreviewLaunch = Callable[[LaunchBody], Awaitable[pm.ProgramPreview]]
"""What any command could do, before it is launched."""


def program_routes(programs: Programs, endings: Endings, preview_launch: PreviewLaunch) -> list[Route]:
    """GET and POST /api/programs, POST /api/programs/preview and /preview-command, POST /api/agents/{id}/message, /interrupt and /end."""

    async def listed(_request: Request) -> Response:
        return answer(await asyncio.to_thread(programs.view))

    async def preview(request: Request) -> Response:
        return answer(await programs.preview(await body_of(request, pm.ProgramsBody)))

    async def preview_a_command(request: Request) -> Response:
        return answer(await preview_launch(await body_of(request, LaunchBody)))

    async def start(request: Request) -> Response:
        return answer(await programs.start(await body_of(request, pm.ProgramsBody), asked_by(request)))

    async def say(request: Request) -> Response:
        return answer(await programs.say(request.path_params["id"], await body_of(request, pm.SayBody), asked_by(request)))

    async def interrupt(request: Request) -> Response:
        await body_of(request, pm.InterruptBody)
        return answer(await programs.interrupt(request.path_params["id"], asked_by(request)))

    async def end(request: Request) -> Response:
        return answer(await endings.end(request.path_params["id"], await body_of(request, pm.EndBody), asked_by(request)))

    return [
        Route("/api/programs", listed, methods=["GET"]),
        Route("/api/programs", start, methods=["POST"]),
        Route("/api/programs/preview", preview, methods=["POST"]),
        Route("/api/programs/preview-command", preview_a_command, methods=["POST"]),
        Route("/api/agents/{id}/message", say, methods=["POST"]),
        Route("/api/agents/{id}/interrupt", interrupt, methods=["POST"]),
        Route("/api/agents/{id}/end", end, methods=["POST"]),
    ]
