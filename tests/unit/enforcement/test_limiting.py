"""Warned once at 75 and 90 %, halted at 100 %; what is only seen is never said to be stopped; limits change while agents run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.domain.agent import AgentId, AgentState, ContextId
from console.domain.budget import Limits, Usage
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.ids import ControlLevel
from console.enforcement import budgets
from console.enforcement.limiting import PASSED, passed_words
from tests.fakes.playbook import Playbook

TODAY = "1970-01-01"

WAYS = ": adopt or kill it (watchfloor adopt {0}, or watchfloor kill {0})"


def warnings(book: Playbook) -> list[str]:
    return [r.what for r in book.all(c.Record) if r.kind == "budget.warned"]


def change(book: Playbook, scope: str, key: str, **limits: float) -> Playbook:
    return book >> e.LimitsChanged(book.at, book.boot, scope, key, Limits(**limits), "operator:0", "because")  # type: ignore[arg-type]


def seen_only(book: Playbook, agent_id: str) -> None:
    book.state.put(replace(book.agent(agent_id), control_level=ControlLevel.OBSERVED))


def test_each_mark_is_said_once_everywhere_it_should_be() -> None:
    book = Playbook().run("a", limits=Limits(tokens=100), tree_limits=Limits(tokens=1000))
    book.spend("a", tokens=74)
    assert warnings(book) == []
    book.spend("a", tokens=1)
    assert warnings(book) == ["75 % of the agent limit tokens: 75 of 100"]
    assert (book << c.Announce).text == "a: 75 % of the agent limit tokens: 75 of 100" and (book << c.TellAgent).kind == "budget"
    assert any(n.kind == "budget" for n in book.all(c.NoteEvent))
    assert {("agent", "a", "tokens"): 75} in [k.warned for k in book.all(c.KeepBooks)], "durable: no restart says it again"
    book.spend("a", tokens=5)
    assert warnings(book) == []
    book.spend("a", tokens=10)
    assert warnings(book) == ["90 % of the agent limit tokens: 90 of 100"]
    book.spend("a", tokens=10) << c.HaltAgents
    assert warnings(book) == []


def test_a_jump_over_both_marks_is_one_warning_and_over_the_cap_none() -> None:
    book = Playbook().run("a", limits=Limits(tokens=100), tree_limits=Limits(tokens=900)).run("b", limits=Limits(tokens=100))
    book.spend("a", tokens=95)
    assert warnings(book) == ["90 % of the agent limit tokens: 95 of 100"]
    book.spend("b", tokens=300) << c.HaltAgents
    assert warnings(book) == []


def test_a_mark_that_a_higher_limit_takes_back_is_said_again_when_it_is_passed_again() -> None:
    book = Playbook().run("a", limits=Limits(tokens=100), tree_limits=Limits(tokens=900))
    book.spend("a", tokens=80)
    change(book, "agent", "a", tokens=200)
    assert {("agent", "a", "tokens"): 0} in [k.warned for k in book.all(c.KeepBooks)]
    book.spend("a", tokens=70)
    assert warnings(book) == ["75 % of the agent limit tokens: 150 of 200"]


def test_who_is_only_seen_is_warned_of_once_and_never_said_to_be_stopped() -> None:
    book = Playbook().run("o", context_id=ContextId("s")).run("m", context_id=ContextId("s"))
    seen_only(book, "o")
    change(book, "session", "s", cost_usd=1.0)
    book >> e.UsageReported(book.at, book.boot, AgentId("o"), cost_usd=1.5)
    assert (book << c.HaltAgents).agent_ids == ("m",)
    assert book.agent("o").state is AgentState.RUNNING
    said = [r.what for r in book.all(c.Record) if r.kind == "budget.over"]
    assert said == ["o: session limit cost_usd: 1.5 of 1 (s); " + PASSED + WAYS.format("o")]
    book >> e.UsageReported(book.at, book.boot, AgentId("o"), cost_usd=1.0)
    assert not [r for r in book.all(c.Record) if r.kind == "budget.over"]
    change(book, "agent", "o", cost_usd=1.0)
    book.none(c.HaltAgents)
    assert [r for r in book.all(c.Record) if r.kind == "budget.over"]


def test_an_adoption_that_would_be_refused_is_not_recommended() -> None:
    book = Playbook().run("o", context_id=ContextId("s"))
    seen_only(book, "o")
    book.state.can_adopt = False
    change(book, "session", "s", cost_usd=1.0)
    book >> e.UsageReported(book.at, book.boot, AgentId("o"), cost_usd=1.5)
    (said,) = [r.what for r in book.all(c.Record) if r.kind == "budget.over"]
    assert "end it where it was started; it cannot be adopted: there is no writable cgroup here" in said and "watchfloor adopt" not in said
    book.state.kill_observed = {AgentId("o")}
    assert f"{PASSED}: kill it (watchfloor kill o); it cannot be adopted" in passed_words(book.state, book.agent("o"))


def test_rows_of_those_that_are_only_seen_are_current_after_midnight_and_many_are_announced_once() -> None:
    book = Playbook().run("o1", context_id=ContextId("s")).run("o2", context_id=ContextId("s"))
    seen_only(book, "o1")
    seen_only(book, "o2")
    change(book, "day", "", cost_usd=1.0)
    book >> e.UsageReported(book.at, book.boot, AgentId("o1"), cost_usd=1.5)
    assert [a.text for a in book.all(c.Announce) if a.level == "red"] == [
        "2 observed agents are over a limit and go on: day limit cost_usd: 1.5 of 1 (1970-01-01). Each row says how to stop its agent."
    ]
    assert passed_words(book.state, book.agent("o2")) == PASSED + WAYS.format("o2")
    book.tick(86_400.0)
    assert {shown.agent.agent_id for shown in book.all(c.ShowAgent)} >= {"o1", "o2"}
    assert passed_words(book.state, book.agent("o2")) == ""
    assert book.tick(1.0).all(c.ShowAgent) == []


def test_what_is_seen_inside_an_agent_that_is_halted_ends_with_it() -> None:
    book = Playbook().run("p", limits=Limits(cost_usd=1.0)).run("sub", parent_id=AgentId("p"))
    seen_only(book, "sub")
    book >> e.UsageReported(book.at, book.boot, AgentId("sub"), cost_usd=2.0)
    assert (book << c.HaltAgents).agent_ids == ("p",)
    assert not [r for r in book.all(c.Record) if r.kind == "budget.over"]


def test_an_adopted_agent_is_halted() -> None:
    book = Playbook().run("a", limits=Limits(cost_usd=1.0))
    book.state.put(replace(book.agent("a"), control_level=ControlLevel.ADOPTED))
    assert (book.spend("a", cost_usd=1.0) << c.HaltAgents).agent_ids == ("a",)


def test_a_step_that_takes_too_long_is_ended_in_its_middle_whatever_scope_says_so_and_it_alone() -> None:
    book = Playbook().run("slow", context_id=ContextId("s")).run("busy", context_id=ContextId("s"))
    change(book, "session", "s", step_s=60.0)
    for _ in range(6):
        book.tick(9.0).none(c.HaltAgents)
        book.spend("busy", iterations=1)
    halt = book.tick(9.0) << c.HaltAgents
    assert halt.agent_ids == ("slow",) and halt.reason.startswith("session limit step_s: 63 of 60")
    book.launch("another", context_id=ContextId("s")) << c.StartAgent


def test_a_step_stands_still_while_frozen_and_wall_time_does_not() -> None:
    book = Playbook().run("a", limits=Limits(step_s=60.0, wall_s=1000.0))
    book.tick(10.0)
    book >> e.FrozenSetChanged(book.at, book.boot, {AgentId("a"): ("operator",)})
    for _ in range(10):
        book.tick(30.0).none(c.HaltAgents)
    book >> e.FrozenSetChanged(book.at, book.boot, {})
    book.tick(40.0).none(c.HaltAgents)
    assert book.agent("a").usage.wall_s == 350.0
    assert "step_s" in (book.tick(20.0) << c.HaltAgents).reason


def test_errors_one_after_another_end_it_and_a_step_that_goes_well_ends_the_row() -> None:
    book = Playbook().run("a", limits=Limits(consecutive_errors=3))
    for errors in (1, 1, 0, 1, 1):
        book.spend("a", iterations=1, errors=errors).none(c.HaltAgents)
    assert (book.spend("a", iterations=1, errors=1) << c.HaltAgents).reason == "agent limit consecutive_errors: 3 of 3"


@pytest.mark.parametrize(("scope", "key"), [("session", "s"), ("project", "p"), ("day", "")])
def test_a_wide_breach_halts_all_in_it_and_what_they_spawned_and_closes_it_until_it_is_raised(scope: str, key: str) -> None:
    book = Playbook().run("a", context_id=ContextId("s"), project="p").run("b", context_id=ContextId("s"), project="p")
    book.run("child", parent_id=AgentId("b"), context_id=ContextId("elsewhere"))
    if scope != "day":
        book.run("bystander", context_id=ContextId("t"), project="q")
    change(book, scope, key, tokens=100)
    assert set((book.spend("a", tokens=100) << c.HaltAgents).agent_ids) == {"a", "b", "child"}
    refused = book.launch("new", context_id=ContextId("s"), project="p") << c.RefuseLaunch
    assert int(refused.error.exit_code) == 4 and f"watchfloor budget set --{scope}" in refused.error.remedy
    change(book, scope, key, tokens=200)
    book.launch("new2", context_id=ContextId("s"), project="p") << c.StartAgent


def test_a_lower_limit_halts_at_once_and_a_limit_of_nothing_opens_nothing() -> None:
    book = Playbook().run("a", context_id=ContextId("s"))
    book.spend("a", tokens=50)
    change(book, "session", "s", tokens=60).none(c.HaltAgents)
    assert (change(book, "session", "s", tokens=50) << c.HaltAgents).agent_ids == ("a",)
    change(book, "session", "empty", tokens=0)
    assert book.launch("b", context_id=ContextId("empty")) << c.RefuseLaunch


@pytest.mark.parametrize("scope", ["session", "project", "day", "type"])
def test_a_limit_is_in_the_books_with_the_step_that_made_it_hold(scope: str) -> None:
    book = Playbook() >> e.LimitsChanged(1000.0, 50.0, scope, "k", Limits(cost_usd=1.0), "operator:0", "r")
    assert (book << c.KeepBooks).limits == {(scope, "k"): Limits(cost_usd=1.0)}


def test_limits_of_nobody_change_nothing() -> None:
    assert change(Playbook().run("a"), "agent", "nobody", tokens=1).out == []


def test_a_type_bounds_those_who_start_later_and_an_agent_cannot_ask_for_more() -> None:
    book = Playbook()
    change(book, "type", "bot", cost_usd=2.0)
    book.state.budget.defaults["agent"] = Limits(wall_s=60.0)
    book.run("a", agent_type="bot")
    assert book.agent("a").limits == Limits(cost_usd=2.0, wall_s=60.0)
    book.run("b", agent_type="bot", limits=Limits(cost_usd=9.0))
    assert book.agent("b").limits == Limits(cost_usd=9.0, wall_s=60.0), "an operator may"
    book.launch("k", parent_id=AgentId("a"), limits=Limits(wall_s=9000.0), by="agent:a")
    assert book.agent("k").limits.wall_s == 60.0


def test_the_end_that_is_proven_tells_by_how_much_the_cap_was_passed_and_late_transcripts_still_count() -> None:
    book = Playbook().run("a", limits=Limits(cost_usd=1.0))
    book >> e.Sighted(book.at, book.boot, ())
    book.out = list(budgets.metered(book.state, AgentId("a"), Usage(cost_usd=1.25), e.ClockTicked(book.at, book.boot)))
    book << c.HaltAgents
    halt = book.agent("a").halt
    assert halt is not None and (halt.used, halt.overshoot) == (1.25, None)
    book.state.put(budgets.measured(book.state, replace(book.agent("a"), state=AgentState.HALTED)))
    book.out = list(budgets.metered(book.state, AgentId("a"), Usage(cost_usd=1.5), e.ClockTicked(book.at, book.boot)))
    halt = book.agent("a").halt
    assert halt is not None and halt.overshoot == 0.5 and book.agent("a").usage.cost_usd == 1.5
    assert book.state.budget.spent[("day", TODAY)].cost_usd == 1.5
    book.out = list(budgets.metered(book.state, AgentId("a"), Usage(cost_usd=0.1), e.ClockTicked(book.at, book.boot)))
    assert book.out == [] and book.agent("a").usage.cost_usd == 1.5, "a transcript that shrinks lowers nothing"


def test_a_session_or_day_that_is_hostile_in_name_is_plain_in_words() -> None:
    book = Playbook().run("a", project="p\x1b]0;x\x07" + "y" * 200)
    node = ("project", book.agent("a").charged_project)
    book.state.budget.limits[node] = Limits(tokens=1)
    reason = (book.spend("a", tokens=1) << c.HaltAgents).reason
    assert reason.isprintable() and len(reason) < 200


@pytest.mark.parametrize("scope", ["day", "session"])
def test_a_warning_of_a_shared_limit_names_its_biggest_spenders_to_people_and_to_no_agent(scope: str) -> None:
    book = Playbook()
    for name in ("a", "b", "c", "d"):
        book.run(name)
        book.state.put(replace(book.agent(name), context_id=ContextId("s"), name=f"agent {name}"))
    book >> e.LimitsChanged(book.at, book.boot, scope, "" if scope == "day" else "s", Limits(cost_usd=10.0), "operator", "r")
    book.spend("a", cost_usd=1.0)
    book.spend("b", cost_usd=3.5)
    book.spend("c", cost_usd=0.5)
    book >> e.AgentExited(book.at, book.boot, AgentId("b"), 0)
    book.spend("d", cost_usd=2.5)
    [said] = [a.text for a in book.all(c.Announce) if "75 %" in a.text]
    assert said.endswith(". Most by agent b ($3.50), agent d ($2.50), agent a ($1.00)")
    told = [t.text for t in book.all(c.TellAgent)]
    assert told and not [text for text in told if "Most by" in text]
    book.spend("d", cost_usd=5.0)
    [red] = [a.text for a in book.all(c.Announce) if a.level == "red"]
    assert red.startswith("3 agents halted, ") and ". Most by agent d ($7.50), agent b ($3.50), agent a ($1.00)" in red
