"""The beginning of an id stands for it where it begins no other one."""

from __future__ import annotations

import json

import pytest

from tests.fakes.canned_api import CannedApi
from tests.fakes.verbs import Watchfloor

GONE = (404, json.dumps({"error": "There is no agent.", "remedy": "watchfloor fleet lists the agents.", "exit_code": 3}).encode())


def fleet(api: CannedApi, *ids: str) -> None:
    api.say("GET /api/fleet", {"agents": [{"id": one, "name": "a-1 \x1b[31m"} for one in ids]})


def test_a_beginning_is_completed_after_nothing_was_found(api: CannedApi, watchfloor: Watchfloor) -> None:
    fleet(api, "a-12ab34cd", "a-13ab34cd")
    api.answers["POST /api/ladder"] = [GONE, (200, b'{"agents": ["a-12ab34cd"]}')]
    assert watchfloor("freeze", "a-12", "--reason", "r").code == 0
    assert [one.body["scope"]["target"] for one in api.asked if one.method == "POST"] == ["a-12", "a-12ab34cd"]


@pytest.mark.parametrize(
    ("word", "code", "words"),
    [
        ("a-12", 2, "'a-12' begins several ids: a-12ab34cd, a-12ef34cd."),
        ("a-99", 3, "There is no agent."),
        ("a-1", 3, "There is no agent."),
        ("2ab34", 3, "There is no agent."),
    ],
)
def test_nothing_is_done_where_it_begins_several_or_none_or_is_too_short(
    api: CannedApi, watchfloor: Watchfloor, word: str, code: int, words: str
) -> None:
    fleet(api, "a-12ab34cd", "a-12ef34cd")
    api.answers["POST /api/ladder"] = GONE
    said = watchfloor("freeze", word, "--reason", "r")
    assert said.code == code and words in said.err and len([one for one in api.asked if one.method == "POST"]) == 1


def test_an_id_that_proves_that_a_person_knows_it_is_never_completed(api: CannedApi, watchfloor: Watchfloor) -> None:
    fleet(api, "a-12ab34cd")
    api.answers["POST /api/launch"] = GONE
    watchfloor("run", "--again", "a-12", "--", "x")
    watchfloor("rearm", "--kill-id", "2026", "--reason", "r")
    assert not [one for one in api.asked if one.path in ("/api/fleet", "/api/receipts")]


def test_a_kill_is_shown_by_the_beginning_of_its_id(api: CannedApi, watchfloor: Watchfloor) -> None:
    words, numbers = dict.fromkeys(("scope", "reason", "by"), "x"), dict.fromkeys(("proven", "targets", "best_effort", "exit_code"), 0)
    row = {"kill_id": "20260101-000000-abcdef01", "pressed_at": 1.0, "ms_total": 1.0, "verified_zero": True, "complete": True}
    api.say("GET /api/receipts", {"receipts": [row | words | numbers]})
    api.answers["GET /api/receipts/20260101"] = GONE
    watchfloor("receipt", "show", "20260101")
    assert api.asked[-1].path == "/api/receipts/20260101-000000-abcdef01"
