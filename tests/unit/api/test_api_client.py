"""One method per route: the right method, path and body go out, the right view comes back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from console.api import ladder as la
from console.api import messages as m
from console.api.client.api_client import ApiClient
from console.api.records import RestoreBody
from console.domain.errors import ConsoleError, NotFound, Unreachable, UsageProblem
from console.domain.kill import Receipt
from console.settings.places import Places
from tests.fakes.canned_api import CannedApi

ENTRY = m.AllowlistEntryBody(host="a.example.com", reason="r", owner="o")
BODY = la.LadderBody(action="isolate", scope=la.ScopeBody(reach="session", target="s"))
RECEIPT = Receipt("k1", "00000000", "all", "why", "who", 1.0, verified_zero=True, complete=True).as_json()
SWITCH = {"state": "armed", "killed": False}
ROW = {"record_id": "r1", "agent_id": "a", "context_id": "c", "kind": "file_write", "path": "x", "state": "restored", "created_at": 1}
CHANGED = {"version": 2, "entry_id": "e1", "validated_ms": 1, "applied_ms": 1, "sandboxes": 0, "words": "done"}
LAUNCHED = {"id": "a", "control_level": "managed", "network_mode": "FULL", "network_enforced": False}

Call = Callable[[ApiClient], Any]
ROUTES: list[tuple[str, Any, Call, Any]] = [
    ("GET /api/status", {"instance": "i", "host": "h", "version": "1", "state_dir": "/", "mode": "root", "killed": False, "pid": 1},
     lambda c: c.status(), None),
    ("GET /api/fleet", {"killed": True}, lambda c: c.fleet(), None),
    ("GET /api/agents/a%2Fb", {"agent": {"id": "a"}}, lambda c: c.agent("a/b"), None),
    ("POST /api/agents", LAUNCHED, lambda c: c.launch(m.LaunchBody(argv=["x"])), {"argv": ["x"]}),
    ("GET /api/agents/a/output", {"text": "x", "offset": 1}, lambda c: c.output("a", 7), None),
    ("POST /api/agents/a/freeze", {"agents": ["a"]}, lambda c: c.freeze("a"), {"tree": False, "reason": ""}),
    ("POST /api/agents/a/thaw", {"agents": ["a"]}, lambda c: c.thaw("a", tree=True), {"tree": True}),
    ("POST /api/agents/a/isolate", {"agents": ["a"]}, lambda c: c.isolate("a", reason="r"), {"reason": "r"}),
    ("POST /api/agents/a/reconnect", {"agents": ["a"]}, lambda c: c.reconnect("a", tree=True, reason="r"), {"tree": True, "reason": "r"}),
    ("POST /api/ladder", {"agents": ["a"]}, lambda c: c.ladder(BODY), {"action": "isolate", "scope": {"reach": "session", "target": "s"}}),
    ("POST /api/ladder", RECEIPT, lambda c: c.kill_scope(la.ScopeBody(reach="host"), "r"),
     {"action": "kill", "scope": {"reach": "host"}, "reason": "r"}),
    ("POST /api/ladder/preview", {"action": "isolate", "reach": "all", "words": "w"}, lambda c: c.preview(BODY), {"action": "isolate"}),
    ("POST /api/agents/a/kill", RECEIPT, lambda c: c.kill("a", tree=True, reason="r"), {"tree": True, "reason": "r"}),
    ("GET /api/kill-switch", SWITCH, lambda c: c.kill_switch(), None),
    ("POST /api/kill-switch", RECEIPT, lambda c: c.activate("r"), {"action": "activate", "reason": "r"}),
    ("POST /api/kill-switch", SWITCH, lambda c: c.rearm("r", "k1"), {"action": "rearm", "kill_id": "k1"}),
    ("GET /api/receipts", {"receipts": []}, lambda c: c.receipts(), None),
    ("GET /api/receipts/k1", RECEIPT, lambda c: c.receipt("k1"), None),
    ("POST /api/remote/retry", SWITCH, lambda c: c.retry_remote(), None),
    ("GET /api/allowlist", {"version": 3}, lambda c: c.allowlist(), None),
    ("POST /api/allowlist", CHANGED, lambda c: c.add_entry(ENTRY), {"host": "a.example.com", "port": 443}),
    ("PUT /api/allowlist/e1", CHANGED, lambda c: c.change_entry("e1", ENTRY), {"owner": "o"}),
    ("DELETE /api/allowlist/e1", CHANGED, lambda c: c.remove_entry("e1", reason="r", base_version=3), None),
    ("POST /api/allowlist/test", {"allowed": True, "reason": "x"}, lambda c: c.test_url(m.UrlTestBody(url="https://a.example.com/")),
     {"url": "https://a.example.com/"}),
    ("GET /api/envoy/config", {"version": 1, "text": "x"}, lambda c: c.envoy_config(), None),
    ("GET /api/egress", {"egress": []}, lambda c: c.egress(5), None),
    ("GET /api/rollback", {"records": [ROW]}, lambda c: c.rollback(), None),
    ("GET /api/rollback/r1", {"row": ROW}, lambda c: c.rollback_detail("r1"), None),
    ("POST /api/rollback/r1/restore", ROW, lambda c: c.restore("r1", RestoreBody(reason="r", expect_now_sha256="s")),
     {"expect_now_sha256": "s"}),
    ("GET /api/audit", {"total": 3}, lambda c: c.audit(before=9, q="x"), None),
    ("POST /api/audit/verify", {"whole": True, "records": 3}, lambda c: c.verify_audit(), None),
    ("POST /api/shutdown", {"ending": True}, lambda c: c.shutdown(), None),
]  # fmt: skip


@pytest.fixture
def client(places: Places) -> Iterator[ApiClient]:
    with ApiClient(places, 5) as made:
        yield made


@pytest.mark.parametrize(("route", "answer", "call", "body"), ROUTES, ids=[r[0] for r in ROUTES])
def test_a_route(api: CannedApi, client: ApiClient, route: str, answer: Any, call: Call, body: dict[str, Any] | None) -> None:
    api.say(route, answer)
    view = call(client)
    asked = api.asked[0]
    assert f"{asked.method} {asked.path.split('?')[0]}" == route
    assert body is None or body.items() <= asked.body.items()
    seen = view.as_json() if isinstance(view, Receipt) else view.as_data()
    assert {k: seen[k] for k in answer if k not in ("row", "agent", "records")} == {
        k: v for k, v in json.loads(json.dumps(answer)).items() if k not in ("row", "agent", "records")
    } or isinstance(view, Receipt)
    api.refuse(route, 404, "Nothing there.", exit_code=3)
    with pytest.raises(NotFound, match="Nothing there"):
        call(client)


def test_queries_carry_what_was_asked(api: CannedApi, client: ApiClient) -> None:
    api.say("DELETE /api/allowlist/e1", CHANGED)
    api.say("GET /api/agents/a/output", {})
    client.remove_entry("e1", reason="no longer & never", base_version=3)
    client.output("a", 7)
    assert [a.path for a in api.asked] == ["/api/allowlist/e1?reason=no+longer+%26+never&base_version=3", "/api/agents/a/output?offset=7"]


@pytest.mark.parametrize("reason", ["", "x" * 501])
def test_a_rearm_without_a_reason_is_not_even_asked(api: CannedApi, client: ApiClient, reason: str) -> None:
    with pytest.raises(UsageProblem, match="reason"):
        client.rearm(reason)
    assert api.asked == []


@pytest.mark.parametrize("broken", [{}, {"kill_id": "k"}, {**RECEIPT, "steps": [{"name": "no such step", "status": "ok", "ms": 1}]}])
def test_a_receipt_that_cannot_be_read_is_no_receipt(api: CannedApi, client: ApiClient, broken: dict[str, Any]) -> None:
    api.say("POST /api/agents/a/kill", broken)
    with pytest.raises(ConsoleError, match="receipt cannot be read"):
        client.kill("a")


def test_events_come_one_by_one_until_the_stream_ends(api: CannedApi, client: ApiClient) -> None:
    api.answers["GET /api/events"] = (
        200,
        b': hello\n\nid: 4\nevent: agents\ndata: {"upsert": []}\n\n: alive\n\nid: 5\nevent: notice\ndata: {"level":\ndata: "red"}\n\n',
    )
    seen = list(client.events(3))
    assert [(d.seq, d.kind, d.data) for d in seen] == [(4, "agents", {"upsert": []}), (5, "notice", {"level": "red"})]
    assert api.asked[0].headers["last-event-id"] == "3"


def test_an_unreadable_event_breaks_the_stream(api: CannedApi, client: ApiClient) -> None:
    api.answers["GET /api/events"] = (200, b"id: 4\nevent: agents\ndata: [1\n\n")
    with pytest.raises(Unreachable, match="unreadable"):
        list(client.events())


def test_events_of_nobody_are_unreachable(client: ApiClient) -> None:
    with pytest.raises(Unreachable, match="No supervisor runs"):
        list(client.events())


def test_refused_events_say_why(api: CannedApi, client: ApiClient) -> None:
    api.refuse("GET /api/events", 404, "Not here.", exit_code=3)
    with pytest.raises(NotFound):
        list(client.events())
