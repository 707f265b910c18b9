"""Routes of the webhook on operator.sock: set it, look at it, try it, take it away."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from console.api import endpoints as ep
from console.api.alerts import AlertView
from console.services.routes.request_identity import asked_by
from console.services.routes.responses import Handlers, answer, body_of, shown_once
from console.services.webhook.service import Webhook


def webhook_routes(webhook: Webhook, test_alert: Callable[[], AlertView]) -> Handlers:
    """Body in, one call, view out. ``test_alert`` makes an alert that says that it is a test."""

    async def show(_request: Request) -> Response:
        return answer(webhook.view())

    async def put(request: Request) -> Response:
        body = await body_of(request, ep.SET_WEBHOOK.body)
        view = await webhook.set(body.url, body.secret, asked_by(request))
        return shown_once(answer(view)) if view.secret else answer(view)

    async def test(_request: Request) -> Response:
        return answer(await webhook.test(test_alert()))

    async def remove(request: Request) -> Response:
        return answer(await webhook.remove(asked_by(request)))

    return {
        ep.WEBHOOK: show,
        ep.SET_WEBHOOK: put,
        ep.TEST_WEBHOOK: test,
        ep.REMOVE_WEBHOOK: remove,
    }
