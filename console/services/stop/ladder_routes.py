"""Routes of the ladder: a rung over any scope, its preview, and the older ones of one agent."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from console.api import endpoints as ep
from console.api.ladder import ScopeBody
from console.domain.errors import NotFound, UsageProblem
from console.domain.ids import AGENT_ID
from console.domain.kill import Receipt
from console.domain.ladder import Reach, Rung, Scope
from console.services.routes.request_identity import asked_by
from console.services.routes.responses import Handlers, answer, answer_data, body_of
from console.services.stop.ladder import LadderDesk


def scope_from(body: ScopeBody) -> Scope:
    """The scope a body describes. Raises UsageProblem."""
    scope = Scope(Reach(body.reach), body.target, tuple(body.others))
    scope.check()
    return scope


def receipt_answer(receipt: Receipt) -> Response:
    """A receipt with its stable keys (docs/reference/json.md)."""
    return answer_data(receipt.as_json())


class LadderRoutes:
    """Body in, one call, view out."""

    __slots__ = ("_ladder",)

    def __init__(self, ladder: LadderDesk) -> None:
        self._ladder = ladder

    def routes(self) -> Handlers:
        """What answers each endpoint."""
        return {
            ep.STEP: self._act,
            ep.PREVIEW_BY_QUERY: self._preview_by_query,
            ep.PREVIEW: self._preview,
            ep.KILL_AGENT: self._kill_agent,
            ep.ACT: self._act_on_agent,
        }

    async def _act(self, request: Request) -> Response:
        body = await body_of(request, ep.STEP.body)
        return await self._do(Rung(body.action), scope_from(body.scope), body.reason, asked_by(request))

    async def _do(self, rung: Rung, scope: Scope, reason: str, by: str) -> Response:
        if rung is not Rung.KILL:
            return answer(await self._ladder.act(rung, scope, reason, by))
        if scope.reach is Reach.ALL and not reason.strip():
            raise UsageProblem("A kill of everything needs a reason.", "Say why; it goes into the receipt and the remote order.")
        return receipt_answer(await self._ladder.kill(scope, reason, by))

    async def _preview(self, request: Request) -> Response:
        body = await body_of(request, ep.PREVIEW.body)
        return answer(await self._ladder.preview(Rung(body.action), scope_from(body.scope)))

    async def _preview_by_query(self, request: Request) -> Response:
        query = request.query_params
        try:
            rung, reach = Rung(query.get("action", "")), Reach(query.get("reach", ""))
        except ValueError as error:
            raise UsageProblem(
                "A preview needs action (freeze, isolate, kill, thaw, reconnect) and reach (agent, tree, session, host, all).",
                "For example: GET /api/ladder/preview?action=freeze&reach=all",
            ) from error
        return answer(await self._ladder.preview(rung, scope_from(ScopeBody(reach=reach.value, target=query.get("target", "")[:63]))))

    async def _kill_agent(self, request: Request) -> Response:
        return await self._on_agent(request, Rung.KILL)

    async def _act_on_agent(self, request: Request) -> Response:
        verb = request.path_params["verb"]
        if verb not in tuple(Rung):
            raise NotFound(f"There is no action {verb[:40]!r}.", f"Actions: {', '.join(Rung)}.")
        return await self._on_agent(request, Rung(verb))

    async def _on_agent(self, request: Request, rung: Rung) -> Response:
        agent_id = request.path_params["id"]
        if not AGENT_ID.match(agent_id):
            raise NotFound(f"There is no agent {agent_id[:80]!r}.", "watchfloor fleet lists the agents.")
        body = await body_of(request, ep.ACT.body)
        scope = Scope(Reach.TREE if body.tree else Reach.AGENT, agent_id)
        return await self._do(rung, scope, body.reason, asked_by(request))
