"""Observed agents: shown, never confused with our own, gone only when a working source says so."""

from __future__ import annotations

from dataclasses import replace

from console.domain import command as c
from console.domain import event as e
from console.domain.agent import AgentId, AgentState, ControlLevel, ProcessIdentity, Sighting, SourceReport
from console.domain.budget import Usage
from console.enforcement.sightings import observed_id
from tests.fakes.playbook import Playbook


def sighting(key: str, pid: int = 7, parent: str | None = None, status: str = "busy") -> Sighting:
    return Sighting("claude_code", key, f"name {key}", ProcessIdentity(pid, 1), key, "/work", 1.0, parent_key=parent, status=status)


def see(book: Playbook, *sightings: Sighting, available: bool = True) -> Playbook:
    return book >> e.Sighted(book.at, book.boot, (SourceReport("claude_code", available, "", sightings),))


def test_a_session_appears_as_observed_and_ends_when_it_is_no_longer_seen() -> None:
    book = see(Playbook(), sighting("s1"))
    agent_id = observed_id(sighting("s1"))
    assert book.agent(agent_id).control_level is ControlLevel.OBSERVED
    assert not book.agent(agent_id).network_enforced
    see(book, sighting("s1")).none(c.ShowAgent)
    see(book)
    assert book.agent(agent_id).state is AgentState.ENDED


def test_a_source_that_cannot_look_ends_nobody() -> None:
    book = see(Playbook(), sighting("s1"))
    see(book, available=False)
    assert book.agent(observed_id(sighting("s1"))).state is AgentState.RUNNING


def test_our_own_process_is_not_shown_twice() -> None:
    book = Playbook().run("a")
    process = book.agent("a").process
    assert process is not None
    see(book, Sighting("codex", "k", "n", process, "s", "/", 1.0))
    assert set(book.state.agents) == {AgentId("a")}


def test_sub_agents_hang_under_their_session_and_waiting_shows() -> None:
    book = see(Playbook(), sighting("s1"), sighting("s2", 8, parent="s1", status="waiting"))
    child = book.agent(observed_id(sighting("s2")))
    assert child.parent_id == observed_id(sighting("s1"))
    assert child.depth == 2
    assert child.state is AgentState.WAITING


def test_hostile_keys_make_plain_ids() -> None:
    assert observed_id(sighting("../../x\n\ud800")).isascii()


def test_observed_agents_are_never_halted() -> None:
    book = see(Playbook(), sighting("s1"))
    book.tick(10_000).none(c.HaltAgents)


def test_what_a_session_used_is_shown_charged_to_its_tree_and_only_grows() -> None:
    def used(cost: float, tokens: int = 0) -> Usage:
        return Usage(iterations=1, tokens=tokens, cost_usd=cost)

    root, child = sighting("s1"), replace(sighting("s1-a", parent="s1"), process=None, usage=used(0.5, 10))
    book = see(Playbook(), replace(root, usage=used(1.0, 100), action="claude-x"), child)
    root_id = observed_id(root)
    assert book.agent(root_id).usage.cost_usd == 1.0 and book.state.tree_usage[root_id].cost_usd == 1.5
    assert book.agent(observed_id(child)).parent_id == root_id
    see(book, replace(root, usage=used(1.25, 120), action="claude-y"), child)
    assert book.agent(root_id).usage.tokens == 120 and book.agent(root_id).last_action == "claude-y"
    assert book.state.tree_usage[root_id].cost_usd == 1.75
    see(book, replace(root, usage=used(0.1, 1)), child)  # a transcript that was cut takes nothing back
    assert book.agent(root_id).usage.cost_usd == 1.25
    see(book, root, child).none(c.ShowAgent)  # and one that cannot be read changes nothing


def test_a_session_that_comes_back_is_not_charged_twice() -> None:
    one = replace(sighting("s1"), usage=Usage(cost_usd=2.0))
    book = see(see(see(Playbook(), one)), one)
    assert book.agent(observed_id(one)).usage.cost_usd == 2.0 and book.state.tree_usage[observed_id(one)].cost_usd == 2.0


def test_files_that_name_each_other_as_parents_make_no_circle() -> None:
    one, other = sighting("one", 8, parent="other"), sighting("other", 9, parent="one")
    book = see(Playbook(), other, one)
    assert book.agent(observed_id(one)).parent_id == observed_id(other)
    see(book, one)  # the parent ends, and comes back below its own child
    see(book, one, other)
    assert {i: len(book.state.subtree(i)) for i in book.state.agents} == {observed_id(other): 2, observed_id(one): 1}
    see(see(book), replace(one, parent_key="one"))  # or below itself
    assert book.state.subtree(observed_id(one)) == [observed_id(one)]


def test_one_that_comes_back_elsewhere_hangs_below_nobody_else_any_more() -> None:
    tops = sighting("s1"), sighting("s2", 8)
    book = see(Playbook(), *tops, sighting("part", 9, parent="s1"))
    see(see(book, *tops), *tops, sighting("part", 9, parent="s2"))
    assert [len(book.state.subtree(observed_id(top))) for top in tops] == [1, 2]
