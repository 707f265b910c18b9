"""An agent has ended when the guard says that none of its processes is left; until then it goes on, and people are told."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from console.domain.agent import AgentId
from console.domain.errors import NotFound, Unreachable
from console.services.adoption import exit_check
from console.services.adoption.exit_check import until_empty

A = AgentId("a-1")


class World:
    """Answers of the guard, one after the other; the last one stays."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked = list(answers), 0
        self.events, self.notices = list[str](), list[str]()
        self.live = {A}
        self.parts: Any = SimpleNamespace(
            guard=self,
            core=SimpleNamespace(state=SimpleNamespace(live=self.live)),
            scribe=SimpleNamespace(event=lambda agent_id, at, kind, text: self.events.append(kind)),
            notice=self.notices.append,
        )

    def call(self, op: str, agent_id: str) -> dict[str, Any]:
        assert (op, agent_id) == ("procs", A)
        self.asked += 1
        answer = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return {"alive": answer}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exit_check, "FIRST_REST_S", 0.001)
    monkeypatch.setattr(exit_check, "STILL_S", 0.002)


def wait(world: World, held: bool = True) -> None:
    p = world.parts
    asyncio.run(asyncio.wait_for(until_empty(p.core, p.guard, p.scribe, p.notice, A, lambda: held), 60))


def test_one_of_which_nobody_is_left_has_ended_at_once() -> None:
    world = World(False)
    wait(world)
    assert world.asked == 1 and world.notices == []


def test_while_others_of_it_run_or_the_guard_says_nothing_it_has_not_and_that_is_said_once() -> None:
    unknown = [Unreachable("The guard cannot be reached.", ""), NotFound("Agent a-1 is not registered.", "")]
    world = World(*[True] * 5, *unknown * 5, False)
    wait(world)
    assert world.asked == 16 and world.events == ["still running"] and [a[:4] for a in world.notices] == ["a-1:"]


def test_a_kill_that_judged_it_is_waited_for_no_longer() -> None:
    world = World(True)
    world.live.clear()
    wait(world)
    assert world.asked == 0
    wait(World(True), held=False)
