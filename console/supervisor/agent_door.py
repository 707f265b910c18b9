"""One socket per agent, with only the agent routes; who speaks is the socket it came in by, checked against its own cgroup."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from console.api import agent_endpoints as api
from console.api import messages as m
from console.api.policy.hooks import HookBody, HookVerdict
from console.api.secrets import TokenView
from console.credentials.tokens import Tokens
from console.domain.agent import AgentId
from console.domain.engine import event as e
from console.domain.errors import ConsoleError, Denied, Killed, NotFound, TokenRefused, TooMany, UsageProblem
from console.domain.network import read_sensitivity
from console.ledger.sessions import Tightening
from console.services.approvals.permission_api import Asking
from console.services.budgets.agent_spending import AgentSpending
from console.services.execute.routes import Executing
from console.services.execute.service import ExecuteDesk
from console.services.fleet.core import Core, now
from console.services.fleet.views import agent_view
from console.services.hooks.calls import read_call
from console.services.hooks.program_hooks import remove
from console.services.hooks.service import HookDesk
from console.services.launch.service import TOKEN_S
from console.services.records.record_writer import Scribe
from console.services.routes.launch_body import request_from
from console.services.routes.responses import Handler, answer, body_of, refusal, refusals, shown_once
from console.services.secrets.calls import secret_call
from console.settings.places import Places
from console.supervisor.http.access import Trespasses
from console.supervisor.http.asgi import App, Door, Scope
from console.supervisor.http.keepalive_pool import Resting
from console.supervisor.http.peers import Peer, is_agent
from console.supervisor.http.redaction import hidden
from console.supervisor.http.token_watch import watched

SWITCH_S = 30.0
RATE = 100
CONNECTIONS = 16
"""Of one agent at once."""


@dataclass(slots=True)
class _Held:
    door: Door
    routes: AgentRoutes
    container_id: str = ""


class AgentDoors:
    """Opens and closes the agents' sockets."""

    def __init__(
        self, places: Places, core: Core, scribe: Scribe, trespasses: Trespasses, tokens: Tokens, execute: ExecuteDesk, *, cgroups: bool
    ) -> None:
        self._tokens, self._execute = tokens, execute
        self._dir, self._core, self._scribe, self._trespasses = places.agents_dir, core, scribe, trespasses
        self._instance_id, self._cgroups = places.instance_id, cgroups
        self._held: dict[AgentId, _Held] = {}
        self._resting = Resting()
        self.hooks = HookDesk(core)

    async def open(self, agent_id: AgentId, owner_uid: int | None) -> Path:
        """The path of the agent's own socket, listening."""
        # A folder of its own: the sandbox shows the agent the folder, so that a restarted supervisor can put a new socket into it.
        folder = self._dir / agent_id
        folder.mkdir(exist_ok=True, mode=0o755)
        path = folder / "agent.sock"
        routes = AgentRoutes(agent_id, self._core, self._scribe, self._trespasses, self._tokens, self.hooks, self._execute)
        routes.revoked = await secret_call(self._tokens.is_barred, agent_id)
        app = hidden(watched(quick(routes.app(), api.USAGE.path), routes.is_own), self._tokens.store.redactor)
        door = Door(
            path,
            app,
            lambda peer: self._accepts(agent_id, peer),
            mode=0o600,
            owner=owner_uid,
            connections=CONNECTIONS,
            resting=self._resting,
        )
        self._held[agent_id] = _Held(door, routes)
        await door.open()
        return path

    def count(self) -> int:
        """Sockets that are open now."""
        return len(self._held)

    def confirm(self, agent_id: AgentId, container_id: str) -> None:
        """The container's id is known: only peers in it are served."""
        if agent_id in self._held:
            self._held[agent_id].container_id = container_id

    def _accepts(self, agent_id: AgentId, peer: Peer) -> bool:
        held = self._held.get(agent_id)
        return held is not None and is_agent(peer, self._instance_id, agent_id, held.container_id, cgroups=self._cgroups)

    def revoke(self, agent_id: AgentId) -> int:
        """This agent is served no more, whether or not it shows a token: its connections are cut, how many; new ones get 401."""
        held = self._held.get(agent_id)
        if held is None:
            return 0
        held.routes.revoked = True
        return held.door.cut()

    async def close(self, *agent_ids: AgentId) -> None:
        """Takes the sockets away. Their folders go in a thread: for hundreds of agents a disk takes as long as the kill."""
        held = {agent_id: one for agent_id in agent_ids if (one := self._held.pop(agent_id, None)) is not None}
        for one in held.values():
            await one.door.close()
        if held:
            await asyncio.to_thread(self._remove, list(held))

    def _remove(self, agent_ids: list[AgentId]) -> None:
        for agent_id in agent_ids:
            remove(self._dir / agent_id)
            with suppress(OSError):
                (self._dir / agent_id).rmdir()

    async def close_all(self) -> None:
        """Shutdown: the folders stay, so that a living agent finds the next supervisor's socket in the one it was given."""
        await self._execute.close()
        for held in self._held.values():
            await held.door.close()
        self._held.clear()


