"""Execute calls for agents. Each is checked like any other call, then run as the parsed argv in a sandbox inside the agent's own cgroup.

What runs is what was checked: just before the start it is checked once more, with the same verdict and the same files. No call runs without
its record, longer than its time, or after its caller has hung up. A kill or freeze of the agent takes its calls with it, even when this
process hangs.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ParamSpec, TypeVar

from console.api.agents.execute import ExecuteBegun, ExecuteBody, ExecuteEnded
from console.credentials.keyring_store import Store
from console.domain.agent import Agent, AgentId, SandboxKind
from console.domain.calls.permission import Decision, PermissionRequest, Verdict
from console.domain.engine import command as c
from console.domain.errors import Conflict, ConsoleError, Denied, Frozen, Killed, TooMany, Unavailable
from console.domain.guard import AGENT_VARIABLE, INSTANCE_VARIABLE
from console.domain.message import Message
from console.killswitch.client.guard_client import GuardClient
from console.policy.rules.verdicts import Part
from console.policy.shell.commands import SEARCH
from console.rollback.store import RollbackStore
from console.sandbox.calls import execution
from console.sandbox.calls.execution import CallSpec, Ended, Execution
from console.sandbox.calls.plans import TOOLS, Plan, plan_of
from console.sandbox.interface import Ticket
from console.services.execute.judgement import CallJudging, Left
from console.services.execute.output import CallOutput
from console.services.execute.rollback import Kept, keep, note_after
from console.services.fleet.core import Core
from console.services.notices.shown import Notice
from console.services.records.record_writer import Scribe
from console.settings.options import Options
from console.settings.places import Places

TICK_S = 0.2
HEARD_S = 10.0
"""Seconds that a call runs before its caller has begun to listen."""
OVER_TRIES = 20
"""Tries to remove a cgroup, TICK_S apart: it stays busy for a moment after its last process."""
MOST = 32
"""Executed calls of all agents at once."""
NO_NETWORK = "nothing: an executed call has loopback only"
_P = ParamSpec("_P")
_R = TypeVar("_R")


@dataclass(slots=True)
class Running:
    """One call under way, as its task and its asker share it."""

    call_id: str
    agent_id: AgentId
    plan: Plan
    begun: ExecuteBegun
    timeout_s: float
    parts: tuple[Part, ...] = ()
    """What it names, as it was judged just before."""
    kept: Kept = field(default_factory=Kept)
    """Of that, what was kept for a rollback."""
    lines: asyncio.Queue[Message | None] = field(default_factory=asyncio.Queue)
    """What the asker is told; None: no more."""
    left: bool = False
    """The caller does not listen any more."""
    heard: bool = False
    """The caller has begun to listen."""


@dataclass(slots=True)
class Clock:
    """The time that a call has used. Time in which its agent is frozen does not count."""

    at: float
    used: float = 0.0

    def tick(self, at: float, is_frozen: bool) -> None:
        """It is ``at`` now (CLOCK_MONOTONIC), and so it was since the last tick."""
        self.used += 0.0 if is_frozen else at - self.at
        self.at = at


class ExecuteDesk:
    """On the event loop's thread; what blocks runs in threads."""

    __slots__ = (
        "running", "_tasks", "_asking", "_threads", "_core", "_scribe", "_client", "_rollback", "_keyring", "_places", "_all_options",
        "_options", "_notice", "_judging"
    )  # fmt: skip

    def __init__(
        self, core: Core, scribe: Scribe, guard: GuardClient, rollback: RollbackStore, keyring: Store, places: Places,
        options: Options, notice: Notice, judging: CallJudging,
    ) -> None:  # fmt: skip
        self._core, self._scribe, self._client, self._rollback, self._keyring = core, scribe, guard, rollback, keyring
        self._places, self._all_options, self._options, self._notice, self._judging = places, options, options.execute, notice, judging
        self.running: dict[str, Running] = {}
        """Those that start too."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._asking: Counter[AgentId] = Counter()
        # Threads of their own: an agent that makes the start of its calls slow keeps nothing else of this process waiting, a kill least.
        self._threads = ThreadPoolExecutor(MOST, "executing")

    async def begin(self, agent_id: AgentId, body: ExecuteBody, left: Left) -> Running:
        """Judges, waits for a human where one is asked, and starts it. Raises ConsoleError; then nothing was executed."""
        self._refuse_too_many(agent_id)
        self._asking[agent_id] += 1
        try:
            call, spec, request = await self._agreed(agent_id, body, left)
        finally:
            self._asking[agent_id] -= 1
            self._asking += Counter()  # those that ask nothing are forgotten
        if len(self.running) >= MOST:  # others were let in while a human thought
            raise _too_many(len(self.running), "all agents")
        self.running[call.call_id] = call
        # A task of its own: whoever asked may be gone in the middle of it, and what a thread is building must not be lost sight of.
        task = self._in_background(self._start(call, spec, request))
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            call.left = True
            raise
        return call

    async def _agreed(self, agent_id: AgentId, body: ExecuteBody, left: Left) -> tuple[Running, CallSpec, PermissionRequest]:
        state = self._core.state
        await asyncio.to_thread(_refuse_unless_possible, state.agents[agent_id])
        request = PermissionRequest(TOOLS[body.tool], body.argument, body.cwd, says=body.says, call_id=body.call_id)
        await _refuse_what_never_runs(self._judging, self._places, self._scribe, state.agents[agent_id], body, request)
        decision, judged = await self._judging.decided(agent_id, request, left)
        agent = state.agents[agent_id]
        found = await self._judging.again(agent, request, judged)
        call_id = secrets.token_hex(8)
        plan = plan_of(body.tool, body.argument, judged.steps, self._places.workspaces_dir / agent.context_id)
        timeout = min(body.timeout_s or self._options.timeout_s, self._options.timeout_max_s)
        spec = spec_of(self._places, self._all_options, agent, call_id)
        begun = _begun(call_id, decision, plan, spec, timeout, self._options.output_max_kib * 1024)
        return Running(call_id, agent_id, plan, begun, timeout, found.parts), spec, request

    def _refuse_too_many(self, agent_id: AgentId) -> None:
        mine = sum(call.agent_id == agent_id for call in self.running.values()) + self._asking[agent_id]
        if mine >= self._options.at_once:
            raise _too_many(mine, "this agent")
        if len(self.running) >= MOST:
            raise _too_many(len(self.running), "all agents")

    async def close(self) -> None:
        """The supervisor ends: so do its calls."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._threads.shutdown(wait=False)

    # -- running -------------------------------------------------------------------------------------------------------------

    async def _start(self, call: Running, spec: CallSpec, request: PermissionRequest) -> None:
        try:
            running = await self._started(call, spec, request)
        except BaseException:
            self.running.pop(call.call_id, None)
            raise
        call.lines.put_nowait(call.begun)
        self._in_background(self._follow(call, running))

    async def _started(self, call: Running, spec: CallSpec, request: PermissionRequest) -> Execution:
        """Record, the guard's group, the sandbox behind its gate, the guard's word, go. Raises ConsoleError with nothing left."""
        # 1. What it names is kept, and the record, first: no audit, no action (promise 5).
        await self._keep(call)
        await self._in_thread(self._scribe.record_first, _record(call, request))
        running: Execution | None = None
        is_wanted = lambda: not (call.left or self._stopped(call.agent_id))  # noqa: E731 - so long a freeze holds what is being built
        try:
            # 2. A group below the agent's own leaf: whatever stops the agent stops this.
            answer = await self._guard("call", call, pids_max=spec.pids_max, memory_max=spec.memory_max_bytes)
            ticket = Ticket(str(answer["leaf"]), tuple(answer["limit_leaves"]), int(answer["generation"]))
            # 3. Everything built, nothing of the call run.
            running = await self._in_thread(execution.start, spec, call.plan, ticket, is_wanted)
            # 4. The guard's word; a press in between wins.
            pid, ticks = running.process
            await self._guard("call_go", call, generation=ticket.generation, pid=pid, start_ticks=ticks)
            self._refuse_if_stopped(call)
            # 5. Looked at from inside; then it runs, and whatever stops it from now on is its end.
            await self._in_thread(running.go, is_wanted)
        except (ConsoleError, OSError, asyncio.CancelledError) as error:
            call.left = call.left or isinstance(error, asyncio.CancelledError)  # a thread that still builds it gives up
            await self._let_go(call, running)
            why = str(error) or "the supervisor ends"
            self._scribe.record(
                c.Record("supervisor", "execute.broke", why[:400], verdict="failed", agent_id=call.agent_id, data=_data(call))
            )
            if isinstance(error, OSError):
                raise Unavailable(f"The call could not be started: {error.strerror}.", "watchfloor doctor shows why.") from error
            raise
        return running

    async def _keep(self, call: Running) -> None:
        agent, workspace = self._core.state.agents[call.agent_id], self._places.workspaces_dir
        is_code, root = call.plan.code is not None, workspace / agent.context_id
        call.kept = await self._in_thread(keep, self._rollback, agent, call.parts, root, is_code=is_code)
        call.begun = call.begun.replaced(**call.kept.as_data())

    def _refuse_if_stopped(self, call: Running) -> None:
        if why := self._stopped(call.agent_id) or ("the caller hung up" if call.left else ""):
            raise Killed(f"Not executed: {why}.", "")

    def _stopped(self, agent_id: AgentId) -> str:
        """Why nothing of this agent runs any more."""
        state = self._core.state
        agent = state.agents.get(agent_id)
        if state.killed or agent_id in state.killing or agent_id in state.halting:
            return "its agent was stopped"
        return "" if agent is not None and agent.state.is_live else "its agent has ended"

    async def _guard(self, op: str, call: Running, **fields: int) -> dict[str, Any]:
        """Its answer; while the agent is frozen the call is held."""
        while True:
            try:
                return await self._in_thread(self._client.call, op, agent_id=call.agent_id, call=call.call_id, **fields)
            except Frozen:
                self._refuse_if_stopped(call)
            await asyncio.sleep(TICK_S)

    async def _in_thread(self, function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(function, *args, **kwargs))

    def _in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _follow(self, call: Running, running: Execution) -> None:
        """Until it has ended, by itself or by a limit; then the proof, the record and the last line."""
        began, why = time.monotonic(), "the supervisor ended"
        redact = self._keyring.redactor.redact_bytes
        output = CallOutput(running.stdout, running.stderr, self._options.output_max_kib * 1024, call.lines.put_nowait, redact)
        try:
            why = await self._watched(call, running, output)
        finally:
            output.stop()
            proven = await self._in_thread(running.finish)
            output.drain()
            ended = await self._in_thread(running.ended)
            limit = why or await self._in_thread(running.hit)
            line = _ended(ended, limit, int((time.monotonic() - began) * 1000), output, proven)
            await self._let_go(call, running)
            self._scribe.record(_record_of_end(call, line))
            for record_id, state in await self._in_thread(note_after, self._rollback, call.kept):
                self._core.hub.publish("rollback", {"record_id": record_id, "state": state})
            if not proven:
                self._notice(f"an executed call of {call.agent_id} has not ended yet; a kill of the agent reaches it", "red")
            self.running.pop(call.call_id, None)
            call.lines.put_nowait(line)
            call.lines.put_nowait(None)

    async def _watched(self, call: Running, running: Execution, output: CallOutput) -> str:
        """Why it was ended; empty: it ended by itself. Time in which its agent is frozen does not count."""
        over, loop = asyncio.Event(), asyncio.get_running_loop()
        loop.add_reader(running.pidfd, over.set)
        output.start()
        clock = Clock(time.monotonic())
        try:
            while not over.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(TICK_S, max(0.01, call.timeout_s - clock.used))):
                        await over.wait()
                agent = self._core.state.agents.get(call.agent_id)
                clock.tick(time.monotonic(), agent is not None and bool(agent.causes))
                if not over.is_set() and (why := _over(call, clock.used, output) or self._stopped(call.agent_id)):
                    return why
        finally:
            loop.remove_reader(running.pidfd)
        return self._stopped(call.agent_id) if running.ended().code == 137 else ""

    async def _let_go(self, call: Running, running: Execution | None) -> None:
        if running is not None:
            await self._in_thread(running.finish)
            running.close()
        for _ in range(OVER_TRIES):  # what is left of it then goes with the agent's own leaf
            try:
                await self._guard("call_over", call)
            except Conflict:
                await asyncio.sleep(TICK_S)
            except ConsoleError:
                return
            else:
                return


