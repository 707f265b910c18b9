"""Which dead containers may go: ours by label and id, of an agent that is over, and nothing about it open."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.domain.agent import Agent, AgentId, AgentState, ContextId, SandboxKind
from console.domain.ids import ControlLevel
from console.enforcement.state import EngineState
from console.sandbox.containers.left_containers import Left
from console.services.stop.orphan_containers import is_over

BOX = "ab" * 32
AGENT = Agent(
    AgentId("a-1"), "x", None, AgentId("a-1"), 1, ContextId("c"), ControlLevel.CONTAINED, SandboxKind.DOCKER, 1.0,
    state=AgentState.KILLED, container_id=BOX,
)  # fmt: skip


def state(agent: Agent = AGENT) -> EngineState:
    made = EngineState()
    made.put(agent)
    return made


@pytest.mark.parametrize("end", [AgentState.KILLED, AgentState.HALTED, AgentState.ENDED, AgentState.FAILED, AgentState.LOST])
def test_of_an_agent_that_is_over_it_goes(end: AgentState) -> None:
    assert is_over(state(replace(AGENT, state=end)), frozenset(), Left(BOX, "a-1"))


@pytest.mark.parametrize("live", [s for s in AgentState if s.is_live])
def test_of_an_agent_that_may_live_it_stays(live: AgentState) -> None:
    """Not proven dead is alive."""
    assert not is_over(state(replace(AGENT, state=live)), frozenset(), Left(BOX, "a-1"))


@pytest.mark.parametrize("left", [Left("cd" * 32, "a-1"), Left(BOX, "a-2"), Left(BOX, ""), Left(BOX, "../x"), Left("", "a-1")])
def test_a_container_that_only_says_it_is_ours_stays(left: Left) -> None:
    assert not is_over(state(), frozenset(), left)
    assert not is_over(state(replace(AGENT, container_id="")), frozenset(), Left("", "a-1"))


def test_it_stays_while_anything_about_its_kill_is_open() -> None:
    assert not is_over(state(), frozenset({"a-1"}), Left(BOX, "a-1"))
