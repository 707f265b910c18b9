"""Routes of the settings on operator.sock. Agents have none of these: no agent changes a setting."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from console.api import endpoints as ep
from console.services.configuration.service import SettingsDesk
from console.services.routes.responses import Handlers, answer, body_of


def settings_routes(desk: SettingsDesk, by: Callable[[Request], str]) -> Handlers:
    """GET /api/settings, POST /api/settings."""

    async def look(_request: Request) -> Response:
        return answer(await desk.view())

    async def change(request: Request) -> Response:
        return answer(await desk.change(await body_of(request, ep.CHANGE_CONFIG.body), by(request)))

    return {ep.CONFIG: look, ep.CHANGE_CONFIG: change}
