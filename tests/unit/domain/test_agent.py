"""Agents as values."""

from __future__ import annotations

import pytest

from console.domain.agent import Agent, AgentId, AgentState, ContextId, LaunchRequest, SandboxKind
from console.domain.errors import UsageProblem
from console.domain.ids import AGENT_ID, ControlLevel


def test_only_states_in_which_something_may_run_are_live() -> None:
    dead = {AgentState.HALTED, AgentState.KILLED, AgentState.ENDED, AgentState.FAILED, AgentState.LOST}
    assert {s for s in AgentState if not s.is_live} == dead


@pytest.mark.parametrize("good", ["a", "a1", "agent-1", "0" * 63])
def test_ids_are_dns_labels(good: str) -> None:
    assert AGENT_ID.match(good)


@pytest.mark.parametrize("bad", ["", "-a", "A", "a_b", "a/b", "..", "a\n", "ä", "a" * 64, "a b", "a\0"])
def test_what_could_leave_a_folder_or_a_line_is_no_id(bad: str) -> None:
    assert not AGENT_ID.match(bad)


def test_a_plain_request_is_accepted() -> None:
    request = LaunchRequest(("python3", "a.py"), name="x" * 200, parent_id=AgentId("p1"), context_id=ContextId("c-1"))
    request.check()
    assert request.sandbox is SandboxKind.NONE


@pytest.mark.parametrize(
    ("request_", "word"),
    [
        (LaunchRequest(()), "command"),
        (LaunchRequest(("",)), "command"),
        (LaunchRequest(("a",) * 1001), "too long"),
        (LaunchRequest(("a" * 100_001,)), "too long"),
        (LaunchRequest(("a", "b\0c")), "NUL"),
        (LaunchRequest(("a",), name="n" * 201), "name"),
        (LaunchRequest(("a",), context_id=ContextId("../etc")), "Context"),
        (LaunchRequest(("a",), parent_id=AgentId("\x1b[31m")), "Parent"),
    ],
)
def test_a_hostile_request_is_refused_with_the_field(request_: LaunchRequest, word: str) -> None:
    with pytest.raises(UsageProblem, match=word) as caught:
        request_.check()
    assert caught.value.remedy
    assert "\x1b" not in caught.value.what


def test_an_agent_is_not_enforced_until_somebody_says_so() -> None:
    agent = Agent(AgentId("a"), "n", None, AgentId("a"), 1, ContextId("c"), ControlLevel.MANAGED, SandboxKind.NONE, started_at=0.0)
    assert agent.network_enforced is False
    assert agent.causes == ()
