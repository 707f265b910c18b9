"""Calls set aside: the last place is given once, asking twice sets aside once, and nobody's limit is forgotten."""

from __future__ import annotations

import pytest

from console.domain.agent import AgentId, ContextId
from console.domain.budget import Limits, Reservation, Usage
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.errors import Conflict, Denied, Killed, TooMany
from console.enforcement import reserving
from tests.fakes.playbook import Playbook


def reserve(book: Playbook, agent: str, name: str, ttl: float = 600.0, **estimate: float) -> object:
    usage = Usage(**estimate)  # type: ignore[arg-type]
    book >> e.ReservationAsked(book.at, book.boot, Reservation(name, agent, usage, book.boot + ttl))
    return (book << c.AnswerReservation).error


def test_of_a_hundred_asked_for_the_last_place_one_passes() -> None:
    book = Playbook().run("a", limits=Limits(tool_calls=10))
    book.spend("a", tool_calls=9)
    answers = [reserve(book, "a", f"r{n}", tool_calls=1) for n in range(100)]
    assert answers.count(None) == 1 and sum(isinstance(x, Denied) for x in answers) == 99


@pytest.mark.parametrize("scope", ["tree", "session", "project", "day"])
def test_any_payers_limit_refuses_and_is_named(scope: str) -> None:
    book = Playbook().run("p", context_id=ContextId("s"), project="q").run("a", parent_id=AgentId("p"))
    key = {"tree": "p", "session": "s", "project": "q", "day": ""}[scope]
    book >> e.LimitsChanged(book.at, book.boot, scope, key, Limits(cost_usd=1.0), "operator:0", "r")
    assert reserve(book, "a", "r1", cost_usd=0.7) is None
    refused = reserve(book, "p", "r2", cost_usd=0.4)
    assert isinstance(refused, Denied) and f"{scope} limit cost_usd: 0.7 of 1" in refused.what
    assert [r.kind for r in book.all(c.Record)] == ["budget.denied"]
    reserve(book, "p", "r3", cost_usd=0.4)
    assert book.all(c.Record) == [], "recorded once"


def test_ten_cents_ten_times_are_a_dollar() -> None:
    book = Playbook().run("a", limits=Limits(cost_usd=1.0))
    assert [reserve(book, "a", f"r{n}", cost_usd=0.1) for n in range(10)] == [None] * 10
    assert reserve(book, "a", "more", cost_usd=0.1) is not None


def test_asked_again_by_its_name_it_is_set_aside_once() -> None:
    book = Playbook().run("a", limits=Limits(tokens=10))
    assert reserve(book, "a", "a.k", tokens=10) is None and reserve(book, "a", "a.k", tokens=10) is None
    assert book.state.budget.held[("agent", "a")].tokens == 10


def test_under_a_name_that_is_taken_nobody_gets_more_than_was_set_aside() -> None:
    book = Playbook().run("a", limits=Limits(tokens=10))
    assert reserve(book, "a", "a.k", tokens=1) is None
    assert isinstance(reserve(book, "a", "a.k", tokens=1000), Conflict) and isinstance(reserve(book, "a", "a.k", tool_calls=1), Conflict)
    assert book.state.budget.reservations["a.k"].estimate.tokens == 1


def test_what_is_not_settled_in_time_or_by_one_who_ended_is_counted_in_full_once() -> None:
    book = Playbook().run("a").run("b")
    reserve(book, "a", "r1", ttl=5.0, tokens=7)
    reserve(book, "b", "r2", ttl=500.0, tokens=3)
    book >> e.AgentExited(book.at, book.boot, AgentId("b"), 0)
    book.tick(1.0)
    assert book.agent("b").usage.tokens == 3 and book.agent("a").usage.tokens == 0
    book.tick(10.0)
    assert book.agent("a").usage.tokens == 7 and book.state.budget.held == {} and book.state.budget.held_at == {}
    book.tick(1000.0)
    assert book.agent("a").usage.tokens == 7
    book >> e.ReservationSettled(book.at, book.boot, "r1", Usage(tokens=9))
    assert book.out == [] and book.agent("a").usage.tokens == 7


def test_a_day_that_turns_takes_calls_under_way_along() -> None:
    book = Playbook().run("a")
    reserve(book, "a", "r1", ttl=1e6, tokens=7)
    book.tick(2 * 86400.0)
    [day] = [node for node in book.state.budget.held if node[0] == "day"]
    assert day == ("day", book.state.budget.day.date) and day[1] != "1970-01-01"
    book >> e.ReservationSettled(book.at, book.boot, "r1", Usage(tokens=2))
    assert book.state.budget.held == {} and book.state.budget.spent[day].tokens == 2


def test_one_that_is_being_stopped_sets_nothing_aside_and_no_agent_floods() -> None:
    book = Playbook().run("a", limits=Limits(tokens=5)).run("b")
    book.spend("a", tokens=5)
    assert isinstance(reserve(book, "a", "r1", tokens=1), Killed)
    answers = [reserve(book, "b", f"x{n}", tokens=1) for n in range(reserving.MOST + 1)]
    assert answers[:-1] == [None] * reserving.MOST and isinstance(answers[-1], TooMany)
