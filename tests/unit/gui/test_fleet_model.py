"""The tree, its filters, sorts and folds, in plain Python."""

from __future__ import annotations

import time

import pytest

from console.api.agents.fleet_changes import changes_of
from console.api.messages import AgentView
from console.gui.models.fleet import FILTERS, Fleet, is_full, needs_attention, view_mode
from tests.fakes.gui_fixture import many_agents, mockup_agents


def fleet_of(*agents: AgentView) -> Fleet:
    fleet = Fleet()
    fleet.replace(agents)
    return fleet


def ids(fleet: Fleet) -> list[str]:
    return [row.id for row in fleet.arrange()]


def agent(agent_id: str, parent: str | None = None, **more: object) -> AgentView:
    return AgentView.read({"id": agent_id, "parent_id": parent, "name": agent_id, "network_mode": "NONE", "network_enforced": True, **more})


def test_children_stand_below_their_parent() -> None:
    fleet = fleet_of(agent("a"), agent("b"), agent("a1", "a"), agent("a2", "a"), agent("a1x", "a1"))
    assert [(row.id, row.indent) for row in fleet.arrange()] == [("a", 0), ("a1", 1), ("a1x", 2), ("a2", 1), ("b", 0)]


def test_folded_rows_hide_what_is_below() -> None:
    fleet = fleet_of(agent("a"), agent("a1", "a"), agent("a1x", "a1"), agent("b"))
    fleet.closed.add("a")
    assert ids(fleet) == ["a", "b"]


def test_a_match_brings_its_ancestors_even_folded_ones() -> None:
    fleet = fleet_of(agent("a"), agent("a1", "a"), agent("a1x", "a1"), agent("b"))
    fleet.closed.add("a")
    fleet.text = "A1X"
    assert ids(fleet) == ["a", "a1", "a1x"]


@pytest.mark.parametrize("parents", [{"a": "b", "b": "a"}, {"a": "a"}, {"a": "gone"}, {"a": "b", "b": "c", "c": "a"}])
def test_no_row_is_lost_whatever_parents_say(parents: dict[str, str]) -> None:
    fleet = fleet_of(*(agent(child, parent) for child, parent in parents.items()), agent("z"))
    assert sorted(ids(fleet)) == sorted([*parents, "z"])


def test_siblings_are_sorted_under_their_parent() -> None:
    fleet = fleet_of(agent("a", cost_usd=1), agent("a1", "a", cost_usd=5), agent("a2", "a", cost_usd=9), agent("b", cost_usd=7))
    fleet.sort = ("cost", True)
    assert ids(fleet) == ["b", "a", "a2", "a1"]


def test_trees_that_need_a_person_stand_first_and_the_others_stay_as_they_came() -> None:
    fleet = fleet_of(
        agent("calm"), agent("b"), agent("b1", "b"), agent("b2", "b", state="over_budget"), agent("f", state="frozen"),
        agent("q", state="failed"), agent("w"), agent("w1", "w", state="needs_ok"), agent("s", state="alive_after_kill"),
        agent("m", control_level="managed", best_effort="no cgroup"), agent("seen", control_level="observed", best_effort="only seen"),
        agent("late"),
    )  # fmt: skip
    assert ids(fleet) == ["s", "b", "b2", "b1", "w", "w1", "m", "f", "calm", "seen", "late", "q"], (
        "what failed is over: it stands above nothing that runs"
    )
    fleet.apply(changes_of(2, {"patch": [("late", {"cost_usd": 3.0, "burn": [1.0]}), ("calm", {"last_action": "x"})]}))
    moved = [fleet.structure_changed]
    fleet.apply(changes_of(3, {"patch": [("late", {"state": "frozen"})]}))
    moved.append(fleet.structure_changed)
    assert moved == [False, True], "numbers move nobody"
    assert ids(fleet)[7:9] == ["f", "late"]
    fleet.urgent_first = False
    assert ids(fleet)[0] == "calm"
    fleet.urgent_first, fleet.sort = True, ("agent", True)
    assert ids(fleet)[0] == "w", "a column that was asked for goes first"


def test_trees_that_are_over_stand_last_while_somebody_of_them_lives_they_do_not() -> None:
    fleet = fleet_of(
        agent("k", state="killed"), agent("e", state="ended"), agent("e1", "e"), agent("h", state="halted"), agent("w", state="ended"),
        agent("w1", "w", state="over_budget"), agent("loop", "pool", state="ended"), agent("pool", "loop", state="ended"), agent("r"),
    )  # fmt: skip
    assert ids(fleet) == ["w", "w1", "e", "e1", "r", "k", "h", "loop", "pool"]
    fleet.apply(changes_of(2, {"patch": [("e1", {"state": "ended"})]}))
    assert fleet.structure_changed and ids(fleet) == ["w", "w1", "r", "k", "e", "e1", "h", "loop", "pool"]
    fleet.urgent_first = False
    assert ids(fleet)[:3] == ["k", "e", "e1"], "as they came"