def _over(call: Running, used: float, output: CallOutput) -> str:
    """Which bound of its own a call has reached, in words; empty: none."""
    if used >= call.timeout_s:
        return f"time limit {call.timeout_s:g} s"
    if call.left or (not call.heard and used > HEARD_S):
        return "the caller hung up"
    return f"output limit {output.flood_bytes >> 20} MiB" if output.is_flood else ""


async def _refuse_what_never_runs(
    judging: CallJudging, places: Places, scribe: Scribe, agent: Agent, body: ExecuteBody, request: PermissionRequest
) -> None:
    """Before a human is asked: an approval of a call that is refused afterwards wastes their attention. Raises Denied, on record."""
    found = await judging.now(agent, request)
    if found.verdict is not Verdict.ASK:
        return
    try:
        plan_of(body.tool, body.argument, found.steps, places.workspaces_dir / agent.context_id)
    except Denied as error:
        what, data = f"{request.tool} {request.argument}"[:400], {"reason": str(error)[:400]}
        scribe.record(c.Record(f"agent:{agent.agent_id}", "execute.refused", what, verdict="deny", agent_id=agent.agent_id, data=data))
        raise


def _too_many(number: int, whose: str) -> TooMany:
    return TooMany(f"{number} calls of {whose} are executed already.", "Wait until one of them has ended.")


