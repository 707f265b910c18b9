"""Routes of budgets on operator.sock. Agents have none of these: no agent sets, raises or clears a limit (promise 6)."""

from __future__ import annotations

import typing
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from console.api import budgets as b
from console.api import endpoints as ep
from console.domain.errors import UsageProblem
from console.services.budgets.charts import Charts
from console.services.budgets.service import KEY_MAX, BudgetDesk
from console.services.routes.responses import Handlers, answer, body_of, number_in

SCOPES: tuple[b.BudgetScope, ...] = typing.get_args(b.BudgetScope)


def budget_routes(desk: BudgetDesk, charts: Charts, by: Callable[[Request], str]) -> Handlers:
    """GET /api/budgets, GET /api/budgets/node, GET /api/budgets/history, GET /api/budgets/pictures, POST /api/budgets."""

    async def page(request: Request) -> Response:
        return answer(await desk.page(request.query_params.get("order", "time")[:20], number_in(request, "limit", b.ROWS, b.ROWS)))

    async def node(request: Request) -> Response:
        scope = _scope(request)
        if not scope:
            raise UsageProblem("No scope is named.", f"Scopes: {', '.join(SCOPES)}.")
        return answer(await desk.node(scope, _key(request)))

    async def history(request: Request) -> Response:
        return answer(await desk.history(_scope(request), _key(request), number_in(request, "limit", 50, 1000)))

    async def drawn(_request: Request) -> Response:
        return answer(await charts.view())

    async def change(request: Request) -> Response:
        return answer(await desk.change(await body_of(request, ep.CHANGE_BUDGET.body), by(request)))

    return {
        ep.BUDGETS: page,
        ep.BUDGET_NODE: node,
        ep.BUDGET_HISTORY: history,
        ep.BUDGET_PICTURES: drawn,
        ep.CHANGE_BUDGET: change,
    }


def _scope(request: Request) -> typing.Any:
    text = request.query_params.get("scope", "")
    if text and text not in SCOPES:
        raise UsageProblem(f"There is no scope {text[:40]!r}.", f"Scopes: {', '.join(SCOPES)}.")
    return text


def _key(request: Request) -> str:
    return request.query_params.get("key", "")[:KEY_MAX]
