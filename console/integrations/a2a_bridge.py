"""An A2A server whose tasks are Watchfloor agents: it starts them with an operator's rights, and decides nothing for its peers.

A pending approval of a task's agents shows as INPUT_REQUIRED. A peer's message never answers it, only an operator does. ``tasks/cancel``
stops that task's agent with all that it started. The task is CANCELED only when the receipt confirms that all are dead. (A module called
a2a would hide the real one from a program that has this folder on its path.)

    api = ApiClient(find_places("", create=False))
    app = application(Bridge(api, LaunchBody(argv=["python3", "agent.py"])), card)   # the peer's text: $A2A_MESSAGE
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from a2a.helpers.proto_helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import Event, EventQueue
from a2a.server.request_handlers import DefaultRequestHandlerV2
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCard, CancelTaskRequest, Message, SendMessageRequest, Task, TaskState
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError
from starlette.applications import Starlette

from console.api.client.api_client import ApiClient
from console.api.messages import AgentView, LaunchBody
from console.api.policy.approvals import ApprovalRow
from console.domain.errors import Conflict, ConsoleError, NotFound, TimedOut, Unreachable
from console.domain.kill import Receipt
from console.domain.verdict import verdict

TEXT_MAX = 64 * 1024
"""Characters of a peer's message, and bytes of the output that the task gets as its artifact."""
SHOWN_MAX = 10
"""Pending approvals of one task that its status lists."""
TOLD_S = 30.0
"""Seconds between a confirmed stop and its CANCELED, when the peer that asked for it has hung up."""
ROUNDS = 3
"""Rounds of looking for what is left and killing it."""
ENDED = frozenset(
    (TaskState.TASK_STATE_COMPLETED, TaskState.TASK_STATE_FAILED, TaskState.TASK_STATE_CANCELED, TaskState.TASK_STATE_REJECTED)
)
OVER = frozenset(("ended", "failed", "halted", "killed", "lost"))
"""States of an agent of which nothing runs; whatever else is told, something may."""
_TASK = re.compile(r"[A-Za-z0-9_.:-]{1,120}\Z")
_OURS = ("contained", "managed")
UNKNOWN = "Watchfloor knows nothing of its agent any more: whether it runs is not known."
DEAF = "An agent works on this task. What it waits for is decided by an operator of Watchfloor, never by a message."