def _refuse_unless_possible(agent: Agent) -> None:
    """Raises Unavailable where no call of this agent can be executed."""
    if agent.sandbox in (SandboxKind.DOCKER, SandboxKind.GVISOR):
        why = "its files are an image's: the program files there were not checked"
    else:
        why = execution.why_not()
    if why:
        raise Unavailable(f"Executing calls is not available, because {why}.", "Ask for permission, and run it in the agent's own program.")


def _begun(call_id: str, decision: Decision, plan: Plan, spec: CallSpec, timeout: float, output_max: int) -> ExecuteBegun:
    limits = {"timeout_s": timeout, "memory_max": spec.memory_max_bytes, "pids_max": spec.pids_max, "output_max": output_max}
    return ExecuteBegun(
        id=call_id,
        rule=decision.rule,
        reason=decision.reason,
        programs=plan.programs,
        warnings=list(plan.warnings),
        limits=limits,
        network=NO_NETWORK,
    )


def _ended(ended: Ended, limit: str, ms: int, output: CallOutput, proven: bool) -> ExecuteEnded:
    return ExecuteEnded(
        code=ended.code,
        signal=ended.signal,
        limit=limit,
        refused=ended.refused,
        ms=ms,
        stdout_bytes=output.out.seen,
        stderr_bytes=output.err.seen,
        stdout_cut=output.out.cut,
        stderr_cut=output.err.cut,
        proven=proven,
    )


