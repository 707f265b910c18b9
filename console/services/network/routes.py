"""Routes of the allowlist and its review on operator.sock."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from console.api import endpoints as ep
from console.services.network.review import ReviewDesk
from console.services.network.service import NetworkDesk
from console.services.routes.responses import Handlers, answer, body_of, number_in


class AllowlistRoutes:
    """Body in, one call, view out. ``by`` names who asks."""

    __slots__ = ("_network", "_review", "_by")

    def __init__(self, network: NetworkDesk, review: ReviewDesk, by: Callable[[Request], str]) -> None:
        self._network = network
        self._review = review
        self._by = by

    def routes(self) -> Handlers:
        """What answers each endpoint."""
        return {
            ep.ALLOWLIST: self._list,
            ep.ADD_ENTRY: self._add,
            ep.TEST_URL: self._test,
            ep.ALLOWLIST_HISTORY: self._history,
            ep.REVERT: self._revert,
            ep.BACKTEST: self._backtest,
            ep.ALLOWLIST_FILE: self._file,
            ep.IMPORT: self._import,
            ep.CHANGE_ENTRY: self._edit,
            ep.REMOVE_ENTRY: self._remove,
        }

    async def _list(self, _request: Request) -> Response:
        return answer(await self._network.view())

    async def _add(self, request: Request) -> Response:
        return answer(await self._network.add(await body_of(request, ep.ADD_ENTRY.body), self._by(request)))

    async def _edit(self, request: Request) -> Response:
        body = await body_of(request, ep.CHANGE_ENTRY.body)
        return answer(await self._network.edit(request.path_params["id"], body, self._by(request)))

    async def _remove(self, request: Request) -> Response:
        base = request.query_params.get("base_version")
        version = number_in(request, "base_version", 0, 1 << 60) if base else None
        reason = request.query_params.get("reason", "")[:500]
        return answer(await self._network.remove(request.path_params["id"], version, self._by(request), reason))

    async def _test(self, request: Request) -> Response:
        return answer(await self._network.test(await body_of(request, ep.TEST_URL.body)))

    async def _history(self, request: Request) -> Response:
        return answer(await self._review.history(max(1, number_in(request, "limit", 50, 200))))

    async def _revert(self, request: Request) -> Response:
        return answer(await self._review.revert(await body_of(request, ep.REVERT.body), self._by(request)))

    async def _backtest(self, request: Request) -> Response:
        return answer(await self._review.backtest(await body_of(request, ep.BACKTEST.body)))

    async def _file(self, _request: Request) -> Response:
        return answer(self._review.export())

    async def _import(self, request: Request) -> Response:
        return answer(await self._review.take_file(await body_of(request, ep.IMPORT.body), self._by(request)))
