"""``watchfloor budget``: its list as a person wants it, and the question before a limit that halts agents at once."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.fakes.canned_api import CannedApi
from tests.fakes.verbs import Watchfloor

SET = {"scope": "agent", "key": "a-1", "words": "agent a-1: cost_usd none -> 2: r"}
ARGV = ("budget", "set", "cost=2", "--agent", "a-1", "--reason", "r")


class Answers:
    """Standard input of a person at a terminal."""

    def __init__(self, answer: str) -> None:
        self.answer = answer

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        return self.answer


def offer(api: CannedApi, *halted: str) -> None:
    dry = (200, json.dumps(SET | {"dry_run": True, "halted": list(halted)}).encode())
    api.answers["POST /api/budgets"] = [dry, (200, json.dumps(SET).encode())]
    api.say("GET /api/fleet", {"agents": [{"id": one, "name": f"shop\x1b[2J {one}"} for one in halted]})


def asked(api: CannedApi) -> list[Any]:
    return [one.body.get("dry_run", False) for one in api.asked if one.method == "POST"]


def test_a_limit_that_would_halt_agents_is_not_set_without_a_word_of_a_person(api: CannedApi, watchfloor: Watchfloor) -> None:
    offer(api, "a-1", "a-2")
    said = watchfloor(*ARGV)
    assert said.code == 2 and "would halt 2 agents at once: a-1, a-2. Nothing was changed." in said.err and "--yes" in said.err
    assert asked(api) == [True]


@pytest.mark.parametrize(("answer", "code", "orders"), [("y\n", 0, [True, False]), ("\n", 130, [True]), ("", 130, [True])])
def test_a_person_at_a_terminal_is_asked_with_the_list_of_agents(
    api: CannedApi, watchfloor: Watchfloor, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, orders: list[bool]
) -> None:
    offer(api, "a-1", "a-2")
    monkeypatch.setattr(sys, "stdin", Answers(answer))
    said = watchfloor(*ARGV)
    assert said.code == code and asked(api) == orders
    assert "a-1  shop" in said.err and "a-2  shop" in said.err and "\x1b" not in said.err


def test_what_halts_no_agent_is_set_at_once_and_yes_asks_nothing(api: CannedApi, watchfloor: Watchfloor) -> None:
    offer(api)
    assert watchfloor(*ARGV).code == 0 and asked(api) == [True, False]
    api.asked.clear()
    offer(api, "a-1")
    api.say("POST /api/budgets", SET)
    assert watchfloor(*ARGV, "--yes").code == 0 and asked(api) == [False]


def test_the_list_is_sorted_and_cut_as_any_other(api: CannedApi, watchfloor: Watchfloor) -> None:
    rows = [{"scope": "tree", "key": f"a-{n}", "name": f"n{n}", "spent_usd": float(n), "share": n / 10} for n in (2, 10, 1)]
    api.say("GET /api/budgets", {"trees": [{"tree": row, "first": [row | {"scope": "agent"}]} for row in rows]})
    said = watchfloor("budget", "list", "--sort", "-spent", "--columns", "what,spent", "--no-headers")
    assert [line.split() for line in said.out.splitlines()][::2] == [["tree", f"a-{n}", f"${n}.00"] for n in (10, 2, 1)]
    assert watchfloor("budget", "list").out.startswith("over 0, above 75 % 0")


def test_the_beginning_of_a_sessions_id_stands_for_it_and_one_that_does_not_run_is_told(api: CannedApi, watchfloor: Watchfloor) -> None:
    """A limit may be set before its session begins, so no refusal of the supervisor's tells that an id was typed wrongly."""
    offer(api)
    agents = [{"id": f"a-{n}", "name": "x", "session": f"ctx-a-{n}"} for n in ("12ab", "34cd", "34ef")]
    api.say("GET /api/fleet", {"agents": agents})
    api.say("POST /api/budgets", SET)

    def set_for(session: str) -> tuple[int, str, str]:
        api.asked.clear()
        said = watchfloor("budget", "set", "cost=2", "--session", session, "--reason", "r", "--yes")
        keys = [one.body["key"] for one in api.asked if one.method == "POST"]
        return said.code, keys[0] if keys else "", said.err

    assert set_for("ctx-a-12") == (0, "ctx-a-12ab", "")
    code, key, told = set_for("ctx-a-34")
    assert (code, key) == (2, "") and "begins several ids: ctx-a-34cd, ctx-a-34ef" in told
    code, key, told = set_for("a-12ab")
    assert (code, key) == (0, "a-12ab") and "No agent runs in session a-12ab now" in told


def test_a_limit_is_written_as_run_takes_it_or_without_the_option(api: CannedApi, watchfloor: Watchfloor) -> None:
    offer(api)
    api.say("POST /api/budgets", SET)
    for words in (["cost=2", "--limit", "wall=60"], ["--limit", "cost=2", "--limit", "wall=60"]):
        api.asked.clear()
        assert watchfloor("budget", "set", *words, "--day", "--reason", "r", "--yes").code == 0
        assert api.asked[-1].body["limits"] == {"cost_usd": 2.0, "wall_s": 60.0}
    said = watchfloor("budget", "set", "--day", "--reason", "r")
    assert said.code == 2 and "No limit is named." in said.err and "cost=2.50" in said.err
