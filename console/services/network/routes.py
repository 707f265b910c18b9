"""Routes of the allowlist and its review on operator.sock."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from console.api import allowlist_review as r
from console.api import messages as m
from console.services.network.review import ReviewDesk
from console.services.network.service import NetworkDesk
from console.services.routes.responses import answer, body_of, number_in


class AllowlistRoutes:
    """Body in, one call, view out. ``by`` names who asks."""

    __slots__ = ("_network", "_review", "_by")

    def __init__(self, network: NetworkDesk, review: ReviewDesk, by: Callable[[Request], str]) -> None:
        self._network = network
        self._review = review
        self._by = by

    def routes(self) -> list[Route]:
        """In the order in which they are matched."""
        return [
            Route("/api/allowlist", self._list, methods=["GET"]),
            Route("/api/allowlist", self._add, methods=["POST"]),
            Route("/api/allowlist/test", self._test, methods=["POST"]),
            Route("/api/allowlist/history", self._history, methods=["GET"]),
            Route("/api/allowlist/revert", self._revert, methods=["POST"]),
            Route("/api/allowlist/backtest", self._backtest, methods=["POST"]),
            Route("/api/allowlist/file", self._file, methods=["GET"]),
            Route("/api/allowlist/import", self._import, methods=["POST"]),
            Route("/api/allowlist/{id}", self._edit, methods=["PUT"]),
            Route("/api/allowlist/{id}", self._remove, methods=["DELETE"]),
        ]

    async def _list(self, _request: Request) -> Response:
        return answer(await self._network.view())

    async def _add(self, request: Request) -> Response:
        return answer(await self._network.add(await body_of(request, m.AllowlistEntryBody), self._by(request)))

    async def _edit(self, request: Request) -> Response:
        body = await body_of(request, m.AllowlistEntryBody)
        return answer(await self._network.edit(request.path_params["id"], body, self._by(request)))

    async def _remove(self, request: Request) -> Response:
        base = request.query_params.get("base_version")
        version = number_in(request, "base_version", 0, 1 << 60) if base else None
        reason = request.query_params.get("reason", "")[:500]
        return answer(await self._network.remove(request.path_params["id"], version, self._by(request), reason))

    async def _test(self, request: Request) -> Response:
        return answer(await self._network.test(await body_of(request, m.UrlTestBody)))

    async def _history(self, request: Request) -> Response:
        return answer(await self._review.history(max(1, number_in(request, "limit", 50, 200))))

    async def _revert(self, request: Request) -> Response:
        return answer(await self._review.revert(await body_of(request, r.RevertBody), self._by(request)))

    async def _backtest(self, request: Request) -> Response:
        return answer(await self._review.backtest(await body_of(request, r.BacktestBody)))

    async def _file(self, _request: Request) -> Response:
        return answer(self._review.export())

    async def _import(self, request: Request) -> Response:
        return answer(await self._review.take_file(await body_of(request, r.ImportBody), self._by(request)))
