"""Who pays: the agent, every tree it is in, its session, its project, the day."""

from __future__ import annotations

from dataclasses import replace

from console.domain.agent import AgentId, ContextId
from console.domain.budget import Limits, Usage
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.ids import ControlLevel
from console.enforcement import budgets, charging
from tests.fakes.playbook import Playbook


def test_everybody_above_pays_and_nobody_beside() -> None:
    book = Playbook().run("r", context_id=ContextId("s"), project="p").run("c", parent_id=AgentId("r")).run("g", parent_id=AgentId("c"))
    book.run("beside", parent_id=AgentId("r"))
    book.spend("g", cost_usd=0.5, tokens=3)
    paid = {node for node in charging.nodes_of(book.state, book.agent("g")) if charging.usage_at(book.state, node).tokens == 3}
    assert paid == {("agent", "g"), ("tree", "g"), ("tree", "c"), ("tree", "r"), ("session", "s"), ("project", "p"), ("day", "1970-01-01")}
    assert charging.usage_at(book.state, ("tree", "beside")) == Usage()
    charged = book << c.Charged
    assert set(charged.nodes) == paid and charged.spent == Usage(tokens=3, cost_usd=0.5)


def test_children_are_charged_to_their_parents_project_and_a_project_is_its_session_unless_named() -> None:
    book = Playbook().run("r", context_id=ContextId("s"))
    assert book.agent("r").charged_project == "s"
    book.run("c", parent_id=AgentId("r"), context_id=ContextId("own"), project="mine")
    assert book.agent("c").charged_project == "s"


def test_a_child_in_a_session_of_its_own_is_no_way_out_of_the_sessions_budget() -> None:
    book = Playbook().run("r", context_id=ContextId("s")).run("c", parent_id=AgentId("r"), context_id=ContextId("own"))
    book >> e.LimitsChanged(book.at, book.boot, "session", "s", Limits(tokens=10), "operator:0", "r")
    assert set((book.spend("c", tokens=10) << c.HaltAgents).agent_ids) == {"r", "c"}
    assert book.state.budget.spent[("session", "own")].tokens == 10
    book.run("p", context_id=ContextId("q")).run("left", parent_id=AgentId("p"), context_id=ContextId("r"))
    book >> e.AgentExited(book.at, book.boot, AgentId("p"), 0)
    book >> e.LimitsChanged(book.at, book.boot, "session", "q", Limits(tokens=5), "operator:0", "r")
    assert (book.spend("left", tokens=5) << c.HaltAgents).agent_ids == ("left",), "though who spawned it has ended"
    book.run("x", context_id=ContextId("t")).run("y", parent_id=AgentId("x"), context_id=ContextId("u"))
    book >> e.LimitsChanged(book.at, book.boot, "session", "t", Limits(tokens=0, wall_s=0.0), "operator:0", "r")
    assert set((book << c.HaltAgents).agent_ids) == {"x", "y"}
    book.launch("z", parent_id=AgentId("y"), context_id=ContextId("v")) << c.RefuseLaunch


def test_a_circle_of_parents_is_followed_once() -> None:
    book = Playbook().run("a").run("b")
    book.state.put(replace(book.agent("a"), parent_id=AgentId("b")))
    book.state.put(replace(book.agent("b"), parent_id=AgentId("a")))
    assert charging.ancestry(book.state, book.agent("a")) == ["a", "b"]
    book.spend("a", tokens=1)
    assert book.state.tree_usage[AgentId("b")].tokens == 1


def test_history_is_none_of_todays_and_the_day_is_charged_no_less_than_transcripts_say() -> None:
    book = Playbook().run("o")
    book.state.put(replace(book.agent("o"), control_level=ControlLevel.OBSERVED))
    tick = e.ClockTicked(book.at, book.boot)
    book.out = list(budgets.metered(book.state, AgentId("o"), Usage(cost_usd=5.0), tick, history=True))
    day = ("day", "1970-01-01")
    assert book.state.budget.spent.get(day, Usage()).cost_usd == 0 and book.state.tree_usage[AgentId("o")].cost_usd == 5.0
    book >> e.TranscriptsSummed(book.at, book.boot, 2.0)
    assert book.state.budget.spent[day].cost_usd == 2.0
    book.out = list(budgets.metered(book.state, AgentId("o"), Usage(cost_usd=5.5), tick))
    book >> e.TranscriptsSummed(book.at, book.boot, 2.5)
    assert book.state.budget.spent[day].cost_usd == 2.5, "what transcripts say is counted once"
    book >> e.TranscriptsSummed(book.at, book.boot, 1.0)
    assert book.state.budget.spent[day].cost_usd == 2.5


def test_a_clock_set_back_leaves_the_day_spent() -> None:
    book = Playbook().run("a")
    book.at += 3 * 86400
    book.boot += 3 * 86400
    book.spend("a", cost_usd=1.0)
    book.at -= 86400
    book.spend("a", cost_usd=1.0)
    assert book.state.budget.spent[("day", "1970-01-04")].cost_usd == 2.0
    assert ("day", "1970-01-03") not in book.state.budget.spent
