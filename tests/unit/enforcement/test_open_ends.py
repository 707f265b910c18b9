"""Who was gone at a start has ended upon somebody's word alone; until then, over restarts too, that is not known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.domain.agent import Agent, AgentId, AgentState
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.engine.event import LOOKED_OVER, NOT_ANSWERED, NOT_IN_RECORD, STILL_RUNS, WENT, EndsLearnt
from console.domain.kill import Outcome, Receipt, Target
from console.domain.ladder import Reach, Rung, Scope
from console.enforcement.ladder import Treatment, plan
from tests.fakes.playbook import Playbook

A = AgentId("a1")


def agent(**fields: object) -> Agent:
    return replace(Playbook().run("a1").agent("a1"), **fields)  # type: ignore[arg-type]


def restarted(*agents: Agent) -> Playbook:
    book = Playbook()
    return book >> e.Restored(book.at, book.boot, agents, frozenset(), {}, False, "")


def learnt(book: Playbook, why: str) -> Playbook:
    return book >> EndsLearnt(book.at, book.boot, ((A, why),))


def test_nobody_vouches_yet_and_it_has_neither_ended_nor_a_time_of_its_end() -> None:
    book = restarted(agent())
    assert (book.agent("a1").state, book.agent("a1").state_reason, book.agent("a1").ended_at) == (AgentState.LOST, NOT_ANSWERED, None)
    assert book.state.open_ends == {A} and A not in book.state.live


def test_one_that_never_had_a_ticket_is_over() -> None:
    book = restarted(agent(process=None, state=AgentState.STARTING))
    assert book.agent("a1").state_reason == WENT and book.agent("a1").ended_at and not book.state.open_ends


@pytest.mark.parametrize("why", [NOT_ANSWERED, STILL_RUNS, NOT_IN_RECORD])
def test_the_next_supervisor_finds_it_as_open_as_before(why: str) -> None:
    before = learnt(restarted(agent()), why).agent("a1")
    assert restarted(before).state.open_ends == {A}


def test_the_guards_word_ends_it_and_is_on_record_once() -> None:
    book = learnt(restarted(agent()), NOT_IN_RECORD)
    assert (book << c.Record).verdict == "not_proven" and book.state.open_ends == {A}
    learnt(book, NOT_IN_RECORD)
    book.none(c.Record)
    learnt(book, WENT)
    assert (book << c.Record).what == f"a1: {WENT}" and (book << c.ShowAgent).agent.ended_at == book.at and not book.state.open_ends
    learnt(book, NOT_IN_RECORD)
    assert book.agent("a1").state_reason == WENT, "what is over stays over"


@pytest.mark.parametrize(("why", "after"), [(NOT_IN_RECORD, LOOKED_OVER), (NOT_ANSWERED, NOT_ANSWERED), (STILL_RUNS, STILL_RUNS)])
def test_a_rearm_looked_at_everything_only_where_the_guard_knew_that_somebody_is_missing(why: str, after: str) -> None:
    book = learnt(restarted(agent()), why)
    book >> e.Rearmed(book.at, book.boot, "operator:0", "all clear", ())
    assert book.agent("a1").state_reason == after and bool(book.state.open_ends) is (after == why)


def test_a_press_that_does_not_prove_it_makes_it_one_that_may_live() -> None:
    book = restarted(agent())
    target = Target(A, "managed", Outcome.NOT_PROVEN, None)
    book >> e.KillJudged(book.at, book.boot, Receipt("k-1", "i", "all", "r", "b", book.at, targets=(target,)))
    assert book.agent("a1").state is AgentState.ALIVE_AFTER_KILL and not book.state.open_ends and A in book.state.live


def test_whoever_names_it_may_kill_it_and_is_told_what_is_not_known() -> None:
    book, scope = restarted(agent()), Scope(Reach.AGENT, "a1")
    [line] = plan(book.state, Rung.KILL, scope).lines
    assert (line.treatment, line.why) == (Treatment.BEST_EFFORT, NOT_ANSWERED)
    assert plan(book.state, Rung.FREEZE, scope).lines[0].why == NOT_ANSWERED, "not: it has ended"
    learnt(book, WENT)
    assert plan(book.state, Rung.KILL, scope).lines[0].why == "it has ended"
