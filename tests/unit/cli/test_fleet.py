"""The tree as people and programs see it."""

from __future__ import annotations

from typing import Any

import pytest

from console.api.messages import AgentView
from console.cli.agents.fleet import cost_words, in_tree_order, network_words
from console.cli.terminal import out
from console.domain.budget import LIMIT_NAMES
from tests.fakes.canned_api import CannedApi
from tests.fakes.verbs import Watchfloor

HOSTILE = "\x1b]0;owned\x07\u202e[bold]x[/bold]" + "y" * 100_000

STATUS = {"instance": "i", "host": "h", "version": "1", "state_dir": "/s", "mode": "root", "killed": False, "pid": 1}


def agent(id_: str, parent: str | None = None, **more: object) -> dict[str, object]:
    return {"id": id_, "parent_id": parent, "depth": 2 if parent else 1, "name": id_, **more}


def views(*agents: dict[str, object]) -> list[AgentView]:
    return [AgentView.read(a) for a in agents]


def test_children_stand_below_their_parents() -> None:
    rows = in_tree_order(views(agent("b1", "b"), agent("a"), agent("b"), agent("b2", "b"), agent("b1x", "b1")))
    assert [(guide, a.id) for guide, a in rows] == [("", "a"), ("", "b"), ("├─ ", "b1"), ("│  └─ ", "b1x"), ("└─ ", "b2")]


def test_an_orphan_and_a_loop_are_shown_once_each() -> None:
    rows = in_tree_order(views(agent("o", "gone"), agent("x", "y"), agent("y", "x"), agent("s", "s")))
    assert sorted(a.id for _, a in rows) == ["o", "s", "x", "y"]


def test_a_very_deep_chain_is_shown() -> None:
    chain = [agent("a0"), *(agent(f"a{n}", f"a{n - 1}") for n in range(1, 200))]
    assert len(in_tree_order(views(*chain))) == 200


def test_what_is_not_enforced_is_full_whatever_was_asked(watchfloor: Watchfloor, api: CannedApi) -> None:
    api.say(
        "GET /api/fleet",
        {"agents": [agent("a", network_mode="NONE", network_enforced=False), agent("b", network_mode="NONE", network_enforced=True)]},
    )
    assert network_words(AgentView(id="a", network_mode="NONE")) == "FULL, not enforced"
    said = watchfloor("fleet", "--json")
    assert [a["network_mode"] for a in said.json["agents"]] == ["FULL", "NONE"]
    assert "FULL, not enforced" in watchfloor("fleet").out


def test_nobody_is_said_to_be_there_before_everybody_has_looked(watchfloor: Watchfloor, api: CannedApi) -> None:
    api.say("GET /api/fleet", {"agents": []})
    looked = {"source": "docker", "available": True, "reason": "", "looked_at": 5.0}
    api.say("GET /api/status", STATUS | {"sources": [looked, {"source": "claude_code", "available": False, "reason": "Not looked yet."}]})
    assert "yet: claude_code had no look so far" in watchfloor("fleet").out
    api.say("GET /api/status", STATUS | {"sources": [looked]})
    assert watchfloor("fleet").out.startswith("No agents. Start one with")


def test_json_has_the_documented_keys(watchfloor: Watchfloor, api: CannedApi) -> None:
    api.say("GET /api/fleet", {"killed": True, "agents": [agent("a", cost_usd=1.5)]})
    data = watchfloor("fleet", "--json").json
    assert data["killed"] is True and data["schema_version"] == 1
    wanted = (
        "id parent_id depth name session control_level network_mode sensitivity state cost_usd usage limits pids container_id started_at"
    )
    assert set(wanted.split()) <= set(data["agents"][0])


def test_hostile_names_are_harmless_and_short(watchfloor: Watchfloor, api: CannedApi) -> None:
    api.say("GET /api/fleet", {"killed": True, "kill_reason": HOSTILE, "agents": [agent("a", state_reason=HOSTILE) | {"name": HOSTILE}]})
    said = watchfloor("fleet")
    assert said.code == 0
    assert "\x1b" not in said.out and "\u202e" not in said.out and "\x07" not in said.out
    assert "[bold]" in said.out.replace("\n", "") and len(said.out) < 5000


def test_the_row_says_what_counts(watchfloor: Watchfloor, api: CannedApi) -> None:
    row = agent(
        "a", control_level="managed", cost_usd=2.5, usage={"cost_usd": 2.5}, limits={"cost_usd": 5.0}, state="frozen", causes=["operator"]
    )
    row |= {"tree_limits": {"tokens": 100}, "tree_usage": {"tokens": 7}}
    api.say("GET /api/fleet", {"agents": [row], "spend_today_usd": 2.5})
    text = watchfloor("fleet").out
    for words in ("managed", "$2.50", "2.5/5 $", "7/100 tok tree", "frozen (operator)", "1 agent, 1 active, spent today $2.50"):
        assert words in text


def test_the_row_and_the_agent_say_that_its_rules_alone_bound_it(watchfloor: Watchfloor, api: CannedApi) -> None:
    row = agent("a", state="running", profile="coding", profile_note="rules only, not contained")
    api.say("GET /api/fleet", {"agents": [row, agent("b", state="running", profile="coding")]})
    assert watchfloor("fleet").out.count("running, rules only, not contained") == 1
    api.say("GET /api/agents/a", {"agent": row})
    assert "rules coding, rules only, not contained" in watchfloor("agent", "show", "a").out
    api.say("GET /api/fleet", {"agents": [row | {"state": "ended", "ended_at": 1.8e9}]})
    assert "rules only" not in watchfloor("fleet").out


