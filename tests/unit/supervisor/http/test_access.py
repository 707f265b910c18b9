"""The gates of the operator's door, for every route there is: enumerated from the apps themselves."""

from __future__ import annotations

import json
import os
import re
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from console.api import endpoints as ep
from console.api.agent_endpoints import HOOK
from console.api.endpoints import ENDPOINTS
from console.domain.agent import AgentId
from console.domain.engine.command import Record
from console.domain.errors import Denied, Killed
from console.domain.roles.rights import Right
from console.services.configuration.routes import settings_routes
from console.services.hooks.service import HookDesk, hook_routes
from console.services.launch.program_routes import program_routes
from console.services.policy.page_routes import policy_page_routes
from console.services.policy.routes import policy_routes
from console.services.routes.request_identity import UID
from console.services.routes.responses import Handlers, routed
from console.services.secrets.routes import SecretRoutes
from console.services.sessions.metrics import session_metrics_routes
from console.services.webhook.routes import webhook_routes
from console.supervisor.agent_door import AgentRoutes
from console.supervisor.first_run import first_run_routes
from console.supervisor.http.access import ASKERS, Gates, Trespasses, needed, standing_of
from console.supervisor.http.peers import Peer
from console.supervisor.http.polkit import Polkit
from console.supervisor.metrics import metrics_routes
from console.supervisor.operator_routes import OperatorRoutes

CHANGES_WHILE_KILLED = {
    # a kill, and what a rearm takes; of the steps a kill only, which the handler decides
    "POST /api/kill-switch", "POST /api/passphrase", "POST /api/agents/{id}/kill", "POST /api/ladder", "POST /api/remote/retry",
    # reads that take a body
    "POST /api/ladder/preview", "POST /api/allowlist/test", "POST /api/allowlist/backtest", "POST /api/policy/backtest",
    "POST /api/policy/explain", "POST /api/programs/preview", "POST /api/programs/preview-command", "POST /api/audit/verify",
    # records, a rotation, what only tightens, one alert, and the end of the supervisor, which is never that of the latch
    "POST /api/audit/acknowledge", "POST /api/rotation", "POST /api/rotation/value", "POST /api/agents/{id}/revoke-token",
    "POST /api/keys/retire", "POST /api/webhook/test", "POST /api/shutdown",
}  # fmt: skip
"""Beside every GET nothing else stays up while killed. A new endpoint is refused, unless it is added here, by decision."""
UP = {row.name for row in ENDPOINTS if row.method == "GET"} | CHANGES_WHILE_KILLED
REFUSED = {row.name for row in ENDPOINTS} - UP
OF_READERS = {
    "POST /api/ladder/preview", "POST /api/allowlist/test", "POST /api/allowlist/backtest", "POST /api/policy/backtest",
    "POST /api/policy/explain", "POST /api/audit/verify",
}  # fmt: skip
"""Who may only read can ask for these as well: they change nothing."""
BY_NAME = {row.name: row for row in ENDPOINTS}
OF_RESPONDERS = {"POST /api/kill-switch/test", "POST /api/agents/{id}/kill", "POST /api/remote/retry"}


class Anything:
    """Stands for whatever a route would reach."""

    def __getattr__(self, name: str) -> Any:
        return Anything()

    def __call__(self, *args: object, **fields: object) -> Any:
        return Anything()


class Book:
    def __init__(self) -> None:
        self.records: list[Record] = []

    def record(self, record: Record) -> None:
        self.records.append(record)


def routes_of(app: Any) -> list[Route]:
    return [route for route in app.routes if isinstance(route, Route)]


def names(routes: list[Route]) -> list[str]:
    return [f"{method} {route.path}" for route in routes for method in sorted(route.methods or ()) if method != "HEAD"]


def operator_app(killed: bool, book: Book, notices: list[str]) -> Any:
    nothing: Any = Anything()
    core: Any = Anything()
    core.state = SimpleNamespace(killed=killed)
    desks: dict[str, Any] = {field.name: nothing for field in fields(OperatorRoutes)}
    desks["core"] = core
    desks["tokens"] = SimpleNamespace(accepts=lambda token, audience: (token, audience) == ("good", "operator"))
    desks["trespasses"] = Trespasses(book, notices.append)
    more = SecretRoutes(nothing, nothing, nothing, nothing, nothing, nothing).routes() | program_routes(nothing, nothing, nothing)
    more |= metrics_routes(nothing) | webhook_routes(nothing, nothing) | settings_routes(nothing, nothing)
    more |= session_metrics_routes(nothing, nothing) | first_run_routes(nothing, nothing, nothing, nothing, nothing)
    more |= hook_routes(nothing) | policy_routes(nothing, nothing, nothing, nothing) | policy_page_routes(nothing)
    return OperatorRoutes(**desks | {"more": more}).app()


def request(method: str, path: str, **headers: str) -> Request:
    raw = [(k.encode(), v.encode()) for k, v in headers.items()]
    return Request(
        {"type": "http", UID: os.geteuid(), "method": method, "path": path, "headers": raw, "query_string": b"", "path_params": {}}
    )