def test_a_patch_changes_what_is_shown_counted_and_found() -> None:
    fleet = fleet_of(agent("a", budget_share=0.8), agent("b"))
    fleet.arrange()
    assert fleet.count("attention") == 1
    changes = changes_of(2, {"patch": [("a", {"budget_share": 0.5}), ("b", {"last_action": "Sells\u202ethings"})], "burn_usd_per_h": 7})
    known = fleet.apply(changes)
    assert known and fleet.count("attention") == 0 and not fleet.structure_changed
    assert fleet.rows["b"].action == "Sells\\u202ethings" and fleet.burn_usd_per_h == 7.0
    fleet.text = "sells"
    assert ids(fleet) == ["b"]
    fleet.apply(changes_of(3, {"patch": [("b", {"state": "ended", "name": "<b>x</b>"})], "remove": ["a"]}))
    assert (fleet.live(), fleet.states(), fleet.rows["b"].name) == (0, {"ended": 1}, "<b>x</b>")
    assert not fleet.apply(changes_of(4, {"patch": [("nobody", {"cost_usd": 1})]})), "the fleet must be read anew"


def test_counts_of_the_mock_up() -> None:
    fleet = fleet_of(*mockup_agents())
    states = fleet.states()
    assert (len(fleet.rows), states["running"], states["needs_ok"], states["over_budget"]) == (214, 187, 5, 2)
    assert fleet.count("full") == 1


def test_a_mode_that_is_not_enforced_is_full() -> None:
    loose = agent("a", network_mode="NONE", network_enforced=False)
    fleet = fleet_of(loose, agent("b", network_mode="ODD"))
    assert view_mode(loose) == "FULL"
    assert all(is_full(row) and not needs_attention(row) for row in fleet.rows.values()), "FULL alone is no alarm"


@pytest.mark.parametrize("data", ["CONFIDENTIAL", "SECRET"])
def test_sensitive_data_with_the_whole_network_wants_attention_and_stands_before_calm_trees(data: str) -> None:
    held = agent("held", sensitivity=data, network_mode="NONE", network_enforced=True)
    fleet = fleet_of(agent("calm"), held, agent("loose", sensitivity=data, network_mode="NONE", network_enforced=False))
    assert [row.id for row in fleet.rows.values() if row.attends] == ["loose"] and ids(fleet) == ["loose", "calm", "held"]
    fleet.apply(changes_of(2, {"patch": [("loose", {"state": "killed"})]}))
    assert fleet.count("attention") == 0, "it reaches nothing any more"


def test_what_ended_badly_wants_attention_until_it_was_seen() -> None:
    fleet = fleet_of(agent("h", state="halted"), agent("f", state="failed"), agent("l", state="lost"), agent("calm"))
    assert fleet.count("attention") == 3 and ids(fleet) == ["l", "calm", "h", "f"], "what is halted or failed never stands above what runs"
    fleet.see(["h", "f", "calm", "nobody"])
    assert fleet.count("attention") == 1 and fleet.structure_changed and ids(fleet) == ["l", "calm", "h", "f"]
    fleet.apply(changes_of(2, {"patch": [("h", {"cost_usd": 2.0, "state_reason": "cost"})]}))
    fleet.replace([row.view for row in fleet.rows.values()])
    assert fleet.count("attention") == 1, "it stays seen, whatever is told of it again"
    again = Fleet()
    again.seen = dict(fleet.seen)
    again.replace([agent("h", state="halted"), agent("f", state="alive_after_kill")])
    assert [row.id for row in again.rows.values() if row.attends] == ["f"], "something else became of it"
    fleet.apply(changes_of(3, {"patch": [("h", {"state": "running"}), ("h", {"state": "halted"})]}))
    fleet.apply(changes_of(4, {"patch": [("h", {"state": "running"})]}))
    fleet.apply(changes_of(5, {"patch": [("h", {"state": "halted"})]}))
    assert fleet.rows["h"].attends, "it was halted anew"


def test_ended_agents_need_no_attention() -> None:
    fleet = fleet_of(agent("a", state="ended", budget_share=1.0), agent("b", state="alive_after_kill"))
    assert [row.id for row in fleet.rows.values() if FILTERS["attention"](row)] == ["b"]


@pytest.mark.parametrize(("state", "shown"), [("killed", "burns"), ("failed", "burns"), ("running", "shell ls"), ("ended", "shell ls")])
def test_a_row_tells_why_it_was_killed_in_place_of_what_it_did_last_and_is_found_by_it(state: str, shown: str) -> None:
    fleet = fleet_of(agent("a", state=state, state_reason="burns", last_action="shell ls", ended_at=2.0), agent("b"))
    assert fleet.rows["a"].action == shown
    fleet.text = shown.split()[0]
    assert [row.id for row in fleet.arrange()] == ["a"]


def test_tree_of_a_row() -> None:
    fleet = fleet_of(agent("a"), agent("a1", "a"), agent("a1x", "a1"), agent("b"))
    assert sorted(row.id for row in fleet.tree("a")) == ["a", "a1", "a1x"]
    assert fleet.tree("nobody") == []


def test_an_update_in_place_needs_no_new_list() -> None:
    fleet = fleet_of(agent("a"), agent("b"))
    fleet.arrange()
    seen = []
    fleet.upsert(agent("a", cost_usd=3))
    seen.append(fleet.structure_changed)
    fleet.upsert(agent("a", state="frozen"))
    seen.append(fleet.structure_changed)
    fleet.arrange()
    fleet.remove("b")
    seen.append(fleet.structure_changed)
    assert seen == [False, True, True] and ids(fleet) == ["a"]


def test_ten_thousand_rows_are_arranged_in_a_moment() -> None:
    fleet = fleet_of(*many_agents(10_000))
    fleet.sort, fleet.text = ("budget", True), "agent 7"
    began = time.process_time()
    rows = fleet.arrange()
    assert len(rows) > 1000
    assert time.process_time() - began < 5.0  # measured: 0.1 s on an idle machine
