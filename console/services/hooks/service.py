"""Calls that hooks of programs put before us: whose they are by the kernel's word, judged like any other.

Two doors lead here: an agent's own socket, where the socket is the identity, and ``hooks.sock``, for programs that are only seen. There
the process that asks must descend from the process of the session that it names; what no session can be found for is denied.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from console.api import endpoints as ep
from console.api.policy.hooks import AgentHook, HookBody, HooksView, HookVerdict, ProgramHook
from console.domain.agent import AgentId
from console.domain.calls.permission import Decision, Verdict
from console.domain.conversation import started_as
from console.domain.engine import event as e
from console.domain.errors import ConsoleError
from console.domain.ids import ControlLevel
from console.domain.words import counted
from console.killswitch.kernel import processes
from console.services.fleet.core import Core, now
from console.services.hooks.calls import HookCall, read_call
from console.services.hooks.program_hooks import is_judged, own_servers
from console.services.routes.request_identity import PID
from console.services.routes.responses import Handlers, answer, body_of, refusals
from console.sources.kinds import KINDS

SIGHTED_S = 5.0
"""A session's first call may come before anybody has seen it: so long it is waited for."""
LOOK_S = 0.1
HUNG_UP_S = 1.0
ANCESTORS = 40
SESSIONS_MAX = 1000
BROKEN_OFF = (
    "not surely enforced: the hook of {broken_off} was ended before its answer. A program goes on when the shell of its hook is killed. "
    "{calls} checked"
)

NO_HOOK = "not checked: no hook of it has asked Watchfloor"


@dataclass(slots=True)
class _Heard:
    calls: int = 0
    since: float = 0.0
    last_at: float = 0.0
    broken_off: int = 0
    """Whose hook was gone before its answer."""

    def note(self) -> None:
        """One call more."""
        self.last_at = time.time()
        self.since = self.since or self.last_at
        self.calls += 1