def test_every_endpoint_is_routed_and_what_stays_up_is_decided_here() -> None:
    found = names(routes_of(operator_app(True, Book(), [])))
    assert found == [row.name for row in ENDPOINTS] and len(found) == len(set(found))
    assert {row.name for row in ENDPOINTS if row.is_open} == UP


@pytest.mark.parametrize("change", ["missing", "unknown"])
def test_what_is_not_in_the_table_is_not_routed_and_the_other_way_round(change: str) -> None:
    async def handler(_request: Request) -> Response:
        return Response()

    handlers: Handlers = dict.fromkeys(ENDPOINTS, handler)
    if change == "missing":
        del handlers[ep.FLEET]
    else:
        handlers[replace(ep.FLEET, path="/api/new")] = handler
    with pytest.raises(ValueError, match="/api/fleet" if change == "missing" else "/api/new"):
        gates(False).before(handlers)


def test_no_endpoint_hides_a_later_one() -> None:
    routes = routed(dict.fromkeys(ENDPOINTS, Anything()))
    for row in ENDPOINTS:
        path = re.sub(r"\{[^}]*\}", "one", row.path)
        matched = [r.path for r in routes if r.matches({"type": "http", "method": row.method, "path": path})[0] is Match.FULL]
        assert matched[0] == row.path


def test_who_may_change_something_is_decided_here() -> None:
    changes = {row.name: row.right for row in ENDPOINTS if row.method != "GET"}
    assert {name for name, right in changes.items() if right is Right.READ} == OF_READERS
    assert {name for name, right in changes.items() if right is Right.KILL} == OF_RESPONDERS
    assert not [name for name, right in changes.items() if right is Right.EXPORT]


@pytest.mark.parametrize(
    ("row", "word", "right"),
    [
        *((ep.ACT, word, Right.KILL) for word in ("freeze", "isolate", "kill")),
        *((ep.ACT, word, Right.OPERATE) for word in ("thaw", "reconnect")),
        *((ep.STEP, word, Right.KILL) for word in ("freeze", "isolate", "kill")),
        *((ep.STEP, word, Right.OPERATE) for word in ("thaw", "reconnect")),
        (ep.SWITCH, "activate", Right.KILL),
        *((ep.SWITCH, word, Right.REARM) for word in ("rearm", "deactivate")),
        *((ep.SESSION_ACT, word, Right.OPERATE) for word in ("hold", "delete")),
        (ep.SESSION_ACT, "release", Right.RELEASE),
        *((row, word, Right.ADMINISTER) for row in (ep.ACT, ep.SESSION_ACT) for word in ("", "Freeze", "anything")),
    ],
)
async def test_an_endpoint_that_does_several_things_needs_the_right_of_the_word(row: Any, word: str, right: Right) -> None:
    body = {"action": word, "reason": "r", "scope": {"reach": "all"}}
    scope = {"type": "http", "method": "POST", "path": row.path, "headers": [], "path_params": {"verb": word} if "verb" in row.path else {}}

    async def receive() -> Any:
        return {"type": "http.request", "body": json.dumps(body).encode()}

    assert await needed(Request(scope, receive), row) is right


@pytest.mark.parametrize("name", sorted(REFUSED))
async def test_while_killed_a_change_is_refused_before_its_body_is_read(name: str) -> None:
    method, path = name.split(" ", 1)
    route = next(r for r in routes_of(operator_app(True, Book(), [])) if r.path == path and method in (r.methods or ()))
    with pytest.raises(Killed) as refusal:
        await route.endpoint(request(method, path))
    assert (refusal.value.http_status, int(refusal.value.exit_code)) == (503, 4)
    assert "stopped" in refusal.value.what and "rearm" in refusal.value.remedy


def gates(killed: bool, book: Book | None = None, notices: list[str] | None = None) -> Gates:
    trespasses = Trespasses(book or Book(), (notices if notices is not None else []).append)
    return Gates(lambda: killed, lambda token: token == "good", trespasses, Polkit(lambda record: None, set, check=Path("/nowhere")))


@pytest.mark.parametrize("name", sorted(UP | REFUSED))
def test_the_gate_decides_as_the_table_says(name: str) -> None:
    gates(False).check(BY_NAME[name], None)
    if name in UP:
        gates(True).check(BY_NAME[name], None)
    else:
        with pytest.raises(Killed):
            gates(True).check(BY_NAME[name], None)


