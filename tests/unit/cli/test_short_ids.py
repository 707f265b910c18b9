"""The beginning of an id stands for it where it begins no other one; a name is offered, and taken only where nothing is changed."""

from __future__ import annotations

import json

import pytest

from tests.fakes.canned_api import CannedApi
from tests.fakes.verbs import Watchfloor

GONE = (404, json.dumps({"error": "There is no agent.", "remedy": "watchfloor fleet lists the agents.", "exit_code": 3}).encode())


def fleet(api: CannedApi, *ids: str, **names: str) -> None:
    named = {f"a-{key}": name for key, name in names.items()}
    agents = [{"id": one, "name": named.get(one, "a-1 \x1b[31m"), "session": f"s-{one}"} for one in (*ids, *named)]
    api.say("GET /api/fleet", {"agents": agents})


def orders(api: CannedApi) -> list[object]:
    return [one.body["scope"] for one in api.asked if one.method == "POST"]


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


@pytest.mark.parametrize("word", ["all", "everything"])
def test_a_person_who_types_all_for_an_agent_hears_what_stops_everything(api: CannedApi, watchfloor: Watchfloor, word: str) -> None:
    fleet(api, "a-12ab34cd")
    said = watchfloor("kill", word, "--reason", "r")
    assert said.code == 3 and "There is no agent" in said.err and "For everything: watchfloor panic." in said.err
    assert not [one for one in api.asked if one.method == "POST" and "a-12ab34cd" in str(one.body)]


def test_a_kill_is_shown_by_the_beginning_of_its_id(api: CannedApi, watchfloor: Watchfloor) -> None:
    words, numbers = dict.fromkeys(("scope", "reason", "by"), "x"), dict.fromkeys(("proven", "targets", "best_effort", "exit_code"), 0)
    row = {"kill_id": "20260101-000000-abcdef01", "pressed_at": 1.0, "ms_total": 1.0, "verified_zero": True, "complete": True}
    api.say("GET /api/receipts", {"receipts": [row | words | numbers]})
    api.answers["GET /api/receipts/20260101"] = GONE
    watchfloor("receipt", "show", "20260101")
    assert api.asked[-1].path == "/api/receipts/20260101-000000-abcdef01"


def test_one_order_holds_for_several_each_by_the_beginning_of_its_id(api: CannedApi, watchfloor: Watchfloor) -> None:
    fleet(api, "a-12ab34cd", "a-56ef78ab")
    api.say("POST /api/ladder", {"agents": ["a-12ab34cd", "a-56ef78ab"]})
    said = watchfloor("freeze", "a-12ab", "a-56ef78ab")
    assert said.code == 0 and said.out == "frozen: a-12ab34cd, a-56ef78ab\n"
    assert orders(api) == [{"reach": "agent", "target": "a-12ab34cd", "others": ["a-56ef78ab"]}]


def test_of_several_those_that_there_are_are_stopped_and_the_others_are_no_success(api: CannedApi, watchfloor: Watchfloor) -> None:
    fleet(api, "a-12ab34cd", "a-56ef78ab", b1="billing")
    api.say("POST /api/ladder", {"agents": ["a-12ab34cd", "a-56ef78ab"]})
    said = watchfloor("freeze", "a-12ab34cd", "typo\x1b[2J", "billing", "a-56ef78ab")
    assert said.code == 3 and said.out == "frozen: a-12ab34cd, a-56ef78ab\n" and "\x1b" not in said.err
    assert "There is no agent 'typo" in said.err and "Did you mean agent a-b1, which has this name?" in said.err
    fleet(api, "a-12ab34cd")
    assert watchfloor("freeze", "typo", "typo-too").code == 3 and len(orders(api)) == 1, "with none left nothing is asked"


@pytest.mark.parametrize("name", ["billing", "fix the tests"])
@pytest.mark.parametrize("verb", ["kill", "freeze", "isolate", "say", "finish"])
def test_a_verb_that_acts_offers_the_agent_of_a_name_and_does_nothing(api: CannedApi, watchfloor: Watchfloor, verb: str, name: str) -> None:
    fleet(api, "a-12ab34cd", b1=name)
    api.answers["POST /api/ladder"] = GONE
    said = watchfloor(verb, name, *(["hello"] if verb == "say" else []))
    assert said.code == 3 and f"There is no agent '{name}'. Did you mean agent a-b1, which has this name?" in said.err
    assert not [one for one in api.asked if one.method == "POST" and "a-b1" in f"{one.path} {one.body}"]


def test_who_starts_an_agent_again_by_its_name_is_offered_its_id(api: CannedApi, watchfloor: Watchfloor) -> None:
    fleet(api, "a-12ab34cd", b1="billing")
    said = watchfloor("run", "--again", "billing")
    assert said.code == 3 and "Did you mean agent a-b1, which has this name?" in said.err


def test_a_verb_that_only_shows_takes_a_name_that_one_agent_has(api: CannedApi, watchfloor: Watchfloor) -> None:
    fleet(api, b1="billing", b2="web", b3="web")
    api.answers["GET /api/agents/billing"] = api.answers["GET /api/agents/web"] = GONE
    for noun in ("agent", "sandbox"):
        watchfloor(noun, "show", "billing")
        assert api.asked[-1].path == "/api/agents/a-b1"
    said = watchfloor("agent", "show", "web")
    assert said.code == 2 and "'web' is the name of several agents: a-b2, a-b3." in said.err


def test_options_are_resolved_as_arguments_are(api: CannedApi, watchfloor: Watchfloor) -> None:
    fleet(api, "a-12ab34cd")
    api.answers["POST /api/ladder"] = [GONE, (200, b'{"agents": ["a-12ab34cd"]}')]
    assert watchfloor("freeze", "--session", "s-a-12").code == 0
    assert orders(api)[-1] == {"reach": "session", "target": "s-a-12ab34cd"}
    api.answers["GET /api/budgets/node"] = GONE
    watchfloor("budget", "list", "--agent", "a-12")
    assert api.asked[-1].path == "/api/budgets/node?scope=agent&key=a-12ab34cd"