@dataclass
class Run:
    """One task and its agent."""

    agent_id: str = ""
    launched: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once it is known whether there is an agent."""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """A look that is told and a stop never cross."""
    stopped: str = ""
    """The kills whose receipts proved zero."""
    told: asyncio.Event = field(default_factory=asyncio.Event)
    trouble: str = ""
    """Why a stop is not proven."""


class Bridge(AgentExecutor):
    """Run each task as an agent in a session of its own. Agents outlive the server: a later server finds them by the task's name."""

    def __init__(self, api: ApiClient, body: LaunchBody, every_s: float = 0.5, at_once: int = 20) -> None:
        """``body``: what is started, the host's words alone. A peer's text goes into ``A2A_MESSAGE``, never onto a command line.

        ``every_s``: between two looks at a task; ``at_once``: tasks that run, so that no peer starts agents without end.
        """
        self._api, self._body, self._every_s, self._at_once = api, body, every_s, at_once
        self._runs: dict[str, Run] = {}

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Starts the agent and tells of it until it has ended."""
        task_id, text = context.task_id or "", context.get_user_input()
        if context.message is None or task_id in self._runs or context.current_task is not None:
            raise UnsupportedOperationError(DEAF)
        await event_queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(event_queue, task_id, context.context_id or "")
        if not _TASK.match(task_id) or len(text) > TEXT_MAX or "\0" in text:
            await updater.reject(_words(updater, f"A message holds at most {TEXT_MAX} characters, and no NUL."))
            return
        if len(self._runs) >= self._at_once:
            await updater.reject(_words(updater, f"{self._at_once} tasks run already."))
            return
        run = self._runs[task_id] = Run()
        try:
            if why := await self._start(run, task_id, text):
                await updater.reject(_words(updater, why))
                return
            await self._follow(run, updater)
        finally:
            run.launched.set()
            self._runs.pop(task_id, None)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """CANCELED, with the receipt's id, when zero is proven. Raises TaskNotCancelableError when it is not."""
        task_id = context.task_id or ""
        run = self._runs.get(task_id) or await self._found(task_id)
        if why := await self._stopped(run, task_id):
            raise TaskNotCancelableError(f"Not confirmed to be stopped: {why}")
        assert run is not None
        updater = TaskUpdater(event_queue, task_id, context.context_id or "")
        await updater.cancel(_words(updater, f"Stopped, with proof: {run.stopped}."))
        run.told.set()

    async def stop(self, task_id: str) -> str:
        """Kill the task's agent with all that it started, and nothing else. Returns empty when all are dead, else why that is unknown."""
        return await self._stopped(self._runs.get(task_id) or await self._found(task_id), task_id)

    async def _stopped(self, run: Run | None, task_id: str) -> str:
        if run is None:
            return "no agent of this task is known"
        await run.launched.wait()
        async with run.turn:
            if not run.stopped:
                try:
                    run.stopped, run.trouble = await asyncio.to_thread(self._kill, run.agent_id, task_id)
                except ConsoleError as error:
                    run.trouble = f"{error.what} {error.remedy}".strip()
            return "" if run.stopped else run.trouble or "the kill is not confirmed"

    def _kill(self, agent_id: str, task_id: str) -> tuple[str, str]:
        """(what proves it, why not): the tree, or what lives of it although who started it has ended. Blocks."""
        proofs: list[str] = []
        for _ in range(ROUNDS):
            left = self._left(agent_id)
            if left is None:
                return "", UNKNOWN
            if not left:  # what ended by itself leaves no receipt, so no proof either
                return ", ".join(proofs), "" if proofs else "it has ended by itself; there is nothing to cancel"
            above = {agent.id for agent in left}
            for top in (agent for agent in left if agent.parent_id not in above):
                try:
                    receipt = self._api.kill(top.id, tree=True, reason=f"A2A tasks/cancel of {task_id}")
                except Conflict:
                    continue  # it ended meanwhile; looked at again
                if not _proves(receipt):
                    words = ", ".join(f"{t.agent_id}: {t.outcome}" for t in receipt.targets[:SHOWN_MAX])
                    return "", f"receipt {receipt.kill_id} does not prove zero ({words or 'no target'})"
                proofs.append(f"receipt {receipt.kill_id}")
        return "", "something of it still lives"

    def _left(self, agent_id: str) -> list[AgentView] | None:
        """Return the agents of its tree that may live; None when the agent is unknown."""
        agents = self._api.fleet().agents
        if all(agent.id != agent_id for agent in agents):
            return None
        return [agent for agent in _tree(agents, agent_id) if agent.state not in OVER]

    async def _found(self, task_id: str) -> Run | None:
        """The agent of a task that an earlier server started: a root of ours with that very name, which no agent can give itself."""
        if not _TASK.match(task_id):
            return None
        try:
            agents = (await asyncio.to_thread(self._api.fleet)).agents
        except ConsoleError:
            return None
        named = [a.id for a in agents if a.name == _name(task_id) and a.parent_id is None and a.control_level in _OURS]
        if len(named) != 1:
            return None
        run = Run(named[0])
        run.launched.set()
        return run

    async def _start(self, run: Run, task_id: str, text: str) -> str:
        """Empty once it runs; else why not."""
        body = self._body.replaced(name=_name(task_id), env={**self._body.env, "A2A_MESSAGE": text})
        try:
            run.agent_id = (await asyncio.to_thread(self._api.launch, body)).id
        except (TimedOut, Unreachable) as error:
            # It may run all the same.
            found = await self._found(task_id)
            if found is None:
                return f"It is not known whether it was started: {error.what} {error.remedy}"
            run.agent_id = found.agent_id
        except ConsoleError as error:
            return f"{error.what} {error.remedy}".strip()
        finally:
            run.launched.set()
        return ""

    async def _follow(self, run: Run, updater: TaskUpdater) -> None:
        shown: tuple[int, str] | None = None
        while True:
            async with run.turn:
                if run.stopped:
                    break
                over, state, words, asked = await asyncio.to_thread(self._look, run)
                if over:
                    await self._end(run, updater, state, words)
                    return
                if (state, words) != shown:
                    shown = (state, words)
                    await updater.update_status(state, message=_words(updater, words) if words else None, metadata=asked)
            await asyncio.sleep(self._every_s)
        try:
            async with asyncio.timeout(TOLD_S):
                await run.told.wait()
        except TimeoutError:  # the peer that cancelled it has hung up
            await updater.cancel(_words(updater, f"Stopped, with proof: {run.stopped}."))

    def _look(self, run: Run) -> tuple[bool, TaskState, str, dict[str, Any] | None]:
        """Return (has ended, state, words, what waits). Blocks. An agent that cannot be seen does not count as ended."""
        working = TaskState.TASK_STATE_WORKING
        try:
            mine = self._api.agent(run.agent_id).agent
            left = self._left(run.agent_id) if mine.state in OVER else []
            rows = [row for row in self._api.approvals().waiting if row.root_id == run.agent_id]
        except NotFound:
            return False, working, UNKNOWN, None
        except ConsoleError as error:
            return False, working, f"How it is, is not known: {error.what}", None
        if left is None:
            return False, working, UNKNOWN, None
        if mine.state in OVER and not left:
            done = mine.state == "ended" and mine.exit_code == 0
            words = "" if done else f"Its agent is {mine.state}. {mine.state_reason}".strip()
            return True, TaskState.TASK_STATE_COMPLETED if done else TaskState.TASK_STATE_FAILED, words, None
        if run.trouble:
            return False, working, f"Not confirmed to be stopped: {run.trouble}", None
        if rows:
            return False, TaskState.TASK_STATE_INPUT_REQUIRED, _question(rows), {"watchfloor": [_asked(row) for row in rows[:SHOWN_MAX]]}
        return False, working, f"Its agent is {mine.state}; {len(left)} that it started still run." if left else "", None

    async def _end(self, run: Run, updater: TaskUpdater, state: TaskState, words: str) -> None:
        try:
            output = await asyncio.to_thread(self._api.output, run.agent_id)
            text, total = output.text[:TEXT_MAX], output.total
        except ConsoleError as error:
            text, total = "", 0
            words = f"{words} Its output cannot be had: {error.what}".strip()
        if text:
            cut = {"watchfloor": {"bytes": total}} if total > len(text.encode()) else None
            await updater.add_artifact([new_text_part(text)], name="output", metadata=cut)
        await updater.update_status(state, message=_words(updater, words) if words else None)


