"""Routes about secrets on operator.sock: rotation, the API key, operator tokens, and the revocation of one agent's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from console.api import endpoints as ep
from console.api import secrets as rm
from console.credentials.api_key import PREFIX, ApiKey
from console.credentials.keyring_store import Store
from console.domain.agent import AgentId
from console.domain.engine.command import Record
from console.domain.errors import TokenRefused
from console.domain.kill import Step
from console.domain.words import counted
from console.services.records.record_writer import Scribe
from console.services.routes.request_identity import asked_by, caller_of
from console.services.routes.responses import Handlers, answer, body_of, shown_once
from console.services.secrets.calls import secret_call
from console.services.secrets.rotation_step import step_of, verdict_of
from console.services.secrets.rotator import Rotator, in_words


class SecretRoutes:
    """Body in, one call, view out. What replaces or gives out a secret is recorded first; a revocation acts first."""

    __slots__ = ("_agent_or_404", "_scribe", "_keyring", "_rotator", "_revoke_agent", "_correct", "_tokens", "_api_key")

    def __init__(
        self,
        agent_or_404: Callable[[str], AgentId],
        scribe: Scribe,
        keyring: Store,
        rotator: Rotator,
        revoke: Callable[[AgentId], int],
        correct: Callable[[str, Step], Awaitable[None]],
    ) -> None:
        """``revoke`` cuts an agent's connections, how many. ``correct`` puts a step into the receipt of a kill."""
        self._agent_or_404, self._scribe, self._keyring, self._rotator = agent_or_404, scribe, keyring, rotator
        self._revoke_agent, self._correct = revoke, correct
        self._tokens, self._api_key = rotator.tokens, ApiKey(keyring)

    def routes(self) -> Handlers:
        """What answers each endpoint."""
        return {
            ep.TOKEN_CHECK: self._check,
            ep.ROTATION: self._show,
            ep.ROTATE: self._rotate,
            ep.TELL_VALUE: self._tell,
            ep.NEW_API_KEY: self._new_api_key,
            ep.TOKEN: self._token,
            ep.REVOKE_TOKEN: self._revoke,
        }

    async def _check(self, request: Request) -> Response:
        """Says whether this server accepts a token or key now: what a rotation asks of the running server."""
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        audience = await secret_call(self._audience_of, given) if kind == "Bearer" else ""
        if not audience:
            raise TokenRefused("This token is not accepted.", "Ask for a new one.")
        return answer(rm.TokenCheckView(audience=audience))

    def _audience_of(self, given: str) -> str:
        if given.startswith(PREFIX):
            return "api-key" if self._api_key.accepts(given) else ""
        return next((a for a in ("operator", "agent-service") if self._tokens.accepts(given, a)), "")

    async def _show(self, _request: Request) -> Response:
        return answer(await asyncio.to_thread(self._rotator.view))

    async def _rotate(self, request: Request) -> Response:
        body = await body_of(request, ep.ROTATE.body)
        what = f"rotate {', '.join(body.items) or 'everything'}: {body.reason}"
        await self._first(request, "secrets.rotate", what)
        result = await self._rotator.take_turn(frozenset(body.items))
        assert result is not None
        self._scribe.record(
            Record(asked_by(request), "secrets.rotated", in_words(list(result.items)), verdict=verdict_of(result), must=True)
        )
        if result.kill_id:  # it took up what a kill had begun: that receipt says how it ended
            await self._correct(result.kill_id, step_of(self._rotator, result, None))
        return answer(await asyncio.to_thread(self._rotator.view))

    async def _tell(self, request: Request) -> Response:
        body = await body_of(request, ep.TELL_VALUE.body)
        self._keyring.redactor.learn(body.value)
        await self._first(request, "secrets.told", f"the value in force of {body.name}")
        await asyncio.to_thread(self._rotator.tell, body.name, body.value)
        return answer(await asyncio.to_thread(self._rotator.view))

    async def _new_api_key(self, request: Request) -> Response:
        await self._first(request, "secrets.api_key", "a new API key")
        return shown_once(answer(rm.ApiKeyView(api_key=await secret_call(self._api_key.renew))))

    async def _token(self, request: Request) -> Response:
        body = await body_of(request, ep.TOKEN.body)
        if not await secret_call(self._api_key.accepts, body.api_key):
            raise TokenRefused("This API key is not accepted.", "watchfloor secrets rotation api-key makes a new one.")
        await self._first(request, "secrets.token", f"an operator token for {body.ttl_s} s")
        token = await secret_call(self._tokens.issue, "operator", asked_by(request), body.ttl_s)
        return shown_once(answer(rm.TokenView(token=token, ttl_s=body.ttl_s)))

    async def _revoke(self, request: Request) -> Response:
        agent_id = self._agent_or_404(request.path_params["id"])
        cut = self._revoke_agent(agent_id)  # at once; what only tightens acts first
        await secret_call(self._tokens.bar, agent_id)
        words = f"the tokens of {agent_id}, and its socket; {counted(cut, 'connection')} cut"
        record = Record(asked_by(request), "secrets.revoked", words, verdict="ok", agent_id=agent_id, must=True)
        self._scribe.record(record)
        return answer(rm.RevokedView(agent=agent_id, connections_cut=cut))

    async def _first(self, request: Request, kind: str, what: str) -> None:
        data = caller_of(request).as_data()
        await asyncio.to_thread(self._scribe.record_first, Record(asked_by(request), kind, what, verdict="allow", data=data))