def _data(call: Running) -> dict[str, object]:
    return {"call_id": call.call_id, "programs": [one[:300] for one in call.plan.programs[:20]]}


def _record(call: Running, request: PermissionRequest) -> c.Record:
    what = f"{request.tool} {request.argument}"[:400]
    data = {**_data(call), "tool": request.tool, "timeout_s": call.timeout_s, "warnings": list(call.plan.warnings), **call.kept.as_record()}
    return c.Record(f"agent:{call.agent_id}", "execute", what, verdict="allow", agent_id=call.agent_id, data=data)


def _record_of_end(call: Running, line: ExecuteEnded) -> c.Record:
    why = line.refused or line.limit
    what = f"exit code {line.code} after {line.ms} ms" + (f": {why}" if why else "")
    data = {**_data(call), **line.as_data(exclude={"event"})}
    verdict = "ok" if line.proven else "not_proven"
    return c.Record(f"agent:{call.agent_id}", "execute.ended", what, verdict=verdict, agent_id=call.agent_id, data=data)


# --- What the sandbox of one executed call is made of: the agent's account and workspace, an environment made from nothing, bounds.


def spec_of(places: Places, options: Options, agent: Agent, call_id: str) -> CallSpec:
    """No socket, no token, no proxy, no key: what an agent has and a call of it does not need is not in there."""
    root = os.geteuid() == 0
    workspace = (places.workspaces_dir / agent.context_id).resolve()
    env = {
        # Where the policy looked for programs, in the same order: what a wrapper runs is what was judged.
        "PATH": ":".join(SEARCH),
        "HOME": "/tmp",  # noqa: S108 - the sandbox's own, empty: nobody's settings are read there
        "TMPDIR": "/tmp",  # noqa: S108
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "WATCHFLOOR_WORKSPACE": str(workspace),
        # By these the second look of a kill knows whatever should ever be found outside of its cgroup.
        AGENT_VARIABLE: agent.agent_id,
        INSTANCE_VARIABLE: places.instance_id,
    }
    return CallSpec(
        agent_id=agent.agent_id,
        workspace=workspace,
        uid=options.agents.uid if root else os.geteuid(),
        gid=options.agents.gid if root else os.getegid(),
        env=env,
        hide=places.hidden,
        pids_max=options.execute.pids_max,
        memory_max_bytes=options.execute.memory_max_mib << 20,
        cpus=options.agents.cpus,
        scratch=places.output_dir / f".{agent.agent_id}.{call_id}",
    )
