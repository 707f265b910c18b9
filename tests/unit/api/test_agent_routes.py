"""Requests about programs: the right method, path and body go out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from console.api.agents.programs import ProgramItem, ProgramsBody
from console.api.client.api_client import ApiClient
from console.domain.errors import Denied
from console.settings.places import find_places
from tests.fakes.canned_api import canned_api

BODY = ProgramsBody(items=[ProgramItem(agent="codex", prompt="p")])
ROUTES: list[tuple[str, Any, Callable[[ApiClient], Any], Any]] = [
    ("GET /api/programs", {"programs": []}, lambda c: c.programs(), None),
    ("POST /api/programs", {"items": []}, lambda c: c.start_programs(BODY), BODY.as_data()),
    ("POST /api/programs/preview", {"items": []}, lambda c: c.preview_programs(BODY), BODY.as_data()),
    (
        "POST /api/agents/a%2Fb/message",
        {"id": "a", "done": "said"},
        lambda c: c.say("a/b", "hi", "ok"),
        {"text": "hi", "dangerous_ok": "ok"},
    ),
    ("POST /api/agents/a/interrupt", {"id": "a", "done": "interrupted"}, lambda c: c.interrupt("a"), {}),
    ("POST /api/agents/a/end", {"id": "a", "done": "runs"}, lambda c: c.end("a", "r", 2), {"reason": "r", "within_s": 2.0}),
]


@pytest.mark.parametrize(("route", "given", "call", "body"), ROUTES, ids=[r[0] for r in ROUTES])
def test_each_asks_its_route(state_dir: Path, route: str, given: Any, call: Callable[[ApiClient], Any], body: Any) -> None:
    places = find_places(str(state_dir), create=True)
    with canned_api(places) as api:
        api.say(route, given)
        call(ApiClient(places))
        assert (f"{api.asked[0].method} {api.asked[0].path}", api.asked[0].body) == (route, body)


def test_a_refusal_comes_with_its_words(state_dir: Path) -> None:
    places = find_places(str(state_dir), create=True)
    with canned_api(places) as api:
        api.refuse("POST /api/agents/a/message", 403, "a gets no message: it is frozen.", exit_code=4)
        with pytest.raises(Denied, match="it is frozen"):
            ApiClient(places).say("a", "hi")
