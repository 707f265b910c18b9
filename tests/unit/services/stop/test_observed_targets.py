"""Whom a press signals besides: nobody but observed agents, of the default instance, by the operator's setting."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.domain.agent import Agent, AgentId, AgentState, ContextId, ProcessIdentity, SandboxKind
from console.domain.errors import TimedOut
from console.domain.guard import encode
from console.domain.ids import ControlLevel
from console.domain.ladder import Reach, Rung, Scope
from console.enforcement.ladder import Treatment, plan
from console.enforcement.state import EngineState, Seen
from console.killswitch.kill.observed import NAMED
from console.sandbox.processes import start_ticks
from console.services.stop import observed_targets
from console.services.stop.observed_targets import left_alone, name, proof_of, reachable, why_left
from console.settings.options import Options, merged

ON = merged(Options(), {"panic.include_observed": True})
SEEN = Agent(
    AgentId("o-1"), "x", None, AgentId("o-1"), 1, ContextId("o-o-1"), ControlLevel.OBSERVED, SandboxKind.NONE, 1.0,
    state=AgentState.RUNNING, process=ProcessIdentity(os.getpid(), start_ticks(os.getpid())),
)  # fmt: skip


def test_in_the_default_instance_a_kill_reaches_an_observed_agent() -> None:
    assert reachable(Options(), is_default=True, agents=[SEEN]) == [SEEN]


def test_with_a_state_directory_of_its_own_a_kill_reaches_none() -> None:
    """The demo, tests, and every instance that was given a folder."""
    assert reachable(ON, is_default=False, agents=[SEEN]) == []


def test_where_discovery_is_confined_a_kill_reaches_none() -> None:
    assert reachable(merged(ON, {"discover_root": "/somewhere"}), is_default=True, agents=[SEEN]) == []


@pytest.mark.parametrize(
    "agent",
    [
        replace(SEEN, process=None),
        replace(SEEN, container_id="ab" * 32),
        replace(SEEN, state=AgentState.ENDED),
        *(replace(SEEN, control_level=level) for level in ControlLevel if level is not ControlLevel.OBSERVED),
    ],
)
def test_who_is_held_gone_in_a_container_or_not_proven_is_not_reached(agent: Agent) -> None:
    assert reachable(ON, is_default=True, agents=[agent]) == []


def test_the_proof_is_of_one_process_or_there_is_none(tmp_path: Path) -> None:
    here = ProcessIdentity(os.getpid(), start_ticks(os.getpid()))  # which may be a fork of what collected
    found = proof_of(replace(SEEN, process=here))
    assert found is not None and (found["pid"], found["exe"]) == (os.getpid(), os.path.realpath("/proc/self/exe"))
    assert proof_of(replace(SEEN, process=ProcessIdentity(os.getpid(), 1))) is None
    assert proof_of(replace(SEEN, process=None)) is None and proof_of(SEEN, tmp_path) is None


def test_a_panic_lists_them_as_best_effort_only_when_it_includes_them_and_a_kill_by_name_always() -> None:
    state = EngineState()
    state.put(SEEN)
    everything, named = Scope(Reach.ALL), (Scope(Reach.AGENT, "o-1"), Scope(Reach.TREE, "o-1"), Scope(Reach.SESSION, "o-o-1"))
    assert all(plan(state, Rung.KILL, scope).lines[0].treatment is Treatment.EXCLUDED for scope in (everything, *named))
    state.kill_observed = {SEEN.agent_id}
    lines = [plan(state, Rung.KILL, scope).lines[0] for scope in named]
    assert all(line.treatment is Treatment.BEST_EFFORT and "cannot be confirmed" in line.why for line in lines)
    for rung, scope in ((Rung.KILL, everything), (Rung.KILL, Scope(Reach.HOST)), (Rung.FREEZE, named[0])):
        assert plan(state, rung, scope).lines[0].treatment is Treatment.EXCLUDED
    state.press_observed = {SEEN.agent_id}
    assert plan(state, Rung.KILL, everything).lines[0].treatment is Treatment.BEST_EFFORT
    state.seen[SEEN.agent_id] = Seen(inside=AgentId("a-1"))
    assert plan(state, Rung.KILL, named[0]).lines[0].why == "it runs inside a-1 and stops with it, never alone"


def test_whom_a_press_leaves_alone_is_told_with_why_and_who_ends_with_somebody_held_is_not() -> None:
    state = EngineState()
    for n, (changes, seen) in enumerate(
        [
            ({}, None),
            ({"process": None, "name": 'x\n"\x1b'}, None),
            ({"container_id": "ab" * 32}, None),
            ({"control_level": ControlLevel.MANAGED}, None),
            ({"state": AgentState.ENDED}, None),
            ({}, Seen(part="agent")),
            ({}, Seen(part="agent", inside=AgentId("o-3"))),
            ({}, None),
        ]
    ):
        agent = replace(SEEN, agent_id=AgentId(f"o-{n}"), root_id=AgentId(f"o-{n}"), **changes)  # type: ignore[arg-type]
        state.put(agent)
        if seen is not None:
            state.seen[agent.agent_id] = seen
    state.press_observed = {AgentId("o-7")}
    found = left_alone(state, Options(), is_default=True)
    assert [(a["id"], a["why"]) for a in found["agents"]] == [
        ("o-0", "panic.include_observed is off"),
        ("o-2", "it lives in a container that was not started here"),
        ("o-1", "its source cannot prove which process it is"),
    ]
    assert (found["n"], found["parts"], found["agents"][2]["name"]) == (3, 1, 'x?"?')
    assert "state directory of its own" in why_left(SEEN, ON, is_default=False)
    assert "confined" in why_left(SEEN, merged(ON, {"discover_root": "/x"}), is_default=True)
    assert "could not be proven" in why_left(SEEN, ON, is_default=True)


def test_any_names_fit_the_lines_that_the_guard_takes() -> None:
    state, lines = EngineState(), list[bytes]()
    for n in range(100):
        one = AgentId(f"o-{n:03}" + "a" * 58)
        state.put(replace(SEEN, agent_id=one, root_id=one, name="\\\U0001f600" * 500, process=ProcessIdentity(2**22, 2**60)))
    guard: Any = SimpleNamespace(call=lambda op, **message: lines.append(encode({"op": op} | message)))
    name(guard, left_alone(state, Options(), is_default=False))
    name(guard, left_alone(EngineState(), Options(), is_default=False))
    told = [json.loads(words) for words in lines]
    assert sum(len(t["agents"]) for t in told) == NAMED and {t["n"] for t in told[:-1]} == {100}
    assert [t["last"] for t in told[-2:]] == [True, True] and [t["more"] for t in told[:2]] == [False, True] and not told[-1]["more"]


class Over(Exception):
    """The guard has heard enough."""


def test_the_guard_is_told_when_it_changed_again_after_a_refusal_and_never_before_a_source_has_looked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state, heard, rounds = EngineState(), list[int](), list[int]()
    guard: Any = SimpleNamespace(call=lambda op, **m: hear(m["n"]))

    def hear(n: int) -> None:
        heard.append(n)
        if len(heard) == 2:
            raise TimedOut("The guard did not answer in time.", "")

    async def pause(_seconds: float) -> None:
        rounds.append(len(heard))
        match len(rounds):
            case 3:
                state.sighted = {"claude_code": set()}
            case 6:
                state.put(SEEN)
            case 12:
                monkeypatch.setattr(observed_targets, "AGAIN_S", -1.0)
            case 13:
                raise Over

    monkeypatch.setattr(asyncio, "sleep", pause)
    with pytest.raises(Over):
        asyncio.run(observed_targets.keep_naming(state, guard, Options(), is_default=True))
    assert heard == [0, 1, 1, 1] and rounds[:4] == [0, 0, 0, 1]
