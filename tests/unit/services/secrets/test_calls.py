"""A place of secrets that hangs stalls nobody: not the loop, not a launch's neighbours, not the operator's door."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from console.api.endpoints import ENDPOINTS
from console.domain.agent import Agent, AgentId, ContextId, LaunchRequest, SandboxKind
from console.domain.engine import command as c
from console.domain.errors import ConsoleError, TimedOut
from console.domain.ids import ControlLevel
from console.services.launch import service
from console.services.launch.service import Launcher
from console.services.launch.type_sources import TypeSources
from console.services.policy.dangerous_operations import DangerDesk
from console.services.routes.request_identity import UID
from console.services.secrets import calls as secret_calls
from console.services.secrets.calls import secret_call
from console.settings.options import Options
from console.supervisor.http.access import Gates


class SlowStore:
    """Answers once the loop that asked has gone on with something else; whoever asks on the loop itself never gets there."""

    def __init__(self) -> None:
        self.begun, self.goes_on = threading.Event(), threading.Event()

    def answer(self, value: Any) -> Any:
        self.begun.set()
        if not self.goes_on.wait(10):
            raise ConsoleError("The loop stood still while the store was asked.")
        return value

    def run(self, asking: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """``asking`` beside a loop that lives."""

        async def live() -> Any:
            task = asyncio.ensure_future(asking())
            while not self.begun.is_set() and not task.done():
                await asyncio.sleep(0.005)
            self.goes_on.set()
            return await task

        return asyncio.run(live())


class Loose(SimpleNamespace):
    """Has whatever a launch asks for besides what is told."""

    def __getattr__(self, name: str) -> Any:
        return Loose()


@pytest.fixture
def slow() -> SlowStore:
    return SlowStore()


def test_the_loop_lives_while_a_secret_is_waited_for(slow: SlowStore) -> None:
    assert slow.run(lambda: secret_call(slow.answer, 7)) == 7


def test_what_never_answers_is_given_up(slow: SlowStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_calls, "BOUND_S", 0.05)
    try:
        with pytest.raises(TimedOut, match="does not answer"):
            asyncio.run(secret_call(slow.answer, 7))
    finally:
        slow.goes_on.set()


def test_its_own_refusal_comes_through() -> None:
    def refuse(*, name: str) -> None:
        raise ConsoleError(f"The keyring has no {name}.")

    with pytest.raises(ConsoleError, match="no key"):
        asyncio.run(secret_call(refuse, name="key"))


def test_hanging_secrets_take_no_place_of_the_common_threads(slow: SlowStore) -> None:
    async def many() -> str:
        calls = [asyncio.ensure_future(secret_call(slow.answer, n)) for n in range(50)]
        said = await asyncio.to_thread(lambda: "pressed")
        slow.goes_on.set()
        assert await asyncio.gather(*calls) == list(range(50))
        return said

    assert asyncio.run(many()) == "pressed"


def test_endless_hanging_calls_are_refused_at_once_and_their_places_come_back(slow: SlowStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_calls, "_PLACES", threading.BoundedSemaphore(3))

    async def many() -> list[Any]:
        calls = [asyncio.ensure_future(secret_call(slow.answer, n)) for n in range(4)]
        await asyncio.wait([calls[3]])
        slow.goes_on.set()
        found = await asyncio.gather(*calls, return_exceptions=True)
        assert await asyncio.gather(*(secret_call(slow.answer, n) for n in range(3))) == [0, 1, 2]
        return found

    found = asyncio.run(many())
    assert found[:3] == [0, 1, 2] and isinstance(found[3], TimedOut)


def test_an_agents_token_is_issued_beside_the_loop(slow: SlowStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def opened(agent_id: AgentId, uid: int | None) -> Path:
        return tmp_path / "agent.sock"

    async def own_alone(_agent: Any, _request: Any, own: dict[str, str]) -> dict[str, str]:
        return own

    monkeypatch.setattr(service, "open_workspace", lambda *_: tmp_path)
    monkeypatch.setattr(service, "offer_tools", lambda *_: SimpleNamespace(words="", path="/bin", binds=()))
    places = SimpleNamespace(
        instance_id="0" * 8,
        output_dir=tmp_path / "output",
        hidden=(),
        workspaces_dir=tmp_path,
        state_dir=tmp_path,
        policy_file=tmp_path / "policy.json",
    )
    tokens = SimpleNamespace(issue=lambda *_, **__: slow.answer("a-token"))
    parts: Any = Loose(options=Options(), contexts=SimpleNamespace(begin=lambda _agent: None), places=places, tokens=tokens)
    doors: Any = SimpleNamespace(open=opened, hooks=SimpleNamespace())
    agent = Agent(AgentId("a-1"), "a", None, AgentId("a-1"), 1, ContextId("c-1"), ControlLevel.MANAGED, SandboxKind.NONE, started_at=1.0)
    command = c.StartAgent(agent, LaunchRequest(argv=("x",), name="a"), "operator")
    talk: Any = SimpleNamespace(prepare=lambda *_: (), output_max=lambda _agent: 0)
    launcher: Any = Launcher(
        parts.core,
        parts.scribe,
        parts.guard,
        places,  # type: ignore[arg-type]
        parts.options,
        parts.sandboxes,
        parts.egress,
        parts.notice,
        contexts=parts.contexts,
        hunt=parts.hunt,
        tokens=parts.tokens,
        sockets=doors,
        hooks=doors.hooks,
        dangers=DangerDesk(parts.places, parts.scribe, parts.notice),
        sources=TypeSources(parts.scribe.ledger, parts.places, parts.options),
        talk=talk,
        look_at_guard=parts.look_at_guard,
    )
    launcher.environments = SimpleNamespace(make=own_alone)
    spec = slow.run(lambda: launcher._spec(command))
    assert spec.env["AGENT_AUTH_TOKEN"] == "a-token"


def test_a_token_at_the_operators_door_is_looked_at_beside_the_loop(slow: SlowStore) -> None:
    async def handler(request: Request) -> Response:
        return Response(b"in")

    gates = Gates(lambda: False, slow.answer, SimpleNamespace(), SimpleNamespace())  # type: ignore[arg-type]
    app = Starlette(routes=gates.before(dict.fromkeys(ENDPOINTS, handler)))
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        UID: os.geteuid(),
        "method": "GET",
        "path": "/api/fleet",
        "headers": [(b"authorization", b"Bearer good")],
        "query_string": b"",
    }
    slow.run(lambda: app(scope, receive, send))
    assert sent[0]["status"] == 200 and sent[1]["body"] == b"in"
