"""Which profile judges whom, and what a person must know of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.domain.agent import Agent, AgentId, SandboxKind
from console.domain.calls.profile import ProfileTable, is_contained
from console.domain.ids import ControlLevel
from console.domain.network import NetworkMode
from tests.fakes.playbook import Playbook


@pytest.fixture
def agent() -> Agent:
    made = Playbook().run("a", context_id="c").agent("a")
    return replace(made, sandbox=SandboxKind.BUBBLEWRAP, network_mode=NetworkMode.NONE, network_enforced=True)


def test_observe_is_never_a_default_and_a_choice_goes_before_an_operators_own_rules(agent: Agent) -> None:
    table = ProfileTable()
    kinds = ("claude_code", "codex", "watchfloor", "docker", "processes", "otlp", "gemini")
    assert [table.of(replace(agent, source=kind)) for kind in kinds] == [
        "coding",
        "coding",
        "strict",
        "strict",
        "strict",
        "strict",
        "coding",
    ]
    table.own_rules = True
    assert {table.of(replace(agent, source=kind)) for kind in kinds} == {"own"}
    table.chosen = {"claude-code": "observe"}
    assert table.of(replace(agent, source="claude_code")) == "observe"
    table.types[AgentId("a")] = "mine"
    assert table.of(replace(agent, source="claude_code")) == "own", "the type that it was started with counts, not who else saw it"


def test_contained_is_a_sandbox_and_a_network_that_is_bounded_by_the_kernels_word(agent: Agent) -> None:
    assert is_contained(agent)
    assert not is_contained(replace(agent, sandbox=SandboxKind.NONE))
    assert not is_contained(replace(agent, network_mode=NetworkMode.FULL))
    assert not is_contained(replace(agent, network_enforced=False))
    assert not is_contained(replace(agent, control_level=ControlLevel.OBSERVED))


def test_the_row_says_what_nothing_contains_and_that_nothing_is_blocked(agent: Agent) -> None:
    table = ProfileTable(chosen={"codex": "observe"})
    assert table.note(replace(agent, source="codex")) == "no tool call is blocked"
    open_one = replace(agent, source="claude_code", sandbox=SandboxKind.NONE)
    assert (table.note(open_one), table.note(replace(open_one, source="docker"))) == ("rules only, not contained", "")
