"""Depth, children and what a child inherits."""

from __future__ import annotations

import pytest

from console.domain.agent import AgentId, ContextId, LaunchRequest, SandboxKind
from console.domain.budget import Limits
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.errors import Denied, Killed, NotFound
from tests.fakes.playbook import Playbook


def chain(book: Playbook, depth: int) -> Playbook:
    book.run("d1")
    for level in range(2, depth + 1):
        book.run(f"d{level}", parent_id=AgentId(f"d{level - 1}"))
    return book


def test_depth_is_fixed_at_birth_and_the_fourth_level_is_refused() -> None:
    book = chain(Playbook(), 3)
    assert book.agent("d3").depth == 3
    refused = book.launch("d4", parent_id=AgentId("d3")) << c.RefuseLaunch
    assert isinstance(refused.error, Denied)
    assert "Depth 4" in refused.error.what


def test_depth_does_not_reset_when_the_parent_is_gone() -> None:
    book = chain(Playbook(), 3)
    book >> e.AgentExited(book.at, book.boot, AgentId("d2"), 0)
    book.launch("d4", parent_id=AgentId("d3")) << c.RefuseLaunch


def test_fifty_spawns_at_limit_minus_one_give_exactly_one() -> None:
    book = Playbook(max_children=6).run("p")
    for number in range(5):
        book.run(f"c{number}", parent_id=AgentId("p"))
    started = 0
    for number in range(50):
        book.launch(f"x{number}", parent_id=AgentId("p"))
        started += len(book.all(c.StartAgent))
    assert started == 1


def test_an_ended_child_frees_its_place_and_a_broken_launch_too() -> None:
    book = Playbook(max_children=1).run("p").run("c1", parent_id=AgentId("p"))
    book.launch("c2", parent_id=AgentId("p")) << c.RefuseLaunch
    book >> e.AgentExited(book.at, book.boot, AgentId("c1"), 0)
    book.launch("c3", parent_id=AgentId("p")) << c.StartAgent
    book >> e.LaunchBroke(book.at, book.boot, AgentId("c3"), "no cgroup")
    book.launch("c4", parent_id=AgentId("p")) << c.StartAgent


def test_an_unknown_parent_is_not_found() -> None:
    assert isinstance((Playbook().launch("a", parent_id=AgentId("nobody")) << c.RefuseLaunch).error, NotFound)


def test_a_frozen_or_ended_parent_spawns_nothing() -> None:
    book = Playbook().run("p")
    book >> e.FrozenSetChanged(book.at, book.boot, {AgentId("p"): ("operator",)})
    book.launch("c", parent_id=AgentId("p")) << c.RefuseLaunch
    book >> e.FrozenSetChanged(book.at, book.boot, {})
    book >> e.AgentExited(book.at, book.boot, AgentId("p"), 0)
    book.launch("c", parent_id=AgentId("p")) << c.RefuseLaunch


def test_a_contained_parents_child_is_contained() -> None:
    book = Playbook().run("p", sandbox=SandboxKind.DOCKER).run("c", parent_id=AgentId("p"))
    assert book.agent("c").sandbox is SandboxKind.DOCKER


def test_a_tree_without_budget_left_spawns_nothing() -> None:
    book = Playbook().run("p", tree_limits=Limits(cost_usd=1.0)).run("c", parent_id=AgentId("p"))
    book.spend("c", cost_usd=2.0)
    book >> e.LaunchBroke(book.at, book.boot, AgentId("none"), "")
    book.state.halting.clear()
    refused = book.launch("c2", parent_id=AgentId("p")) << c.RefuseLaunch
    assert isinstance(refused.error, Denied)


def test_a_childs_tree_limits_hold_beside_those_above_and_never_instead_of_them() -> None:
    book = Playbook().run("p", limits=Limits(cost_usd=2.0)).run("c", parent_id=AgentId("p"), tree_limits=Limits(cost_usd=99.0))
    assert book.agent("c").tree_limits == Limits(cost_usd=99.0)
    book.spend("c", cost_usd=2.0)
    assert set((book << c.HaltAgents).agent_ids) == {"p", "c"}


def test_refusals_are_recorded_with_who_asked() -> None:
    book = Playbook(max_children=0).run("p")
    book.launch("c", parent_id=AgentId("p"), by="agent:p")
    record = book << c.Record
    assert (record.actor, record.kind, record.verdict) == ("agent:p", "launch.refused", "deny")


@pytest.mark.parametrize("most", [0, 1])
def test_the_instance_has_a_bound(most: int) -> None:
    book = Playbook(max_agents=most)
    for number in range(most):
        book.run(f"a{number}")
    book.launch("over") << c.RefuseLaunch


def test_nothing_starts_below_an_agent_that_is_being_stopped() -> None:
    book = Playbook().run("p").run("c", parent_id=AgentId("p"))
    book >> e.StopAsked(book.at, book.boot, (AgentId("p"),))
    assert isinstance((book.launch("g", parent_id=AgentId("c")) << c.RefuseLaunch).error, Killed)
    book.launch("other") << c.StartAgent


def test_an_agent_cannot_enter_another_session_but_an_operator_may() -> None:
    book = Playbook().run("a", context_id=ContextId("lunch")).run("b", context_id=ContextId("payroll"))
    asked = LaunchRequest(argv=("/bin/x",), parent_id=AgentId("a"), context_id=ContextId("payroll"))
    assert isinstance((book.launch("x", asked, by="agent:a") << c.RefuseLaunch).error, Denied)
    book.launch("y", by="agent:a", parent_id=AgentId("a"), context_id=ContextId("fresh")) << c.StartAgent
    book.launch("z", asked, by="operator:0") << c.StartAgent


def test_what_caps_a_root_caps_all_it_spawns() -> None:
    book = Playbook().run("r", limits=Limits(cost_usd=1.0)).run("c", parent_id=AgentId("r"))
    book.spend("c", cost_usd=1.5)
    assert set((book << c.HaltAgents).agent_ids) == {"r", "c"}


def test_scopes_are_granted_at_birth_and_a_child_gets_a_subset() -> None:
    book = Playbook().run("root", scopes=("WRITE_FS", "READ_FS"))
    assert book.agent("root").scopes == ("READ_FS", "WRITE_FS")
    book.run("child", parent_id=AgentId("root"), by="agent:root")
    assert book.agent("child").scopes == ("READ_FS", "WRITE_FS")
    book.run("less", parent_id=AgentId("root"), scopes=("READ_FS",))
    assert book.agent("less").scopes == ("READ_FS",)
    book.launch("more", parent_id=AgentId("less"), scopes=("READ_FS", "CALL_API"), by="agent:less")
    assert "its parent has not" in str((book << c.RefuseLaunch).error)
    book.launch("odd", scopes=("ROOT",))
    assert "is not known" in str((book << c.RefuseLaunch).error)


def test_without_a_wish_a_root_gets_what_the_options_say() -> None:
    book = Playbook()
    book.state.scopes = ("READ_FS",)
    assert book.run("a").agent("a").scopes == ("READ_FS",)
    assert book.run("b", scopes=()).agent("b").scopes == ()