@pytest.mark.parametrize(
    "header", ["Bearer agent-token", "Bearer expired", "Bearer ", "Basic good", "good", "", "Bearer good2", "bearer good"]
)
@pytest.mark.parametrize("name", sorted(UP | REFUSED))
def test_a_token_that_is_not_an_operators_is_refused_everywhere_recorded_and_shown(name: str, header: str) -> None:
    """K6: an agent's token, an expired one, a forged role: 403, audited, an alarm; killed or not."""
    path = BY_NAME[name].path
    for killed in (True, False):
        book, notices = Book(), list[str]()
        if path == "/api/token-check":
            gates(killed, book, notices).check(BY_NAME[name], header)  # it is there to hear the refusal itself
            continue
        with pytest.raises(Denied) as refusal:
            gates(killed, book, notices).check(BY_NAME[name], header)
        assert refusal.value.http_status == 403
        assert [(r.kind, r.verdict, r.must) for r in book.records] == [("route.refused", "deny", True)]
        assert path in book.records[0].what and notices


def test_an_operators_token_passes_and_no_header_needs_none() -> None:
    gates(False).check(ep.LAUNCH, "Bearer good")
    gates(False).check(ep.LAUNCH, None)


def test_a_flood_leaves_one_record_and_a_bounded_memory() -> None:
    book = Book()
    trespasses = Trespasses(book, lambda text: None)
    for _ in range(500):
        trespasses.note("agent:a-1", "POST /api/kill-switch" + "x" * 5000)
    assert len(book.records) == 1 and len(book.records[0].what) < 400
    for number in range(ASKERS * 2):
        trespasses.note(f"uid {number}", "operator.sock")
    assert len(trespasses._last) <= ASKERS


def test_an_agent_at_the_operators_door_is_named_by_its_cgroup() -> None:
    book = Book()
    peer = Peer(7, 0, "0::/watchfloor-01234567/agents/a-12345678-0123abcd\n", True)
    Trespasses(book, lambda text: None).at_operators_door(peer)
    Trespasses(book, lambda text: None).at_operators_door(Peer(8, 1000, "0::/user.slice\n", True))
    Trespasses(book, lambda text: None).at_operators_door(Peer(9, 0, "", False))
    assert [r.actor for r in book.records] == ["agent:a-12345678", "uid 1000", "uid 0"]
    assert book.records[1].what == "uid 1000 asked for 'operator.sock', which it has no right to"
    assert book.records[2].what == "uid 0 asked for 'operator.sock', and ended before it could be told whether it may: refused"


AGENT = {
    "GET /v1/self",
    "GET /v1/notices",
    "POST /v1/spawn",
    "POST /v1/usage",
    "POST /v1/reserve",
    "POST /v1/settle",
    "POST /v1/permission",
    "POST /v1/execute",
    "GET /v1/approvals/{approval_id}",
    "POST /v1/hook",
    "POST /v1/private-data",
    "POST /v1/token",
}


def agent_routes(state: Any, book: Book) -> AgentRoutes:
    core: Any = SimpleNamespace(state=state)
    hooks, nothing = HookDesk(core), Anything()
    return AgentRoutes(AgentId("a-1"), core, nothing, Trespasses(book, lambda text: None), nothing, hooks, nothing)  # type: ignore[arg-type]


def test_an_agents_socket_has_these_routes_and_no_other() -> None:
    state = SimpleNamespace(killed=False, agents={})
    assert set(names(routes_of(agent_routes(state, Book()).app()))) == AGENT
    for word in ("kill", "rearm", "release", "approve", "ladder", "freeze", "thaw", "isolate", "reconnect", "grant", "allowlist"):
        assert not [name for name in AGENT if word in name]


@pytest.mark.parametrize("name", sorted(AGENT))
async def test_while_killed_every_route_of_an_agent_answers_503(name: str) -> None:
    method, path = name.split(" ")
    state = SimpleNamespace(killed=True, agents={"a-1": SimpleNamespace(state=SimpleNamespace(is_live=True))})
    route = next(r for r in routes_of(agent_routes(state, Book()).app()) if f"{method} {r.path}" == name)
    with pytest.raises(Killed) as refusal:
        await route.endpoint(request(method, path))
    assert refusal.value.http_status == 503


async def test_an_answer_that_crosses_with_a_kill_is_not_handed_out() -> None:
    state = SimpleNamespace(killed=False, agents={"a-1": SimpleNamespace(state=SimpleNamespace(is_live=True))})
    routes = agent_routes(state, Book())

    async def slipped(_request: Request) -> Response:
        state.killed = True
        return Response("allow")

    with pytest.raises(Killed):
        await routes._route(HOOK, slipped).endpoint(request("POST", HOOK.path))


async def test_who_looks_for_a_way_out_on_an_agents_socket_finds_none_and_is_recorded() -> None:
    book = Book()
    state = SimpleNamespace(killed=False, agents={})
    for path in ("/api/kill-switch", "/v1/rearm", "/api/ladder"):
        answer = await agent_routes(state, book)._no_route(request("POST", path, authorization="Bearer good"), Exception())
        assert answer.status_code == 404
    assert {r.actor for r in book.records} == {"agent:a-1"} and len(book.records) == 3


def test_a_caller_of_whom_the_kernel_said_nothing_has_no_right() -> None:
    unnamed = Request({"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b"", "path_params": {}})
    assert not standing_of(unnamed).is_owner and not standing_of(unnamed).rights
