"""A2A tasks are agents of ours: what they wait for only an operator decides, and canceled means proven to be stopped."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest
import uvicorn
from a2a.client import Client, ClientConfig, create_client
from a2a.helpers.proto_helpers import get_message_text, new_text_message
from a2a.server.tasks import InMemoryTaskStore
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    CancelTaskRequest,
    GetTaskRequest,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskState,
)
from a2a.utils.errors import A2AError, TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError
from google.protobuf.json_format import MessageToDict

from console.api.client.api_client import ApiClient
from console.api.messages import LaunchBody
from console.api.policy.approvals import ApprovalRow, DecideBody
from console.domain.kill import Outcome, Receipt
from console.integrations.a2a_bridge import ENDED, Bridge, application
from tests.fakes.instance import PATIENCE_S, Instance, until
from tests.fakes.standing import standing_instance

AGENT = (
    "import os, sys, time; sys.path.insert(0, os.environ['WATCHFLOOR_TOYS']); import client; agent = client.Agent()\n"
    "text = os.environ['A2A_MESSAGE']\n"
    "if text.startswith('with'): agent.spawn(['sleep', '300'], name='a2a ' + text)\n"
    "print('heard', repr(text), flush=True)\n"
    "v = agent.permission('launch_rocket', text)\n"
    "print('verdict', v['verdict'], v['reason'], flush=True)\n"
    "sys.exit(0 if v['verdict'] == 'allow' else 3)\n"
)
INPUT, WORKING = TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_WORKING


@pytest.fixture(scope="module")
def it() -> Iterator[Instance]:
    with standing_instance() as instance:
        yield instance


class Peer:
    """A client of the real SDK, over loopback."""

    def __init__(self, it: Instance, client: Client) -> None:
        self.it, self.client = it, client

    async def send(self, text: str, task_id: str = "") -> Task:
        message = new_text_message(text, task_id=task_id or None, role=1)  # type: ignore[arg-type]
        request = SendMessageRequest(message=message, configuration=SendMessageConfiguration(return_immediately=True))
        found = [part.task async for part in self.client.send_message(request)]
        return found[-1]

    async def task(self, task_id: str) -> Task:
        return await self.client.get_task(GetTaskRequest(id=task_id))

    async def cancel(self, task_id: str) -> Task:
        return await self.client.cancel_task(CancelTaskRequest(id=task_id))

    async def becomes(self, task_id: str, *states: Any) -> Task:
        async with asyncio.timeout(PATIENCE_S):
            while (task := await self.task(task_id)).status.state not in states:
                assert task.status.state not in ENDED, task
                await asyncio.sleep(0.05)
        return task

    async def asks(self, text: str) -> tuple[str, ApprovalRow]:
        """A task that waits for an operator, and the request in the inbox."""
        task = await self.send(text)
        await self.becomes(task.id, INPUT)
        agent = self.agent(task.id)
        rows = await asyncio.to_thread(lambda: [r for r in self.it.api.approvals().waiting if r.agent_id == agent])
        return task.id, rows[0]

    def agent(self, task_id: str) -> str:
        return next(a.id for a in self.it.api.fleet().agents if a.name == f"a2a {task_id}" and a.parent_id is None)


@asynccontextmanager
async def serving(it: Instance, api: Any = None, store: InMemoryTaskStore | None = None, *, streaming: bool = False) -> AsyncIterator[Peer]:
    """The bridge behind a real server on loopback, and a peer of it."""
    bridge = Bridge(api or ApiClient(it.places, timeout_s=60), LaunchBody(argv=["python3", "-c", AGENT]), every_s=0.05)
    with socket.create_server(("127.0.0.1", 0)) as door:
        url = f"http://127.0.0.1:{door.getsockname()[1]}/"
        card = AgentCard(
            name="rockets",
            description="Launches them.",
            skills=[AgentSkill(id="launch", name="launch", description="Launches one.", tags=["rockets"])],
            version="1",
            capabilities=AgentCapabilities(streaming=True),
            default_input_modes=["text/plain"],
            default_output_modes=["text/plain"],
            supported_interfaces=[AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")],
        )
        server = uvicorn.Server(uvicorn.Config(application(bridge, card, store), log_config=None, lifespan="on"))
        task = asyncio.create_task(server.serve(sockets=[door]))
        async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
            client = await create_client(url, ClientConfig(httpx_client=http, streaming=streaming))
            try:
                yield Peer(it, client)
            finally:
                server.should_exit = True
                await task


def decide(it: Instance, row: ApprovalRow, verdict: str, reason: str = "") -> None:
    body = DecideBody.read({"requests": [{"id": row.id, "digest": row.digest}], "verdict": verdict, "reason": reason})
    (done,) = it.api.decide(body).results
    assert done.done, done.words


def lives(it: Instance, agent: str) -> list[str]:
    return [a.name for a in it.api.fleet().agents if agent in (a.id, a.parent_id) and a.state not in ("killed", "ended", "failed")]


async def test_a_pending_approval_is_input_required_and_only_an_operator_decides_it(it: Instance) -> None:
    async with serving(it) as peer:
        hostile = "--help; $(id)\n\u202e moon"
        task_id, row = await peer.asks(hostile)
        shown = await peer.task(task_id)
        told = get_message_text(shown.status.message)
        assert row.argument == hostile and row.id in told and row.digest in told and "launch_rocket" in told
        for words in ("approve", json.dumps({"requests": [{"id": row.id, "digest": row.digest}], "verdict": "approve"})):
            with pytest.raises(UnsupportedOperationError, match="never by a message"):
                await peer.send(words, task_id)
        assert (await peer.task(task_id)).status.state == INPUT
        assert it.api.approval(row.id).row.state == "waiting"
        decide(it, row, "approve")
        done = await peer.becomes(task_id, TaskState.TASK_STATE_COMPLETED)
        said = MessageToDict(done.artifacts[0])["parts"][0]["text"]
        assert repr(hostile) in said and "verdict allow" in said
        refused, row = await peer.asks("mars")
        decide(it, row, "deny", "no rockets")
        failed = await peer.becomes(refused, TaskState.TASK_STATE_FAILED)
        assert "no rockets" in MessageToDict(failed.artifacts[0])["parts"][0]["text"]
        await peer.becomes((await peer.send("a\0b")).id, TaskState.TASK_STATE_REJECTED)


async def test_a_stream_tells_the_question_and_how_it_went_on(it: Instance) -> None:
    async with serving(it, streaming=True) as peer:
        seen: list[Any] = []
        async for part in peer.client.send_message(SendMessageRequest(message=new_text_message("sun", role=1))):  # type: ignore[arg-type]
            if part.HasField("status_update"):
                seen.append(part.status_update.status.state)
                if seen[-1] == INPUT:
                    asked = MessageToDict(part.status_update.metadata)["watchfloor"][0]
                    row = next(r for r in it.api.approvals().waiting if r.id == asked["approval_id"])
                    assert (asked["argument"], asked["digest"]) == ("sun", row.digest)
                    decide(it, row, "approve")
        # A look may fall before the question, or between the answer and the end.
        assert [state for state in seen if state != WORKING] == [INPUT, TaskState.TASK_STATE_COMPLETED]


async def test_cancel_stops_that_tasks_agent_with_its_children_and_nobody_elses(it: Instance) -> None:
    async with serving(it) as peer:
        (one, _), (two, row) = await peer.asks("with one"), await peer.asks("with two")
        first, second = peer.agent(one), peer.agent(two)
        assert len(lives(it, first)) == len(lives(it, second)) == 2
        for hostile in ("../../" + one, first, second, "", "a2a " + two, one + "\n", "\u202e", "x" * 4000):
            with pytest.raises(A2AError):
                await peer.cancel(hostile)
            with pytest.raises(A2AError):
                await peer.task(hostile)
        with pytest.raises(TaskNotFoundError):
            await peer.send("mine now", first)
        assert len(lives(it, first)) == len(lives(it, second)) == 2
        canceled = await peer.cancel(one)
        assert canceled.status.state == TaskState.TASK_STATE_CANCELED and "Stopped, with proof: receipt" in get_message_text(
            canceled.status.message
        )
        assert lives(it, first) == [] and len(lives(it, second)) == 2 and (await peer.task(two)).status.state == INPUT
        with pytest.raises(TaskNotCancelableError):
            await peer.cancel(one)
        decide(it, row, "approve")
        async with asyncio.timeout(PATIENCE_S):
            while "1 that it started still run" not in get_message_text((await peer.becomes(two, WORKING, INPUT)).status.message):
                await asyncio.sleep(0.05)
        assert (await peer.cancel(two)).status.state == TaskState.TASK_STATE_CANCELED and lives(it, second) == []


class Doubtful(ApiClient):
    """Kills, and cannot prove it."""

    sure = False

    def kill(self, agent_id: str, *, tree: bool = False, reason: str = "") -> Receipt:
        if self.sure:
            return super().kill(agent_id, tree=tree, reason=reason)
        from console.domain.kill import Target

        target = Target(agent_id, "managed", Outcome.NOT_PROVEN, 1.0)
        return replace(Receipt("k-1", "", agent_id, reason, "test", 0.0), targets=(target,))


async def test_what_is_not_proven_is_not_canceled_and_a_later_server_still_finds_whom_to_stop(it: Instance) -> None:
    store, api = InMemoryTaskStore(), Doubtful(it.places, timeout_s=60)
    async with serving(it, api, store) as peer:
        task_id, _ = await peer.asks("with three")
        with pytest.raises(TaskNotCancelableError, match="Not confirmed"):
            await peer.cancel(task_id)
        doubt = await peer.becomes(task_id, WORKING)
        assert "receipt k-1 does not prove zero" in get_message_text(doubt.status.message)
        agent = peer.agent(task_id)
        assert len(lives(it, agent)) == 2
    async with serving(it, api, store) as later:
        with pytest.raises(TaskNotCancelableError, match="Not confirmed"):
            await later.cancel(task_id)
        assert (await later.task(task_id)).status.state != TaskState.TASK_STATE_CANCELED
        # Somebody's child has taken the name: it is not whom the task means.
        other = it.python(f"agent.spawn(['sleep', '300'], name='a2a {task_id}'); print('spawned', flush=True); time.sleep(300)")
        it.says(other, "spawned")
        api.sure = True
        assert (await later.cancel(task_id)).status.state == TaskState.TASK_STATE_CANCELED
        assert lives(it, agent) == [] and len(lives(it, other)) == 2
        it.api.kill(other, tree=True, reason="end of the test")
        until(lambda: not lives(it, other))
