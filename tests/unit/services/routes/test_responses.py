"""Errors become words, status and exit code; hostile text never breaks an answer."""

from __future__ import annotations

import json

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from console.api.agents.fleet_changes import read_changes
from console.api.messages import AgentView, LaunchBody, RawView
from console.domain.errors import ConsoleError, Denied, Killed, NotFound, UsageProblem
from console.services.fleet.hub import Sent
from console.services.routes.responses import answer, answer_data, body_of, refusal, refusals


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [(UsageProblem("w", "r"), 400, 2), (NotFound("w"), 404, 3), (Denied("w"), 403, 4), (Killed("w"), 503, 4), (ConsoleError("w"), 500, 1)],
)
def test_each_kind_has_its_status_and_exit_code(error: ConsoleError, status: int, code: int) -> None:
    seen = refusal(error)
    assert seen.status_code == status
    assert json.loads(bytes(seen.body))["exit_code"] == code


def test_lone_surrogates_are_escaped_not_fatal() -> None:
    seen = answer(AgentView(id="a", name="x\ud800y\x00<b>"))
    assert json.loads(bytes(seen.body))["name"] == "x\\ud800y\x00<b>"
    assert AgentView.read_json(bytes(seen.body)).id == "a", "the client can read it"


@pytest.mark.parametrize("name", ["p\udcffy", "\ud800", "\U0001f4a3\udcff", r"\ud800", '"\\\udcff"'])
def test_what_is_sent_can_be_read_whatever_a_program_is_called(name: str) -> None:
    shown = name.encode("utf-8", "backslashreplace").decode()
    seen = RawView.read_json(bytes(answer_data({"survivors": [{name: name}], "n": 1}).body)).root
    assert seen == {"survivors": [{shown: shown}], "n": 1}
    line = Sent(1, "agents", {"remove": [name]}).line()
    assert line.isascii() and read_changes(1, line.split(b"data: ")[1]).remove == [shown]


async def post(body: bytes) -> tuple[int, dict[str, object]]:
    from httpx import ASGITransport, AsyncClient

    async def take(request: Request) -> Response:
        await body_of(request, LaunchBody)
        return Response("{}")

    app = Starlette(routes=[Route("/", take, methods=["POST"])], exception_handlers=refusals())
    async with AsyncClient(transport=ASGITransport(app=app), base_url="http://x") as client:
        seen = await client.post("/", content=body)
        return seen.status_code, seen.json()


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b'{"argv": "x"}', b'{"argv": ["x"], "depth": 9}', b'{"argv": [1]}'])
async def test_a_wrong_body_is_400_with_the_field_named(body: bytes) -> None:
    status, said = await post(body)
    assert status == 400
    assert said["error"]
