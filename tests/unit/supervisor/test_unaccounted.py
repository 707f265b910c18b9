"""Whom the supervisor follows and the guard does not know keeps a press of everything from being proven; nobody else does."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from console.domain.agent import Agent, AgentId, AgentState, ContextId, ControlLevel, ProcessIdentity, SandboxKind
from console.domain.errors import ConsoleError, NotFound, TimedOut
from console.domain.kill import Outcome, Receipt, Step, StepName, StepStatus, Target
from console.enforcement.state import EngineState
from console.supervisor.rearm import _lacks_only_the_registry
from console.supervisor.unaccounted import UNREACHED, beside, counted, kept, look_for, missed, targets_beyond

ZERO = Step(StepName.ZERO, StepStatus.OK, 3.0, "1 agents proven zero")


def agent(name: str, **more: Any) -> Agent:
    made = Agent(
        AgentId(name), name, None, AgentId(name), 1, ContextId(f"s-{name}"), ControlLevel.MANAGED, SandboxKind.NONE, started_at=1.0
    )
    return replace(made, process=ProcessIdentity(7, 1), state=AgentState.RUNNING, **more)


def receipt(*names: str, scope: str = "all") -> Receipt:
    targets = tuple(Target(n, "managed", Outcome.PROVEN_ZERO, 2.0) for n in names)
    return Receipt("k1", "i", scope, "r", "b", 1.0, verified_zero=True, steps=(ZERO,), targets=targets, complete=True)


class World:
    """A supervisor that follows these, and a guard that takes notes."""

    def __init__(self, *agents: Agent, error: ConsoleError | None = None) -> None:
        self.state, self.told, self.notices, self.error = EngineState(), list[Any](), list[str](), error
        for one in agents:
            self.state.put(one)
        self.core: Any = SimpleNamespace(state=self.state, dirty=set())
        self.guard, self.parts = self, self

    def call(self, op: str, scope: list[str]) -> None:
        self.told.append((op, scope))
        if self.error is not None:
            raise self.error

    def notice(self, words: str, level: str) -> None:
        self.notices.append(f"{level}: {words}")


def test_one_of_whom_the_receipt_does_not_speak_is_not_proven() -> None:
    [target] = targets_beyond(World(agent("a"), agent("b")).state, receipt("a"))
    assert (target.agent_id, target.outcome) == ("b", Outcome.NOT_PROVEN)
    found = beside(receipt("a"), (target,))
    assert not found.verified_zero and found.steps[0].status is StepStatus.UNKNOWN and "1 agents" in found.steps[0].detail
    assert kept(found) == (target,) and kept(receipt("a")) == kept(None) == ()
    assert beside(found, kept(found)) == found, "said once"
    assert _lacks_only_the_registry(found), "the guard's look at everything is the way back"
    assert not _lacks_only_the_registry(replace(found, targets=(*found.targets, replace(target, agent_id="c", evidence={}))))


@pytest.mark.parametrize(
    "nobody",
    [
        replace(agent("b"), state=AgentState.ENDED),
        replace(agent("b"), control_level=ControlLevel.OBSERVED),
        replace(agent("b"), process=None, state=AgentState.STARTING),
    ],
)
def test_who_ended_was_only_seen_or_never_had_a_ticket_need_not_be_known(nobody: Agent) -> None:
    assert targets_beyond(World(nobody).state, receipt("a")) == ()
    assert beside(receipt("a"), ()) == receipt("a")


def test_a_press_of_named_agents_speaks_of_these_alone() -> None:
    assert targets_beyond(World(agent("b")).state, receipt("a", scope="a")) == ()


@pytest.mark.parametrize("error", [None, TimedOut("silent", "")])
async def test_the_guard_is_told_and_its_silence_changes_nothing(error: ConsoleError | None) -> None:
    world: Any = World(agent("a"), agent("b"), error=error)
    found = await counted(world, receipt("a"))
    assert world.told == [("missed", ["b"])] and not found.verified_zero
    world.told.clear()
    assert await counted(world, receipt("a", "b")) == receipt("a", "b") and world.told == []


async def test_whom_a_look_misses_is_shown_as_out_of_reach() -> None:
    world: Any = World(agent("b"), replace(agent("c"), state=AgentState.ALIVE_AFTER_KILL))
    for name in ("b", "c", "nobody"):
        await missed(world, AgentId(name))
    assert world.told == [("missed", ["b"])] and world.state.best_effort == {"b": UNREACHED} and world.core.dirty == {"b"}
    assert [n[:7] for n in world.notices] == ["red: b:"]


async def test_who_was_gone_at_the_start_and_whom_the_guard_does_not_know_either_may_live() -> None:
    said: dict[str, Any] = {"known": {"alive": False}, "lost": NotFound("Not registered.", ""), "silent": TimedOut("silent", "")}
    told: list[Any] = []

    def call(op: str, agent_id: str = "", scope: list[str] | None = None) -> Any:
        if op == "missed":
            told.append(scope)
            return {}
        answer = said[agent_id]
        if isinstance(answer, Exception):
            raise answer
        return answer

    notices: list[str] = []
    parts: Any = SimpleNamespace(guard=SimpleNamespace(call=call), notice=lambda words, level: notices.append(words))
    await look_for(parts, [AgentId("known"), AgentId("silent")])
    assert told == notices == []
    await look_for(parts, [AgentId(name) for name in said])
    assert told == [["lost"]] and "1 agents" in notices[0] and "lost" in notices[0]
