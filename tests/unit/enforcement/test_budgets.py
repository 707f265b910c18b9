"""Caps: hit in the middle of a run, charged to the tree, acted on once."""

from __future__ import annotations

from typing import Any

import pytest

from console.domain.agent import AgentId, AgentState, ProcessIdentity
from console.domain.budget import Limits
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.ids import ControlLevel
from tests.fakes.playbook import Playbook


@pytest.mark.parametrize(
    ("limits", "spend"),
    [
        (Limits(cost_usd=1.0), {"cost_usd": 1.0}),
        (Limits(tokens=100), {"tokens": 100}),
        (Limits(iterations=3), {"iterations": 3}),
        (Limits(tool_calls=2), {"tool_calls": 5}),
        (Limits(tokens=0), {"tokens": 0}),
    ],
)
def test_each_cap_halts_with_its_reason(limits: Limits, spend: dict[str, Any]) -> None:
    book = Playbook().run("a", limits=limits)
    book.spend("a", **spend)
    halt = book << c.HaltAgents
    assert halt.agent_ids == ("a",)
    assert "agent limit" in halt.reason
    assert book.agent("a").state is AgentState.OVER_BUDGET
    assert [r for r in book.all(c.Record) if r.kind == "budget.halt" and r.must]


def test_below_the_cap_nothing_happens() -> None:
    book = Playbook().run("a", limits=Limits(cost_usd=1.0))
    book.spend("a", cost_usd=0.999)
    book.none(c.HaltAgents)
    assert book.agent("a").state is AgentState.RUNNING


def test_wall_time_counts_by_boot_time_alone() -> None:
    book = Playbook().run("a", limits=Limits(wall_s=10.0))
    book.at -= 3600  # the wall clock is put back by an hour
    book.tick(9.0).none(c.HaltAgents)
    book.tick(1.5) << c.HaltAgents


def test_a_childs_spend_is_charged_to_the_tree_and_halts_all_of_it() -> None:
    book = Playbook().run("r", tree_limits=Limits(cost_usd=1.0)).run("c", parent_id=AgentId("r")).run("g", parent_id=AgentId("c"))
    book.spend("r", cost_usd=0.4)
    book.spend("g", cost_usd=0.6)
    assert set((book << c.HaltAgents).agent_ids) == {"r", "c", "g"}
    assert "tree limit" in (book.agent("r").state_reason)


def test_a_breach_is_acted_on_once() -> None:
    book = Playbook().run("a", limits=Limits(tokens=1))
    book.spend("a", tokens=5) << c.HaltAgents
    book.spend("a", tokens=5).none(c.HaltAgents)
    book.tick().none(c.HaltAgents)


def test_an_ended_agents_late_report_changes_nothing() -> None:
    book = Playbook().run("a")
    book >> e.AgentExited(book.at, book.boot, AgentId("a"), 0)
    book.spend("a", cost_usd=5.0)
    assert book.out == []
    assert book.agent("a").usage.cost_usd == 0


def test_one_that_is_still_starting_is_halted_as_soon_as_it_can_be_proven() -> None:
    book = Playbook()
    book.launch("a", limits=Limits(wall_s=1.0))
    book.tick(5.0).none(c.HaltAgents)
    process = ProcessIdentity(7, 7)
    book >> e.LaunchConfirmed(book.at, book.boot, AgentId("a"), process, "", ControlLevel.MANAGED, True, "")
    book.tick() << c.HaltAgents


def test_a_halted_parent_takes_its_children_along() -> None:
    book = Playbook().run("r").run("p", parent_id=AgentId("r"), limits=Limits(tokens=5)).run("c", parent_id=AgentId("p"))
    book.spend("p", tokens=5)
    assert set((book << c.HaltAgents).agent_ids) == {"p", "c"}


def test_processor_time_is_what_the_kernel_counts_and_halts_the_agent_or_its_tree() -> None:
    book = Playbook().run("a-1", limits=Limits(cpu_s=2.0)).run("a-2", tree_limits=Limits(cpu_s=3.0))
    book >> e.ProcessorUsed(book.at, book.boot, AgentId("a-1"), 1.5)
    book.none(c.HaltAgents)
    book >> e.ProcessorUsed(book.at, book.boot, AgentId("a-1"), 1.0)  # never less than it was
    assert book.agent("a-1").usage.cpu_s == 1.5
    book >> e.ProcessorUsed(book.at, book.boot, AgentId("a-1"), 2.5)
    assert (book << c.HaltAgents).reason == "agent limit cpu_s: 2.5 of 2"
    book >> e.ProcessorUsed(book.at, book.boot, AgentId("a-2"), 1.0)
    book >> e.ProcessorUsed(book.at, book.boot, AgentId("a-2"), 3.5)
    assert (book << c.HaltAgents).reason == "tree limit cpu_s: 3.5 of 3"
