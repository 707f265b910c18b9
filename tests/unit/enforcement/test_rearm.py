"""The engine between a press and a rearm: whichever is heard of first, a kill that no rearm covered holds (K8)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from console.domain.engine import command as c
from console.domain.engine import event as e
from console.enforcement.engine import Engine
from tests.fakes.playbook import Playbook

KILLS = ("k-1", "k-2", "k-3")


def killed(book: Playbook, kill_id: str) -> Playbook:
    return book >> e.KillStarted(book.at, book.boot, kill_id, None, "why", "operator:0")


def rearmed(book: Playbook, *kills: str) -> Playbook:
    return book >> e.Rearmed(book.at, book.boot, "operator:0", "all clear", kills)


def test_a_rearm_releases_what_it_covers() -> None:
    book = killed(killed(Playbook(), "k-1"), "k-2")
    rearmed(book, "k-1", "k-2") << c.Record
    assert not book.state.killed and not book.state.latched
    book.run("after")


def test_a_press_that_is_heard_of_before_an_older_rearm_holds() -> None:
    book = killed(killed(Playbook(), "k-1"), "k-2")
    record = rearmed(book, "k-1") << c.Record
    assert book.state.killed and record.kind == "kill.holds" and "k-2" in record.what
    book.launch("late")
    book.none(c.StartAgent)


def test_marks_and_kills_of_before_this_supervisor_are_covered_too() -> None:
    book = Playbook()
    book >> e.Restored(book.at, book.boot, (), frozenset(), {}, True, "killed before")
    rearmed(book, "latch-unreadable", "an-older-one")
    assert not book.state.killed


def test_a_kill_of_named_agents_latches_nothing() -> None:
    book = Playbook().run("one")
    book >> e.KillStarted(book.at, book.boot, "k-9", (book.agent("one").agent_id,), "why", "operator:0")
    assert not book.state.latched and not book.state.killed


@given(st.lists(st.one_of(st.sampled_from(KILLS), st.sets(st.sampled_from(KILLS), min_size=1)), max_size=12))
def test_in_every_order_it_is_killed_exactly_while_a_kill_is_uncovered(steps: list[str | set[str]]) -> None:
    book, latched = Playbook(), set[str]()
    for step in steps:
        if isinstance(step, str):
            killed(book, step)
            latched.add(step)
        else:
            rearmed(book, *sorted(step))
            latched -= step
        assert book.state.killed is bool(latched)
    assert isinstance(book.engine, Engine)