def test_a_row_names_its_program_and_what_it_spends_in_an_hour(watchfloor: Watchfloor, api: CannedApi) -> None:
    rows = [
        agent("a", source="claude_code", burn_usd_per_h=7.5, cost_usd=2.0),
        agent("b", seen_by=["processes", "codex"], cost_usd=None),
        agent("c", source="evil\x1b[2J", cost_usd=1.0, burn_usd_per_h=9.0, ended_at=5.0),
        agent("d", program="opencode", ended_at=6.0),
    ]
    api.say("GET /api/fleet", {"agents": rows})
    said = watchfloor("fleet", "--columns", "agent,program,depth,burn/h", "--no-headers")
    assert [line.split() for line in said.out.splitlines()] == [
        ["a", "claude-code", "1", "$7.50"], ["b", "codex", "1", "unknown"], ["c", "-", "1", "-"], ["d", "opencode", "1", "-"]
    ]  # fmt: skip
    assert {"PROGRAM", "BURN/H"} <= set(watchfloor("fleet").out.splitlines()[0].split())
    ordered = watchfloor("fleet", "--sort", "-burn/h", "--columns", "agent", "--no-headers").out.split()
    assert ordered[:2] == ["a", "b"] and len(ordered) == 4, "what is not known and what has ended come last"


def test_killed_comes_first(watchfloor: Watchfloor, api: CannedApi) -> None:
    api.say("GET /api/fleet", {"killed": True, "kill_reason": "why"})
    api.say("GET /api/status", STATUS)
    assert watchfloor("fleet").out.startswith("KILLED: why. Nothing starts until you rearm.")


def test_numbers_are_whole_and_short_and_a_tree_of_one_is_told_once(watchfloor: Watchfloor, api: CannedApi) -> None:
    used = {"tokens": 1_234_567.0, "wall_s": 600.7699, "cpu_s": 0.5}
    caps = {"tokens": 2_000_000.0, "wall_s": 600.0, "cpu_s": 10.0}
    alone = agent("a", usage=used, limits=caps, tree_usage=used, tree_limits=caps)
    api.say("GET /api/fleet", {"agents": [alone]})
    text = watchfloor("fleet").out
    for words in ("1,234,567/2,000,000 tok,", "600.77/600 s,", "0.5/10 s cpu"):
        assert words in " ".join(text.split()), text
    assert "tree" not in text and "no limits" not in text
    api.say("GET /api/fleet", {"agents": [alone | {"tree_usage": used | {"cpu_s": 3.0}}]})
    assert "3/10 s cpu tree" in " ".join(watchfloor("fleet").out.split())


@pytest.mark.parametrize("name", LIMIT_NAMES)
def test_an_agent_with_any_limit_is_not_shown_as_one_without(watchfloor: Watchfloor, api: CannedApi, name: str) -> None:
    used: dict[str, Any] = {"usage": {name: 3.0}, "tree_usage": {name: 3.0}}
    for limits in ("limits", "tree_limits"):
        api.say("GET /api/fleet", {"agents": [agent("a") | used | {limits: {name: 7.0}}]})
        text = " ".join(watchfloor("fleet").out.split())
        assert "3/7" in text and "no limits" not in text


def test_eighty_columns_hold_it_and_cut_no_number(watchfloor: Watchfloor, api: CannedApi, monkeypatch: pytest.MonkeyPatch) -> None:
    used, caps = {"tokens": 1_234_567.0, "wall_s": 1338.34}, {"tokens": 2_000_000.0, "wall_s": 3000.0}
    seen = agent("o-261c2fdd5dcf76e9", name="build the docs", control_level="observed", best_effort="only seen", usage=used, limits=caps)
    api.say("GET /api/fleet", {"agents": [seen, agent("b", "o-261c2fdd5dcf76e9", cost_usd=1.2, unpriced=1)]})
    monkeypatch.setattr(out, "_width", lambda: 80)
    lines = watchfloor("fleet").out.splitlines()
    assert max(map(len, lines)) <= 80 and lines[0].split() == ["AGENT", "CONTROL", "NETWORK", "COST", "LIMITS", "USED", "STATE"]
    text = " ".join(lines)
    for words in ("build the docs", "1,234,567/", "2,000,000 tok,", "1,338.34/", "3,000 s", "└─ b", "running"):
        assert words in text, text


def test_what_has_no_price_is_never_nothing() -> None:
    free, unpriced, partly = views(agent("a"), agent("b", unpriced=3), agent("c", unpriced=1, cost_usd=1.2))
    assert [cost_words(one) for one in (free, unpriced, partly)] == ["$0.00", "unpriced", "$1.20 + unpriced"]


def test_a_budget_that_nothing_measured_shows_no_sum(watchfloor: Watchfloor, api: CannedApi) -> None:
    silent = {"scope": "tree", "key": "a-1", "why": "not measured: it has reported no cost yet", "unpriced": True}
    partly = {"scope": "tree", "key": "a-2", "spent_usd": 1.2, "unpriced": True}
    api.say("GET /api/budgets", {"trees": [{"tree": silent}, {"tree": partly}]})
    first, second = [line for line in watchfloor("budget", "list").out.splitlines() if "tree a-" in line]
    assert "unknown" in first and "$" not in first and "it has reported no cost yet" in first
    assert "$1.20" in second and "unpriced" in second


def test_one_that_was_killed_without_proof_is_not_said_to_live(watchfloor: Watchfloor, api: CannedApi) -> None:
    api.say("GET /api/fleet", {"agents": [agent("a", state="alive_after_kill", state_reason="killed, best effort")]})
    said = " ".join(watchfloor("fleet").out.split())
    assert "not confirmed dead: killed, best effort" in said and "alive" not in said
