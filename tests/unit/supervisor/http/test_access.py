"""The gates of the operator's door, for every route there is: enumerated from the apps themselves."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from console.domain.agent import AgentId
from console.domain.engine.command import Record
from console.domain.errors import Denied, Killed
from console.services.configuration.routes import settings_routes
from console.services.hooks.service import HookDesk, hook_routes
from console.services.launch.program_routes import program_routes
from console.services.policy.page_routes import policy_page_routes
from console.services.policy.routes import policy_routes
from console.services.routes.request_identity import UID
from console.services.secrets.routes import SecretRoutes
from console.services.sessions.metrics import session_metrics_route
from console.services.webhook.routes import webhook_routes
from console.supervisor.agent_door import AgentRoutes
from console.supervisor.first_run import first_run_routes
from console.supervisor.http.access import ASKERS, UP_WHILE_KILLED, Gates, Trespasses, standing_of
from console.supervisor.http.peers import Peer
from console.supervisor.http.polkit import Polkit
from console.supervisor.http.route_rights import RIGHTS
from console.supervisor.metrics import metrics_routes
from console.supervisor.operator_routes import OperatorRoutes

UP = {
    # reads
    "GET /api/status", "GET /api/fleet", "GET /api/agents/{id}", "GET /api/agents/{id}/output", "GET /api/kill-switch",
    "GET /api/agents/{id}/activity", "GET /api/agents/{id}/activity/{seq}",
    "GET /api/receipts", "GET /api/receipts/{id}", "GET /api/allowlist", "GET /api/allowlist/history", "GET /api/allowlist/file",
    "GET /api/envoy/config", "GET /api/egress", "GET /api/rollback", "GET /api/rollback/{id}", "GET /api/audit", "GET /api/events",
    "GET /api/audit/export", "GET /api/webhook", "POST /api/webhook/test",
    "GET /api/token-check", "GET /api/ladder/preview", "POST /api/ladder/preview", "POST /api/allowlist/test",
    "POST /api/allowlist/backtest", "POST /api/audit/verify", "POST /api/audit/acknowledge",
    # kill, rearm, release, kill stray, quarantine, rotation, remote retry, export; and the end of the supervisor itself
    "POST /api/kill-switch", "POST /api/agents/{id}/kill", "POST /api/ladder", "POST /api/remote/retry", "POST /api/shutdown",
    "GET /api/kill-switch/rearm", "GET /api/passphrase", "POST /api/passphrase", "GET /api/persistence", "GET /api/contexts",
    "GET /api/settings", "GET /api/rotation", "POST /api/rotation", "POST /api/rotation/value", "POST /api/agents/{id}/revoke-token",
    "POST /api/keys/retire",
    "GET /api/contexts/{id}/modes", "GET /api/sources", "GET /api/programs", "POST /api/programs/preview",
    "POST /api/programs/preview-command",
    "GET /api/budgets", "GET /api/budgets/node", "GET /api/budgets/history", "GET /api/budgets/pictures",
    "GET /api/adopt/candidates", "GET /api/approvals", "GET /api/approvals/{id}", "GET /api/approvals/grants",
    "GET /api/approvals/{id}/draft", "GET /api/approvals/{id}/rule", "GET /api/policy", "POST /api/policy/backtest",
    "GET /api/policy/profiles", "GET /api/policy/profiles/compare",
    "GET /api/policy/lint", "GET /api/policy/tools", "GET /api/policy/sequences", "GET /api/policy/calls", "POST /api/policy/explain",
    "GET /api/hooks", "GET /api/first-run", "GET /api/hooks/{program}/preview", "GET /api/plans/{agent}",
    "GET /api/mcp", "GET /metrics", "GET /metrics/sessions",
}  # fmt: skip
"""Stays up while killed. A new route belongs here or below, by decision."""
REFUSED = {
    "POST /api/agents", "POST /api/agents/{id}/{verb:str}", "POST /api/allowlist", "PUT /api/allowlist/{id}", "DELETE /api/allowlist/{id}",
    "POST /api/allowlist/revert", "POST /api/allowlist/import", "POST /api/rollback/{id}/restore", "POST /api/agents/{id}/again",
    "POST /api/webhook", "POST /api/webhook/remove",
    "POST /api/contexts/{id}/{verb:str}", "POST /api/api-key", "POST /api/tokens", "POST /api/network/stricter",
    "POST /api/network/private-data", "POST /api/budgets", "POST /api/adopt", "POST /api/approvals", "POST /api/policy",
    "POST /api/policy/profiles", "POST /api/approvals/{id}/rule", "POST /api/policy/exact/remove",
    "POST /api/approvals/grants/end", "POST /api/dry-run", "POST /api/plans", "POST /api/programs",
    "POST /api/agents/{id}/message", "POST /api/agents/{id}/interrupt",
    "POST /api/agents/{id}/end", "POST /api/settings", "POST /api/kill-switch/test",
}  # fmt: skip
"""503 while killed."""


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
    more = [*SecretRoutes(nothing, nothing, nothing, nothing, nothing, nothing).routes(), *program_routes(nothing, nothing, nothing)]
    more += [*metrics_routes(nothing), *webhook_routes(nothing, nothing), *settings_routes(nothing, nothing)]
    more += [session_metrics_route(nothing, nothing)]
    more += first_run_routes(nothing, nothing, nothing, nothing, nothing)
    more += [*hook_routes(nothing), *policy_routes(nothing, nothing, nothing, nothing), *policy_page_routes(nothing)]
    return OperatorRoutes(**desks | {"more": more}).app()


def request(method: str, path: str, **headers: str) -> Request:
    raw = [(k.encode(), v.encode()) for k, v in headers.items()]
    return Request(
        {"type": "http", UID: os.geteuid(), "method": method, "path": path, "headers": raw, "query_string": b"", "path_params": {}}
    )


def test_every_route_has_a_decision() -> None:
    found = names(routes_of(operator_app(True, Book(), [])))
    assert len(found) == len(set(found))
    assert set(found) == UP | REFUSED, f"decide: {set(found) ^ (UP | REFUSED)}"
    assert {f"{m} {p}" for m, p in UP_WHILE_KILLED} <= UP


def test_every_route_has_a_right_and_no_right_is_of_a_route_that_is_gone() -> None:
    found = set(names(routes_of(operator_app(True, Book(), []))))
    assert set(RIGHTS) == found, f"decide in route_rights.py: {set(RIGHTS) ^ found}"


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
    method, path = name.split(" ", 1)
    gates(False).check(method, path, None)
    if name in UP:
        gates(True).check(method, path, None)
    else:
        with pytest.raises(Killed):
            gates(True).check(method, path, None)


def test_a_route_nobody_decided_on_is_refused_while_killed() -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        with pytest.raises(Killed):
            gates(True).check(method, "/api/new", None)


@pytest.mark.parametrize(
    "header", ["Bearer agent-token", "Bearer expired", "Bearer ", "Basic good", "good", "", "Bearer good2", "bearer good"]
)
@pytest.mark.parametrize("name", sorted(UP | REFUSED))
def test_a_token_that_is_not_an_operators_is_refused_everywhere_recorded_and_shown(name: str, header: str) -> None:
    """K6: an agent's token, an expired one, a forged role: 403, audited, an alarm; killed or not."""
    method, path = name.split(" ", 1)
    for killed in (True, False):
        book, notices = Book(), list[str]()
        if path == "/api/token-check":
            gates(killed, book, notices).check(method, path, header)  # it is there to hear the refusal itself
            continue
        with pytest.raises(Denied) as refusal:
            gates(killed, book, notices).check(method, path, header)
        assert refusal.value.http_status == 403
        assert [(r.kind, r.verdict, r.must) for r in book.records] == [("route.refused", "deny", True)]
        assert path in book.records[0].what and notices


def test_an_operators_token_passes_and_no_header_needs_none() -> None:
    gates(False).check("POST", "/api/agents", "Bearer good")
    gates(False).check("POST", "/api/agents", None)


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
    assert [r.actor for r in book.records] == ["agent:a-12345678", "uid 1000", "uid 0, gone before the kernel could say from where,"]


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
        await routes._route("POST", "/v1/x", slipped).endpoint(request("POST", "/v1/x"))


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
