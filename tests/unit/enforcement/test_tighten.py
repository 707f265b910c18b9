"""The ratchet as dialogue: who is meant, what is refused, who is switched, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.domain.agent import AgentId, ContextId
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.errors import Conflict, Denied, NotFound, UsageProblem
from console.domain.ladder import Reach, Scope
from console.domain.network import NetworkMode, Sensitivity
from console.enforcement.tighten import meant, refuse_looser
from tests.fakes.playbook import Playbook

FULL, PROXIED, NONE = NetworkMode.FULL, NetworkMode.PROXIED, NetworkMode.NONE


def tree() -> Playbook:
    """a1 in s1 with a child in s2; b1 alone in s1 too; c1 in s3."""
    book = Playbook().run("a1", context_id=ContextId("s1"), network_mode=PROXIED)
    book.run("a2", parent_id=AgentId("a1"), context_id=ContextId("s2"))
    return book.run("b1", context_id=ContextId("s1")).run("c1", context_id=ContextId("s3"))


def tighten(book: Playbook, scope: Scope, mode: NetworkMode, level: Sensitivity = Sensitivity.PUBLIC) -> Playbook:
    found = meant(book.state, scope)
    named = AgentId(scope.target) if scope.reach is Reach.AGENT else None
    return book >> e.Tightened(book.at, book.boot, named, found.contexts, level, mode, "operator:0: odd")


@pytest.mark.parametrize("scope", [Scope(Reach.AGENT, "a1"), Scope(Reach.SESSION, "s1")])
def test_a_session_is_meant_as_a_whole_with_all_that_was_spawned_from_it(scope: Scope) -> None:
    found = meant(tree().state, scope)
    assert (found.named, found.contexts, found.ids) == ("s1", ("s1", "s2"), ("a1", "a2", "b1"))


def test_a_session_where_nobody_lives_can_be_meant_and_holds_for_who_joins() -> None:
    book = tree()
    book >> e.AgentExited(book.at, book.boot, AgentId("c1"), 0)
    assert meant(book.state, Scope(Reach.SESSION, "s3")).ids == ()
    tighten(book, Scope(Reach.SESSION, "s3"), NONE).none(c.SwitchNetwork)
    assert book.run("c2", context_id=ContextId("s3")).agent("c2").network_mode is NONE
    assert book.agent("c2").network_why == "its session is in NONE"


@pytest.mark.parametrize(
    ("scope", "error"),
    [(Scope(Reach.SESSION, "s9"), NotFound), (Scope(Reach.AGENT, "z9"), NotFound), (Scope(Reach.AGENT, "../x"), UsageProblem)],
)
def test_nobody_is_meant(scope: Scope, error: type[Exception]) -> None:
    with pytest.raises(error):
        meant(tree().state, scope)


def test_looser_is_refused_in_words_and_the_same_changes_nothing() -> None:
    book = tree()
    found = meant(book.state, Scope(Reach.SESSION, "s1"))
    with pytest.raises(Denied, match="Session s1 is in PROXIED: FULL is not stricter, and a mode is never loosened"):
        refuse_looser(book.state, found, FULL)
    with pytest.raises(Conflict, match="in PROXIED already"):
        refuse_looser(book.state, found, PROXIED)
    refuse_looser(book.state, found, NONE)
    with pytest.raises(Denied):
        refuse_looser(book.state, meant(book.state, Scope(Reach.SESSION, "s3")), FULL)


def test_what_was_not_enforced_may_be_tried_again() -> None:
    book = tree()
    book >> e.NetworkSwitched(book.at, book.boot, AgentId("b1"), PROXIED, False, "the engine hangs")
    refuse_looser(book.state, meant(book.state, Scope(Reach.SESSION, "s1")), PROXIED)
    assert [x.agent_id for x in tighten(book, Scope(Reach.SESSION, "s1"), PROXIED).all(c.SwitchNetwork)] == ["b1"]


def test_an_operators_word_switches_everybody_and_says_why_and_since_when() -> None:
    book = tree().later(5)
    switches = tighten(book, Scope(Reach.AGENT, "a1"), NONE).all(c.SwitchNetwork)
    assert {(x.agent_id, x.mode) for x in switches} == {("a1", NONE), ("a2", NONE), ("b1", NONE)}
    assert (book.agent("b1").network_why, book.agent("b1").network_since) == ("operator:0: odd", book.at)
    assert book.agent("c1").network_mode is FULL and book.agent("c1").network_why == "default"
    book.none(c.Record)  # it is on record before the engine hears of it


def test_a_child_that_came_in_between_does_not_escape() -> None:
    book = tree()
    found = meant(book.state, Scope(Reach.AGENT, "a1"))
    book.run("a3", parent_id=AgentId("a1"), context_id=ContextId("s4"))
    book >> e.Tightened(book.at, book.boot, AgentId("a1"), found.contexts, Sensitivity.PUBLIC, NONE, "w")
    assert book.agent("a3").network_mode is NONE and book.state.context("s4")[1] is NONE


def test_an_operators_data_raises_the_level_with_the_mode() -> None:
    book = tree()
    tighten(book, Scope(Reach.SESSION, "s1"), NONE, Sensitivity.SECRET)
    assert {book.agent(i).sensitivity for i in ("a1", "a2", "b1")} == {Sensitivity.SECRET}
    assert book.state.context("s1") == (Sensitivity.SECRET, NONE)


@given(st.lists(st.tuples(st.sampled_from(list(NetworkMode)), st.sampled_from(list(Sensitivity))), max_size=8))
def test_no_order_of_words_ever_loosens(steps: list[tuple[NetworkMode, Sensitivity]]) -> None:
    book, before = tree(), FULL
    for mode, level in steps:
        tighten(book, Scope(Reach.SESSION, "s1"), mode, level)
        now = book.agent("a1").network_mode
        assert now.severity >= max(before.severity, mode.severity)
        before = now


def test_what_a_switch_came_to_is_kept_with_its_time() -> None:
    book = tree()
    book >> e.NetworkSwitched(book.at, book.boot, AgentId("a1"), NONE, True, "", 3.25)
    kept = book << c.KeepNetworkChange
    assert (kept.context_id, kept.what, kept.mode, kept.enforced, kept.ms) == ("s1", "enforced", NONE, True, 3.25)
    book >> e.NetworkSwitched(book.at, book.boot, AgentId("gone"), NONE, True, "", 1.0)
    assert book.out == []


def test_isolation_and_its_end_are_kept_of_each_agent() -> None:
    book = tree()
    book >> e.Isolated(book.at, book.boot, (AgentId("a1"), AgentId("b1")), (), "ann", "odd")
    assert [(k.agent_id, k.what, k.by, k.words, k.mode) for k in book.all(c.KeepNetworkChange)] == [
        ("a1", "isolated", "ann", "odd", NONE),
        ("b1", "isolated", "ann", "odd", NONE),
    ]
    book >> e.EgressChanged(book.at, book.boot, AgentId("a1"), True, "")
    assert (book << c.KeepNetworkChange).enforced is True
    book >> e.Reconnected(book.at, book.boot, (AgentId("a1"),), (), "ann", "calm")
    back = book << c.KeepNetworkChange
    assert (back.what, back.mode) == ("reconnected", PROXIED)


_WHYS: list[tuple[Callable[[Playbook], Playbook], str]] = [
    (lambda b: b.run("x", sensitivity=Sensitivity.SECRET), "its session holds SECRET data"),
    (lambda b: b.run("x", network_mode=NONE), "asked for at its launch"),
    (lambda b: b.run("x", parent_id=AgentId("a1"), context_id=ContextId("new")), "its parent a1 is in PROXIED"),
    (lambda b: b.run("x", context_id=ContextId("s1")), "its session is in PROXIED"),
    (lambda b: b.run("x"), "default"),
]


@pytest.mark.parametrize(("launch", "why"), _WHYS)
def test_every_launch_says_why_its_mode_is_what_it_is(launch: Callable[[Playbook], Playbook], why: str) -> None:
    assert launch(tree()).agent("x").network_why == why


def test_a_restart_that_tightens_says_so() -> None:
    book = tree()
    agent = replace(book.agent("c1"), network_mode=FULL)
    fresh = Playbook()
    contexts = {"s3": (Sensitivity.SECRET, NONE)}
    fresh >> e.Restored(9.0, 9.0, (agent,), frozenset({agent.agent_id}), contexts, False, "")
    assert (fresh.agent("c1").network_why, fresh.agent("c1").network_since) == ("as its session asks, after a restart", 9.0)


def test_a_proof_of_less_is_no_proof_of_what_was_asked_for_meanwhile() -> None:
    book = Playbook().run("a1", context_id=ContextId("c1"))
    book >> e.PrivateDataRegistered(book.at, book.boot, AgentId("a1"), "d", "s", Sensitivity.CONFIDENTIAL, PROXIED)
    book >> e.PrivateDataRegistered(book.at, book.boot, AgentId("a1"), "d", "s", Sensitivity.SECRET, NONE)
    book >> e.NetworkSwitched(book.at, book.boot, AgentId("a1"), PROXIED, True, "", 1.0)
    assert (book.agent("a1").network_mode, book.agent("a1").network_enforced) == (NONE, False)
    assert "not enforced" in (book << c.Record).what and (book << c.KeepNetworkChange).enforced is False
    book >> e.NetworkSwitched(book.at, book.boot, AgentId("a1"), NONE, True, "", 1.0)
    assert book.agent("a1").network_enforced


def test_until_a_switch_is_verified_nothing_says_that_it_holds() -> None:
    book = tree()
    assert book.agent("a1").network_enforced
    tighten(book, Scope(Reach.SESSION, "s1"), NONE)
    assert not any(book.agent(i).network_enforced for i in ("a1", "a2", "b1")) and "not known yet" in book.agent("a1").network_note
    assert book.agent("c1").network_enforced
    book >> e.NetworkSwitched(book.at, book.boot, AgentId("a1"), NONE, True, "", 1.0)
    assert (book.agent("a1").network_enforced, book.agent("a1").network_note) == (True, "")
    again = tree()
    again >> e.PrivateDataRegistered(again.at, again.boot, AgentId("a1"), "d", "s", Sensitivity.CONFIDENTIAL, PROXIED)
    assert not again.agent("a1").network_enforced  # what it may reach is not narrowed yet


def test_more_sensitive_data_narrows_who_is_proxied_already_and_nobody_else() -> None:
    book = tree()
    tighten(book, Scope(Reach.SESSION, "s1"), PROXIED)
    book >> e.PrivateDataRegistered(book.at, book.boot, AgentId("a1"), "d", "s", Sensitivity.CONFIDENTIAL, PROXIED)
    switched = {(x.agent_id, x.mode) for x in book.out if isinstance(x, c.SwitchNetwork)}
    assert switched == {("a1", PROXIED), ("a2", PROXIED), ("b1", PROXIED)}
    book >> e.PrivateDataRegistered(book.at, book.boot, AgentId("a1"), "d", "s", Sensitivity.CONFIDENTIAL, PROXIED)
    book.none(c.SwitchNetwork)
    tighten(book, Scope(Reach.SESSION, "s1"), NONE)
    book >> e.PrivateDataRegistered(book.at, book.boot, AgentId("a1"), "d", "s", Sensitivity.SECRET, NONE)
    book.none(c.SwitchNetwork)  # without network there is nothing to narrow
