"""Whom the supervisor follows and the guard does not know keeps a press of everything from being proven; nobody else does."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from console.domain.agent import Agent, AgentId, AgentState, ContextId, ProcessIdentity, SandboxKind
from console.domain.engine.event import LOOKED_OVER, NOT_ANSWERED, NOT_IN_RECORD, STOPPED, WENT, Rearmed
from console.domain.errors import ConsoleError, NotFound, TimedOut, Unavailable, Unreachable
from console.domain.ids import ControlLevel
from console.domain.kill import Outcome, Receipt, Step, StepName, StepStatus, Target
from console.enforcement.engine import Engine
from console.enforcement.open_ends import gone
from console.enforcement.state import EngineState
from console.services.observe import unknown_agents
from console.services.observe.unknown_agents import UNREACHED, ask_of_the_gone, beside, counted, kept, missed, targets_beyond
from console.services.rearm.service import _lacks_only_the_registry

ZERO = Step(StepName.ZERO, StepStatus.OK, 3.0, "1 agent confirmed dead")


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
    found = await counted(world.core, world.guard, receipt("a"))
    assert world.told == [("missed", ["b"])] and not found.verified_zero
    world.told.clear()
    assert await counted(world.core, world.guard, receipt("a", "b")) == receipt("a", "b") and world.told == []


async def test_whom_a_look_misses_is_shown_as_out_of_reach() -> None:
    world: Any = World(agent("b"), replace(agent("c"), state=AgentState.ALIVE_AFTER_KILL))
    for name in ("b", "c", "nobody"):
        await missed(world.core, world.guard, world.notice, AgentId(name))
    assert world.told == [("missed", ["b"])] and world.state.best_effort == {"b": UNREACHED} and world.core.dirty == {"b"}
    assert [n[:7] for n in world.notices] == ["red: b:"]


class Gone:
    """A supervisor at whose start these were gone, and a guard whose answers are these, the last of them for ever."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **answers: list[dict[str, bool] | ConsoleError]) -> None:
        monkeypatch.setattr(unknown_agents, "ASK_AGAIN_S", 0.001)
        monkeypatch.setattr(unknown_agents, "LONGEST_REST_S", 0.002)
        self._says: dict[str, list[Any]] = dict(answers)
        self.engine, self.notices, self.told, self.deaf = Engine(), list[str](), list[Any](), 0
        self.asked: list[str] = []
        self.state = self.engine.state
        for name in answers:
            self.state.put(gone(agent(name), 1.0))
        self.core: Any = SimpleNamespace(state=self.state, dirty=set(), post=self.engine.step)
        self.guard, self.parts = self, self

    def call(self, op: str, agent_id: str = "", scope: list[str] | None = None) -> Any:
        if op == "missed":
            self.deaf -= 1
            if self.deaf >= 0:
                raise TimedOut("silent", "")
            self.told.append(scope)
            return {}
        self.asked.append(agent_id)
        said = self._says[agent_id]
        answer = said.pop(0) if len(said) > 1 else said[0]
        if isinstance(answer, ConsoleError):
            raise answer
        return answer

    def notice(self, words: str, level: str) -> None:
        self.notices.append(words)

    def why(self, name: str) -> str:
        return self.state.agents[AgentId(name)].state_reason


OVER, RUNS, SILENT, LOST = {"alive": False}, {"alive": True}, TimedOut("silent", ""), NotFound("Not registered.", "")


async def test_who_was_gone_at_the_start_has_ended_when_the_guard_says_so_and_no_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    world: Any = Gone(monkeypatch, a=[OVER], b=[SILENT, SILENT, Unreachable("no", ""), OVER], c=[SILENT, RUNS, RUNS, OVER])
    assert [t.agent_id for t in targets_beyond(world.state, receipt())] == ["a", "b", "c"], "until then no press is proven beside them"
    asking = asyncio.create_task(ask_of_the_gone(world.core, world.guard, world.notice))
    while world.why("a") != WENT:
        await asyncio.sleep(0.001)
    assert world.why("b") == NOT_ANSWERED, "asked, and silent"
    await asking
    assert (world.why("b"), world.why("c")) == (WENT, STOPPED) and not world.state.open_ends
    assert len(world.notices) == 1 and "2 agents" in world.notices[0] and world.told == []
    assert targets_beyond(world.state, receipt()) == ()
    assert world.asked[:2] == ["a", "b"] and world.asked[2] == "b", "one silence ends a round: nobody waits for a thousand of them"


async def test_whom_the_guard_does_not_know_either_may_live_and_it_is_told_until_it_hears(monkeypatch: pytest.MonkeyPatch) -> None:
    world: Any = Gone(monkeypatch, known=[OVER], lost=[LOST], said=[Unavailable("missing", "")])
    world.deaf = 2
    await ask_of_the_gone(world.core, world.guard, world.notice)
    assert (world.why("known"), world.why("lost"), world.why("said")) == (WENT, NOT_IN_RECORD, NOT_IN_RECORD)
    assert world.told == [["lost"]] and "1 agents" in world.notices[0] and "lost" in world.notices[0]
    assert [t.agent_id for t in targets_beyond(world.state, receipt())] == ["lost", "said"]
    world.engine.step(Rearmed(2.0, 2.0, "operator:0", "looked"))
    assert world.why("lost") == LOOKED_OVER and targets_beyond(world.state, receipt()) == ()


async def test_where_nobody_was_gone_the_guard_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    world: Any = Gone(monkeypatch)
    await ask_of_the_gone(world.core, world.guard, world.notice)
    assert world.asked == [] and world.notices == []