class AgentRoutes:
    """The whole of what an agent can ask. There is no route here to grant, approve, release or stop anything (promise 6)."""

    def __init__(
        self,
        agent_id: AgentId,
        core: Core,
        scribe: Scribe,
        trespasses: Trespasses,
        tokens: Tokens,
        hooks: HookDesk,
        execute: ExecuteDesk,
    ) -> None:
        self._tokens, self._hooks = tokens, hooks
        self.revoked = False
        """A person revoked this agent's tokens: for as long as it lives."""
        self._id, self._core, self._scribe, self._trespasses = agent_id, core, scribe, trespasses
        self._recent: deque[float] = deque()
        self._spending = AgentSpending(agent_id, core, scribe)
        self._asking = Asking(agent_id, core, scribe.ledger)
        self._executing = Executing(agent_id, execute)

    def app(self) -> Starlette:
        """The routes as an ASGI app."""
        spending, asking = self._spending, self._asking
        handlers: dict[api.AgentEndpoint, Handler] = {
            api.SELF: self._self,
            api.NOTICES: self._notices,
            api.SPAWN: self._spawn,
            api.USAGE: spending.usage,
            api.RESERVE: spending.reserve,
            api.SETTLE: spending.settle,
            api.PERMISSION: asking.permission,
            api.APPROVAL: asking.asked,
            api.EXECUTE: self._executing.execute,
            api.HOOK: self._hook,
            api.PRIVATE_DATA: self._private_data,
            api.TOKEN: self._token,
        }
        routes = [self._route(row, handlers[row]) for row in api.AGENT_ENDPOINTS]
        return Starlette(routes=routes, exception_handlers={**refusals(), HTTPException: self._no_route})

    def _route(self, row: api.AgentEndpoint, handler: Handler) -> Route:
        async def served(request: Request) -> Response:
            self._turn()
            self._alive()
            await self._check_token(request)
            done = await handler(request)
            self._alive()  # what slipped past is stopped here: nothing is handed out that crossed with a kill
            self._not_revoked()
            return done

        return Route(row.path, served, methods=[row.method])

    async def _no_route(self, request: Request, _error: Exception) -> Response:
        """Answer a route that does not exist here. Nothing on this socket can approve, grant or release; a try is recorded."""
        self._turn()
        self._trespasses.note(f"agent:{self._id}", f"{request.method} {request.url.path}")
        *most, last = (row.word for row in api.AGENT_ENDPOINTS)
        return refusal(NotFound("There is no such route.", f"An agent's socket has {', '.join(most)} and {last}."))

    def _turn(self) -> None:
        """Allow at most RATE requests a second of one agent, so that its flood delays no other agent."""
        moment = time.monotonic()
        while self._recent and moment - self._recent[0] > 1.0:
            self._recent.popleft()
        if len(self._recent) >= RATE:
            raise TooMany(f"More than {RATE} requests a second.", "Ask more slowly; report usage in larger steps.")
        self._recent.append(moment)

    async def _check_token(self, request: Request) -> None:
        """The socket is the identity; but a token that is shown must be good, and this agent's own."""
        self._not_revoked()
        header = request.headers.get("authorization")
        if header is None:
            return
        kind, _, token = header.partition(" ")
        if kind != "Bearer" or not await secret_call(self.is_own, token):
            raise TokenRefused("This token is not accepted here.", "POST /v1/token gives a new one.")

    def is_own(self, token: str) -> bool:
        """Whether this is a good token of this very agent. Blocks; ConsoleError when the store cannot be read."""
        try:
            return self._tokens.verify(token, "agent-service").agent_id == self._id
        except Denied:
            return False

    def _not_revoked(self) -> None:
        if self.revoked:
            raise TokenRefused("The tokens of this agent are revoked.", "")

    async def _token(self, _request: Request) -> Response:
        token = await secret_call(self._tokens.issue, "agent-service", self._id, TOKEN_S, self._id)
        return shown_once(answer(TokenView(token=token, ttl_s=TOKEN_S)))

    def _alive(self) -> None:
        if self._core.state.killed:
            raise Killed("Everything was stopped.", "")
        agent = self._core.state.agents.get(self._id)
        if agent is None or not agent.state.is_live:
            raise Killed("This agent has ended.", "")

    async def _self(self, _request: Request) -> Response:
        at, _ = now()
        return answer(agent_view(self._core.state.agents[self._id], self._core.state, self._core.meters, at))

    async def _notices(self, request: Request) -> Response:
        text = request.query_params.get("after", "0")
        after = int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0
        found = await asyncio.to_thread(self._scribe.ledger.notices, self._id, after)
        views = [m.AgentEventView(at=n.at, kind=n.kind, text=n.text) for n in found]
        return answer(m.NoticesView(notices=views, next=max((n.seq for n in found), default=after)))

    async def _spawn(self, request: Request) -> Response:
        body = await body_of(request, m.LaunchBody)
        if body.parent_id not in (None, self._id):
            raise UsageProblem("An agent can only spawn its own children.", "Leave parent_id out.")
        if body.agent_type:
            raise Denied("An agent does not choose a type: its children have its own.", "Leave agent_type out.")
        if body.project:
            raise Denied("An agent does not choose who pays: its children are charged to its project.", "Leave project out.")
        launch = request_from(body.replaced(parent_id=self._id))
        agent_id = await self._core.ask_launch(launch, f"agent:{self._id}")
        agent = self._core.state.agents[agent_id]
        view = m.LaunchedView(
            id=agent_id, control_level=agent.control_level, network_mode=agent.network_mode, network_enforced=agent.network_enforced
        )
        return answer(view)

    async def _hook(self, request: Request) -> Response:
        """A tool call of a program that runs as this agent, told by its hook: the socket says whose it is."""
        body = await body_of(request, HookBody)
        try:
            call = read_call(body.program, body.payload)
        except ConsoleError as error:
            return answer(HookVerdict(verdict="deny", rule="hook", reason=error.what))
        return answer(await self._hooks.ask(call, await self._hooks.of_own(self._id, call), request.is_disconnected))

    async def _private_data(self, request: Request) -> Response:
        body = await body_of(request, m.PrivateDataBody)
        level = read_sensitivity(body.sensitivity)
        state, ledger = self._core.state, self._scribe.ledger
        mode = state.modes.of(level)
        # Whatever it spawned shares its data, in sessions of their own too; what is only in memory would be lost with this process.
        contexts = sorted({state.agents[i].context_id for i in state.subtree(self._id)})
        at, boot = now()

        why = f"{level} data registered by {self._id}"
        tightening = Tightening(mode, why, "data", f"agent:{self._id}", at, level, body.dataset, body.source)
        # Committed before the data is handed over: the answer is what the agent waits for.
        try:
            await asyncio.to_thread(ledger.tighten_sessions, contexts, tightening)
        finally:
            # Even if the disk refused: tightening acts first (promise 5).
            self._core.post(e.PrivateDataRegistered(at, boot, self._id, body.dataset, body.source, level, mode))
        # Nor before its network was really cut: established flows are gone when this is answered.
        if switch := self._core.switching.get(self._id):
            await asyncio.wait([switch], timeout=SWITCH_S)
        agent = self._core.state.agents[self._id]
        return answer(agent_view(agent, self._core.state, self._core.meters, at))


# --- Routes that are asked hundreds of times a second, reached without a router: the same handlers, answers and refusals.


def quick(app: Starlette, *paths: str) -> App:
    """The app; what is asked of exactly these paths, by a method that their routes have, goes there straight away."""
    known = {(method, r.path): r.endpoint for r in app.routes if isinstance(r, Route) and r.path in paths for method in r.methods or ()}
    failed = refusals()[Exception]

    async def served(scope: Scope, receive: Any, send: Any) -> None:
        handler = known.get((scope.get("method", ""), scope.get("path", "")))
        if handler is None:
            await app(scope, receive, send)
            return
        request = Request(scope, receive, send)
        try:
            response = await handler(request)
        except ConsoleError as error:
            response = refusal(error)
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001 - as the router's own last handler: logged, answered, and nobody else's trouble
            response = await failed(request, error)
        await response(scope, receive, send)

    return served