class BridgeHandler(DefaultRequestHandlerV2):
    """The SDK's handler, but that it calls nothing canceled that is not proven to be stopped, and takes no message for a decision."""

    def __init__(self, bridge: Bridge, card: AgentCard, store: TaskStore) -> None:
        super().__init__(agent_executor=bridge, task_store=store, agent_card=card)
        self._bridge, self._store = bridge, store

    async def on_cancel_task(self, params: CancelTaskRequest, context: Any) -> Task | None:
        """First the kill and its proof; the SDK would write CANCELED for a task that it does not hold, or whose cancel broke off."""
        task = await self._store.get(params.id, context)
        if task is None:
            raise TaskNotFoundError
        if task.status.state in ENDED:
            raise TaskNotCancelableError
        if why := await asyncio.shield(self._bridge.stop(params.id)):
            raise TaskNotCancelableError(f"Not confirmed to be stopped: {why}")
        done: Task | None = await super().on_cancel_task(params, context)
        return done

    async def on_message_send(self, params: SendMessageRequest, context: Any) -> Message | Task:
        """Start a new task. A message to an existing task reaches no agent, and the answer tells that."""
        await self._is_new(params, context)
        answer: Message | Task = await super().on_message_send(params, context)
        return answer

    async def on_message_send_stream(self, params: SendMessageRequest, context: Any) -> AsyncGenerator[Event, None]:
        """The same as a stream."""
        await self._is_new(params, context)
        async for event in super().on_message_send_stream(params, context):
            yield event

    async def _is_new(self, params: SendMessageRequest, context: Any) -> None:
        if not params.message.task_id:
            return
        if await self._store.get(params.message.task_id, context) is None:
            raise TaskNotFoundError
        raise UnsupportedOperationError(DEAF)


def application(bridge: Bridge, card: AgentCard, store: TaskStore | None = None, **more: Any) -> Starlette:
    """JSON-RPC at / and the card. Who may call is the host's to say: ``context_builder`` names the user, whose tasks are his alone."""
    handler = BridgeHandler(bridge, card, store or InMemoryTaskStore())

    @asynccontextmanager
    async def closed_at_the_end(_app: Starlette) -> AsyncIterator[None]:
        yield
        await handler.aclose()

    served = [*create_jsonrpc_routes(handler, "/", **more), *create_agent_card_routes(card)]
    return Starlette(routes=served, lifespan=closed_at_the_end)


def _name(task_id: str) -> str:
    return f"a2a {task_id}"


def _tree(agents: Iterable[AgentView], root: str) -> list[AgentView]:
    """The agent and all that descend from it, from the top down."""
    known, found = list(agents), [a for a in agents if a.id == root]
    for above in found:
        found += [a for a in known if a.parent_id == above.id]
    return found


def _proves(receipt: Receipt) -> bool:
    return verdict(receipt).verified_zero and bool(receipt.targets)


def _words(updater: TaskUpdater, text: str) -> Message:
    return updater.new_agent_message([new_text_part(text)])


def _asked(row: ApprovalRow) -> dict[str, Any]:
    return {"approval_id": row.id, "digest": row.digest, "tool": row.tool, "argument": row.argument, "rule": row.rule, "left_s": row.left_s}


def _question(rows: list[ApprovalRow]) -> str:
    """What an operator is asked; the same words for the same questions."""
    lines = [f"{row.id}: {row.tool} {row.argument[:1000]} ({row.rule}: {row.reason}; sha256 {row.digest})" for row in rows[:SHOWN_MAX]]
    more = [f"and {len(rows) - SHOWN_MAX} more"] if len(rows) > SHOWN_MAX else []
    return "\n".join(["An operator of Watchfloor is asked; a message to this task decides nothing:", *lines, *more])