class HookDesk:
    """Judges what hooks ask; knows since when they reach us."""

    __slots__ = ("_core", "_heard", "_sessions", "_agents")

    def __init__(self, core: Core) -> None:
        self._core = core
        self._heard: dict[str, _Heard] = {}
        self._sessions: dict[str, float] = {}
        self._agents: dict[AgentId, _Heard] = {}

    async def ask(self, call: HookCall, agent_id: AgentId | None, left: Callable[[], Awaitable[bool]], why: str = "") -> HookVerdict:
        """The verdict, after a human's word where one is asked. ``agent_id`` None: whose it is could not be told, and ``why``."""
        if call.request is None:
            return HookVerdict(verdict="allow", rule="event", reason="nothing is asked")
        if agent_id is None:
            return HookVerdict(verdict="deny", rule="unknown session", reason=why)
        self._note(call, agent_id)  # only now: anybody of this account can name a session, and none is called enforced for that
        request_id = secrets.token_hex(8)
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._core.answers[request_id] = future
        self._core.post(e.PermissionAsked(*now(), agent_id, request_id, call.request))
        while not (await asyncio.wait([future], timeout=HUNG_UP_S))[0]:
            if await left():
                for one in self._held_by(agent_id):
                    self._agents.setdefault(one, _Heard()).broken_off += 1
                self._core.post(e.AskerLeft(*now(), request_id))
                self._core.settle_answer(request_id, Decision(Verdict.DENY, "asker", "the caller has hung up"))
        decision = future.result()
        assert isinstance(decision, Decision)
        seen = self._core.state.seen.get(agent_id)
        told = self._core.untold.take(agent_id, seen.inside if seen is not None else None)
        return HookVerdict(verdict=decision.verdict.value, rule=decision.rule, reason=decision.reason, notices=told)

    async def of_own(self, agent_id: AgentId, call: HookCall) -> AgentId:
        """Return the agent that makes a call over an agent's own socket: that agent, or a sub-agent that has a row of its own.

        A sub-agent without a row is waited for a while. If it gets none, its call counts as one of the agent in which it runs.
        """
        until = time.monotonic() + SIGHTED_S
        while call.sub_agent:
            for part in self._rows(call):
                if self._core.state.seen[part].inside == agent_id:
                    return part
            if time.monotonic() >= until:
                break
            await asyncio.sleep(LOOK_S)
        return agent_id

    async def of_seen(self, call: HookCall, pid: int) -> tuple[AgentId | None, str]:
        """Return the agent that makes a call over ``hooks.sock``, or why that is unknown. Waits a while for a session without a row."""
        until = time.monotonic() + SIGHTED_S
        while True:
            sessions = [i for i in self._rows(call, session_only=True) if self._runs_in(i, pid)]
            late = time.monotonic() >= until
            if sessions:
                found = self._part_of(sessions[0], call)
                # A sub-agent without a row is waited for; if it gets none, its call counts as its session's.
                if found != sessions[0] or not call.sub_agent or late:
                    return found, ""
            elif late:
                return None, f"no running session {call.session} of {call.program} is known that process {pid} belongs to"
            await asyncio.sleep(LOOK_S)

    def view(self) -> HooksView:
        """Since when calls reach us, per program: without a first call nothing is called enforced."""
        programs = [ProgramHook(program=name, calls=heard.calls, last_at=heard.last_at) for name, heard in sorted(self._heard.items())]
        agents = {
            str(one): AgentHook(calls=heard.calls, since=heard.since, last_at=heard.last_at, broken_off=heard.broken_off)
            for one, heard in self._agents.items()
        }
        return HooksView(programs=programs, sessions=dict(self._sessions), agents=agents)

    def words_of(self, agent_id: AgentId) -> str:
        """Whether this agent's tool calls are judged before they happen, as far as was seen; empty: nothing was promised."""
        said, servers = self._judged(agent_id), self._servers(agent_id)
        return f"{said or NO_HOOK}. {servers[0].upper()}{servers[1:]}" if servers else said

    def _servers(self, agent_id: AgentId) -> str:
        """That the MCP servers of an agent of ours are its own, where a known program was started as a command."""
        agent, seen = self._core.state.agents[agent_id], self._core.state.seen.get(agent_id)
        if seen is None or agent.control_level is ControlLevel.OBSERVED or started_as(agent.argv) is not None:
            return ""
        kind = next((one for one in KINDS if one.name.replace("-", "_") in seen.sources), None)
        return own_servers(kind) if kind is not None else ""

    def _judged(self, agent_id: AgentId) -> str:
        heard = self._agents.get(agent_id)
        if heard is not None:
            if heard.broken_off:
                return BROKEN_OFF.format(broken_off=heard.broken_off, calls=counted(heard.calls, "tool call"))
            first = time.strftime("%H:%M:%S", time.localtime(heard.since))
            return f"enforced: {counted(heard.calls, 'tool call')} checked, the first at {first}"
        started = started_as(self._core.state.agents[agent_id].argv)
        if started is None:
            return ""
        return "not enforced: no call has reached the supervisor" if is_judged(started) else "not checked: it was started without our hook"

    def _note(self, call: HookCall, agent_id: AgentId) -> None:
        heard = self._heard.setdefault(call.program, _Heard())
        heard.note()
        self._sessions.pop(call.session, None)
        self._sessions[call.session] = heard.last_at
        for one in self._held_by(agent_id):
            held = self._agents.pop(one, _Heard())
            held.note()
            self._agents[one] = held
        while len(self._sessions) > SESSIONS_MAX:
            del self._sessions[next(iter(self._sessions))]
        while len(self._agents) > SESSIONS_MAX:
            del self._agents[next(iter(self._agents))]

    def _held_by(self, agent_id: AgentId) -> set[AgentId]:
        """Return the sub-agent and the agent in which it runs: the call passes the hook of that agent, so both are held."""
        seen = self._core.state.seen.get(agent_id)
        return {agent_id, (seen.inside if seen is not None else None) or agent_id}

    def _rows(self, call: HookCall, *, session_only: bool = False) -> list[AgentId]:
        """Of the session, or of the sub-agent that asks: a part of its session, or, as some programs have it, a thread of its own."""
        state = self._core.state
        wanted = {(call.session, "")} if session_only or not call.sub_agent else {(call.session, call.sub_agent), (call.sub_agent, "")}
        return [i for i in state.live if (seen := state.seen.get(i)) is not None and (seen.session, seen.part) in wanted]

    def _runs_in(self, agent_id: AgentId, pid: int) -> bool:
        """Whether the process that asks descends from this session's own process, by pid and start time."""
        agent = self._core.state.agents[agent_id]
        if agent.process is None or agent.control_level not in (ControlLevel.OBSERVED, ControlLevel.ADOPTED):
            return False
        current = pid
        for _ in range(ANCESTORS):
            if current == agent.process.pid:
                return processes.start_ticks(current) == agent.process.start_ticks
            if current <= 1:
                return False
            current = processes.parent(current)
        return False

    def _part_of(self, session: AgentId, call: HookCall) -> AgentId:
        """The sub-agent's own row below this session, else the session: what runs in it is its to answer for."""
        if call.sub_agent:
            below = set(self._core.state.subtree(session))
            for part in self._rows(call):
                if part in below:
                    return part
        return session


def hook_app(desk: HookDesk) -> Starlette:
    """What is behind ``hooks.sock``: one route, and no other."""

    async def hook(request: Request) -> Response:
        body = await body_of(request, HookBody)
        try:
            call = read_call(body.program, body.payload)
        except ConsoleError as error:
            return answer(HookVerdict(verdict="deny", rule="hook", reason=error.what))
        agent_id, why = await desk.of_seen(call, int(request.scope.get(PID, 0))) if call.request is not None else (None, "")
        return answer(await desk.ask(call, agent_id, request.is_disconnected, why))

    return Starlette(routes=[Route("/v1/hook", hook, methods=["POST"])], exception_handlers=refusals())


def hook_routes(desk: HookDesk) -> Handlers:
    """GET /api/hooks, for operators."""

    async def view(_request: Request) -> Response:
        return answer(desk.view())

    return {ep.HOOKS: view}
