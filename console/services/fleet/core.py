"""The loop: events into the engine, commands to the runner. Everything that changes what Watchfloor believes goes through ``post``."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Protocol

from console.domain.agent import AgentId, LaunchRequest
from console.domain.calls.permission import Decision, Verdict
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.errors import ConsoleError, NotFound
from console.enforcement.engine import Engine
from console.enforcement.state import EngineState
from console.services.fleet.hub import Hub
from console.services.fleet.meters import Meters
from console.services.notices.pending import PendingNotices

RULES_MAX = 100
"""Rules whose verdicts are counted by name; later ones are counted together."""
RULE_CHARS = 120


def now() -> tuple[float, float]:
    """(seconds since the epoch, CLOCK_BOOTTIME seconds)."""
    return time.time(), time.clock_gettime(time.CLOCK_BOOTTIME)


def beat_in(period_s: float) -> float:
    """Return the seconds until the next multiple of the period on the loop's clock. Loops of one period so wake together."""
    return period_s - asyncio.get_running_loop().time() % period_s if period_s > 0 else 0.0


async def wait_beat(period_s: float) -> None:
    """Sleep until the next multiple of the period, so that an idle process wakes once for all its loops."""
    await asyncio.sleep(beat_in(period_s))


class Ports(Protocol):
    """What the loop needs of the services around it. The composition that makes a loop provides them all."""

    def run(self, command: c.Command) -> None:
        """Carries out one command; returns at once."""

    def check(self, request: LaunchRequest) -> None:
        """Refuses a launch before the engine hears of it (a full disk). Raises ConsoleError."""

    def shape(self, request: LaunchRequest) -> LaunchRequest:
        """The launch as strict as its agent's type. Raises ConsoleError."""

    async def weigh(self, request: LaunchRequest, by: str) -> None:
        """Refuse a launch whose words name dangerous operations that no operator confirmed."""

    def heard(self, step: e.Event | c.Command) -> None:
        """Take every event and every command after it was carried out. Never blocks."""


@dataclass(slots=True)
class Tally:
    """What was decided since this start, as sums."""

    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By verdict and rule."""
    halted: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Agents that a limit halted, by scope and limit."""
    _rules: set[str] = field(default_factory=set)

    def decided(self, verdict: Verdict, rule: str) -> None:
        """Counts one verdict. The id of an approval or a plan is no rule, and a text is as long as a label may be."""
        kind = rule.split(" ", 1)[0]
        name = kind if kind in ("approval", "plan") else rule[:RULE_CHARS].encode(errors="backslashreplace").decode()
        if name not in self._rules and len(self._rules) >= RULES_MAX:
            name = "other"
        self._rules.add(name)
        self.verdicts[verdict.value, name] += 1

    def carried_out(self, command: c.Command, state: EngineState) -> None:
        """Counts what a command says of limits, and of calls that a person decides."""
        match command:
            case c.HaltAgents(agent_ids, _):
                self.halted.update((halt.scope, halt.limit) for i in agent_ids if (halt := state.agents[i].halt) is not None)
            case c.KeepApproval(approval, None):
                self.decided(Verdict.ASK, approval.rule)
            case _:
                pass


@dataclass(slots=True)
class Core:
    """Engine, hub and meters on the event loop's thread."""

    engine: Engine
    ports: Ports
    hub: Hub = field(default_factory=Hub)
    meters: Meters = field(default_factory=Meters)
    loop: asyncio.AbstractEventLoop | None = None
    dirty: set[AgentId] = field(default_factory=set)
    launches: dict[AgentId, asyncio.Future[None]] = field(default_factory=dict)
    switching: dict[AgentId, asyncio.Task[None]] = field(default_factory=dict)
    """Network switches under way."""
    unsaved: list[asyncio.Future[None]] = field(default_factory=list)
    hurry: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a caller waits for the next write."""
    answers: dict[str, asyncio.Future[object]] = field(default_factory=dict)
    asked: dict[str, e.PermissionAsked] = field(default_factory=dict)
    """Permission requests not answered yet, as they were asked."""
    tally: Tally = field(default_factory=Tally)
    untold: PendingNotices = field(default_factory=PendingNotices)
    """Notices that no answer has carried to their agents yet."""
    _judged: asyncio.Event = field(default_factory=asyncio.Event)
    """Set, and replaced, whenever a kill was judged or given up."""

    @property
    def state(self) -> EngineState:
        """The engine's state, to read."""
        return self.engine.state

    def post(self, event: e.Event) -> None:
        """One step; only on the loop's thread."""
        if isinstance(event, e.PermissionAsked):
            self.asked[event.request_id] = event
        for command in self.engine.step(event):
            self.tally.carried_out(command, self.state)
            self.ports.run(command)
            self.ports.heard(command)
        self.ports.heard(event)
        if isinstance(event, e.KillJudged | e.StopOver):
            self._judged.set()
            self._judged = asyncio.Event()

    def post_from_thread(self, event: e.Event) -> None:
        """The same from any thread."""
        if self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.post, event)

    def publish_from_thread(self, kind: str, data: dict[str, Any]) -> None:
        """Hands a change to every console, from any thread."""
        if self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.hub.publish, kind, data)

    async def judged_by_kill(self, agent_id: AgentId) -> None:
        """Returns once no kill of this agent is open; at once when there is none."""
        while agent_id in self.state.killing:
            await self._judged.wait()

    async def saved(self) -> None:
        """Returns once everything posted so far is on disk; many waiters share one write."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.unsaved.append(future)
        self.hurry.set()
        await future

    def settle_launch(self, agent_id: AgentId, error: ConsoleError | None) -> None:
        """Tell the caller of the launch how it went."""
        future = self.launches.pop(agent_id, None)
        if future is not None and not future.done():
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

    def admitted(self, request: LaunchRequest) -> LaunchRequest:
        """The launch as the engine would hear of it. Raises what it is refused with before that."""
        self.ports.check(request)
        return self.ports.shape(request)

    async def ask_launch(self, request: LaunchRequest, by: str) -> AgentId:
        """Asks the engine and waits until the agent runs; raises what it was refused with."""
        request.check()
        request = self.admitted(request)
        await self.ports.weigh(request, by)
        agent_id = AgentId(f"a-{secrets.token_hex(4)}")
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.launches[agent_id] = future
        self.post(e.LaunchAsked(*now(), agent_id, request, by))
        await future
        return agent_id

    def settle_answer(self, request_id: str, answer: object) -> None:
        """Answers a waiting permission request."""
        self.asked.pop(request_id, None)
        future = self.answers.pop(request_id, None)
        if future is not None and not future.done():
            if isinstance(answer, Decision) and answer.verdict is not Verdict.ASK:  # those were counted when they were asked
                self.tally.decided(answer.verdict, answer.rule)
            future.set_result(answer)

    def name_of(self, agent_id: str) -> str:
        """The agent's name, or nothing."""
        agent = self.state.agents.get(AgentId(agent_id))
        return agent.name if agent else ""

    def agent_or_404(self, agent_id: str) -> AgentId:
        """The id, checked."""
        if agent_id not in self.state.agents:
            raise NotFound(f"There is no agent {agent_id[:80]!r}.", "watchfloor fleet lists the agents.")
        return AgentId(agent_id)
