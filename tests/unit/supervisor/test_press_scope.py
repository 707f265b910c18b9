"""Whom a press signals besides: nobody but observed agents, of the default instance, by the operator's setting."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from console.domain.agent import Agent, AgentId, AgentState, ContextId, ControlLevel, ProcessIdentity, SandboxKind
from console.domain.ladder import Reach, Rung, Scope
from console.enforcement.ladder import Treatment, plan
from console.enforcement.state import EngineState
from console.sandbox.processes import start_ticks
from console.settings.options import Options, merged
from console.supervisor.press_scope import meant, proof_of

ON = merged(Options(), {"panic.include_observed": True})
SEEN = Agent(
    AgentId("o-1"), "x", None, AgentId("o-1"), 1, ContextId("o-o-1"), ControlLevel.OBSERVED, SandboxKind.NONE, 1.0,
    state=AgentState.RUNNING, process=ProcessIdentity(os.getpid(), start_ticks(os.getpid())),
)  # fmt: skip


def test_it_is_off_unless_somebody_set_it() -> None:
    assert meant(Options(), is_default=True, agents=[SEEN]) == [] and meant(ON, is_default=True, agents=[SEEN]) == [SEEN]


def test_with_a_state_directory_of_its_own_nobody_is_meant() -> None:
    """The demo, tests, and every instance that was given a folder."""
    assert meant(ON, is_default=False, agents=[SEEN]) == []


def test_where_discovery_is_confined_nobody_is_meant() -> None:
    assert meant(merged(ON, {"discover_root": "/somewhere"}), is_default=True, agents=[SEEN]) == []


@pytest.mark.parametrize(
    "agent",
    [
        replace(SEEN, process=None),
        replace(SEEN, container_id="ab" * 32),
        replace(SEEN, state=AgentState.ENDED),
        *(replace(SEEN, control_level=level) for level in ControlLevel if level is not ControlLevel.OBSERVED),
    ],
)
def test_who_is_held_gone_in_a_container_or_not_proven_is_not_meant(agent: Agent) -> None:
    assert meant(ON, is_default=True, agents=[agent]) == []


def test_the_proof_is_of_one_process_or_there_is_none(tmp_path: Path) -> None:
    found = proof_of(SEEN)
    assert found is not None and (found["pid"], found["exe"]) == (os.getpid(), os.path.realpath("/proc/self/exe"))
    assert proof_of(replace(SEEN, process=ProcessIdentity(os.getpid(), 1))) is None
    assert proof_of(replace(SEEN, process=None)) is None and proof_of(SEEN, tmp_path) is None


def test_a_press_lists_them_before_as_best_effort_and_no_other_rung_or_scope_touches_them() -> None:
    state = EngineState()
    state.put(SEEN)
    everything = Scope(Reach.ALL)
    assert plan(state, Rung.KILL, everything).lines[0].treatment is Treatment.EXCLUDED
    state.press_observed = {SEEN.agent_id}
    [line] = plan(state, Rung.KILL, everything).lines
    assert line.treatment is Treatment.BEST_EFFORT and "include_observed" in line.why
    for rung, scope in ((Rung.FREEZE, everything), (Rung.KILL, Scope(Reach.HOST)), (Rung.KILL, Scope(Reach.AGENT, "o-1"))):
        assert plan(state, rung, scope).lines[0].treatment is Treatment.EXCLUDED
