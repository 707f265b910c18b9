"""The routes of activity: pages, single entries, and refusals in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from console.domain.activity import Entry, Kind
from console.domain.agent import AgentId
from console.domain.errors import NotFound
from console.ledger.activity_file import Bounds
from console.services.activity.routes import activity_routes
from console.services.activity.service import ActivityDesk
from console.services.routes.responses import refusals, routed


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    core: Any = SimpleNamespace(state=SimpleNamespace(agents={}, rows={}), loop=None)

    def agent_or_404(agent_id: str) -> AgentId:
        if agent_id != "a":
            raise NotFound("There is no such agent.")
        return AgentId(agent_id)

    desk = ActivityDesk(tmp_path / "a.db", Bounds(), core, str, None, tmp_path)
    assert desk.store is not None
    desk.store.add("a", [Entry(Kind.SPEND, f"{n}", 1.0, "x" * 5000, cost_nano=None if n else 10**7) for n in range(300)])
    (tmp_path / "a.log").write_text("out")
    with TestClient(Starlette(routes=routed(activity_routes(desk, agent_or_404, tmp_path)), exception_handlers={**refusals()})) as made:
        yield made
    desk.end()


def test_a_page_and_one_whole_entry(client: TestClient) -> None:
    page = client.get("/api/agents/a/activity?limit=2&before=3").json()
    assert [(r["seq"], r["cost_usd"], len(r["text"]), r["size"]) for r in page["rows"]] == [(1, 0.01, 600, 5000), (2, None, 600, 5000)]
    assert (page["count"], page["at_start"], page["at_end"], page["output_bytes"]) == (300, False, False, 3)
    assert len(client.get("/api/agents/a/activity?limit=9999&after=0").json()["rows"]) == 300
    assert len(client.get("/api/agents/a/activity/1").json()["row"]["text"]) == 5000


def test_tools_of_mcp_servers_that_were_called(tmp_path: Path) -> None:
    core: Any = SimpleNamespace(state=SimpleNamespace(agents={}, rows={}), loop=None)
    desk = ActivityDesk(tmp_path / "m.db", Bounds(), core, str, None, tmp_path)
    assert desk.store is not None
    for agent, number in (("a", 1), ("a", 2), ("b", 3)):
        desk.store.add(agent, [Entry(Kind.TOOL_CALL, f"x{number}", float(number), "", tool="mcp__docs__search", pair=f"p{number}")])
    # The hook and the transcript tell the same call.
    desk.store.add("b", [Entry(Kind.TOOL_CALL, "y3", 9.0, "", tool="mcp__docs__search", pair="p3")])
    desk.store.add(
        "b", [Entry(Kind.TOOL_CALL, f"z{n}", 4.0, "", tool=name) for n, name in enumerate(("mcp__docs__add", "mcp__odd", "Bash"))]
    )
    app = Starlette(routes=routed(activity_routes(desk, AgentId, tmp_path)), exception_handlers={**refusals()})
    with TestClient(app) as client:
        seen = client.get("/api/mcp").json()
    desk.end()
    assert [(t["server"], t["tool"], t["calls"], t["agents"], t["last_at"]) for t in seen["tools"]] == [
        ("docs", "add", 1, 1, 4.0),
        ("docs", "search", 3, 2, 9.0),
    ]
    assert seen["more"] == 0


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/agents/b/activity", 404),
        ("/api/agents/a/activity/999", 404),
        ("/api/agents/a/activity/x", 404),
        ("/api/agents/a/activity?before=-1", 400),
        ("/api/agents/a/activity?after=1e9", 400),
        ("/api/agents/a/activity?kind=nonsense", 400),
        ("/api/agents/a/activity?limit=" + "9" * 40, 400),
    ],
)
def test_what_is_no_question_is_refused_in_words(client: TestClient, path: str, status: int) -> None:
    answer = client.get(path)
    assert answer.status_code == status and answer.json()["error"]


def test_any_text_can_be_looked_for(client: TestClient) -> None:
    for text in ("%", "_", "'", '"', "\\", "\x00", "x" * 10_000, "\u202e", "ß"):
        assert client.get("/api/agents/a/activity", params={"q": text}).status_code == 200
