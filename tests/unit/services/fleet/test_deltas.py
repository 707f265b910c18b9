"""A console is told the whole of an agent once, then only what changed; what it read itself is never taken back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from console.api.agents.fleet_changes import CHUNK, changes_of
from console.domain.agent import Agent, AgentId, AgentState, SandboxKind
from console.domain.budget import Usage
from console.domain.ids import ControlLevel
from console.enforcement.engine import Engine
from console.enforcement.state import EngineState
from console.services.fleet import deltas
from console.services.fleet.core import Core
from console.services.fleet.deltas import SHIFT, AgentDeltas
from tests.fakes.core_ports import NoServices
from tests.fakes.patched import patch

A = AgentId("a-1")


class Told:
    """Deltas over a real state, and what was published."""

    def __init__(self, *agents: Agent) -> None:
        self.core = Core(Engine(EngineState()), NoServices())
        for agent in agents:
            self.put(agent)
        self.published: list[dict[str, Any]] = []
        patch(self.core.hub, publish=lambda kind, data: self.published.append(data))
        self.deltas = AgentDeltas(self.core)

    def put(self, agent: Agent) -> None:
        state = self.core.state
        state.agents[agent.agent_id] = agent
        (state.live.add if agent.state.is_live else state.live.discard)(agent.agent_id)
        self.core.dirty.add(agent.agent_id)

    def tell(self) -> dict[str, Any]:
        self.deltas.tell(1000.0)
        return self.published[-1]


def agent(agent_id: AgentId = A, **more: Any) -> Agent:
    given = {
        "name": "x", "parent_id": None, "root_id": agent_id, "depth": 1, "context_id": "c", "sandbox": SandboxKind.NONE,
        "control_level": ControlLevel.MANAGED, "started_at": 1.0, "state": AgentState.RUNNING,
    }  # fmt: skip
    return Agent(agent_id=agent_id, **{**given, **more})


def test_first_the_whole_then_only_what_changed() -> None:
    told = Told(agent(usage=Usage(cost_usd=0.1, tokens=1)))
    first = changes_of(1, told.tell())
    assert [view.id for view in first.upsert] == [A] and not first.quiet and not first.loud
    told.put(replace(told.core.state.agents[A], usage=Usage(cost_usd=0.5, tokens=7)))
    second = told.tell()
    assert second["upsert"] == [] and len(second["patch"]) == 1
    [(name, fields)] = changes_of(2, second).quiet
    assert name == A and fields["cost_usd"] == 0.5 and set(fields) <= {"cost_usd", "usage"}
    told.core.dirty.add(A)
    assert told.tell()["patch"] == [], "nothing changed: nothing is said of it"


def test_who_reads_the_fleet_meanwhile_is_told_the_whole_again() -> None:
    told = Told(agent())
    told.tell()
    told.put(replace(told.core.state.agents[A], state=AgentState.FROZEN))
    told.deltas.forget()  # a console reads FROZEN here
    told.put(replace(told.core.state.agents[A], state=AgentState.RUNNING))
    [view] = changes_of(3, told.tell()).upsert
    assert view.state == "running", "it read FROZEN and would have kept it"


def test_an_agent_that_ended_is_told_to_its_end_and_not_kept() -> None:
    told = Told(agent())
    told.tell()
    told.put(replace(told.core.state.agents[A], state=AgentState.ENDED, exit_code=3))
    [(_, fields)] = changes_of(2, told.tell()).loud
    assert fields["state"] == "ended" and fields["exit_code"] == 3
    assert told.deltas._told == {}
    told.core.dirty.add(AgentId("gone"))
    assert told.tell()["upsert"] == []


def test_messages_stay_short() -> None:
    told = Told(*(agent(AgentId(f"a-{n}")) for n in range(2 * CHUNK + 1)))
    told.deltas.tell(1000.0)
    assert [len(data["upsert"]) for data in told.published] == [CHUNK, CHUNK, 1]
    assert all("spend_today_usd" in data for data in told.published)


def test_by_time_alone_everybody_ours_is_told_and_of_one_that_is_only_seen_what_it_burnt(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = AgentId("o-1")
    told = Told(agent(), agent(seen, control_level=ControlLevel.OBSERVED), agent(AgentId("o-2"), control_level=ControlLevel.OBSERVED))
    told.core.state.held.add(A)
    told.tell()
    monkeypatch.setattr(deltas, "WHOLE", 10**9)  # whose turn it is to be compared as a whole is left to chance

    def due(at: float, beats: range = range(SHIFT)) -> set[AgentId]:
        for beat in beats:
            told.deltas.pass_time(beat, at)
        found, told.core.dirty = told.core.dirty, set()
        return found

    assert due(1000.0) == {A}
    told.core.meters.add_seen(seen, 1000.0, 0.5)
    assert due(1000.0) == {A, seen}
    told.core.dirty.add(seen)
    told.tell()
    assert due(1000.0) == {A} and due(1013.0) == {A, seen}, "it burnt that in the slice before the present one now"
    monkeypatch.setattr(deltas, "WHOLE", 1)
    assert due(1000.0) == {A, seen, AgentId("o-2")}
