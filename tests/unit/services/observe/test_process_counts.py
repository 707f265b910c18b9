"""Processes per agent: asked for once for many, and whoever the guard does not know is found out all the same."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from console.domain.errors import ConsoleError, NotFound, Unavailable, Unreachable, UsageProblem
from console.services.observe import process_counts
from console.services.observe.process_counts import Counting
from console.services.observe.unknown_agents import UNREACHED


class House:
    """A guard that holds ``agents`` (id -> count), and the engine's idea of who is held."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, agents: dict[str, int], held: set[str]) -> None:
        self.agents, self.asked, self.missed = agents, list[tuple[str, str]](), list[str]()
        self.doubts: dict[str, str] = {}
        self.is_old = False
        self.page = 2
        self.state = SimpleNamespace(held=held, pids={}, best_effort={})
        core = SimpleNamespace(state=self.state, dirty=set())
        self.parts: Any = SimpleNamespace(core=core, guard=SimpleNamespace(call=self.call), notice=lambda *_: None)

        async def missed(_core: object, _guard: object, _notice: object, agent_id: str) -> None:
            self.missed.append(agent_id)
            self.state.best_effort[agent_id] = UNREACHED

        monkeypatch.setattr(process_counts, "missed", missed)

    def call(self, op: str, after: str = "", agent_id: str = "") -> dict[str, Any]:
        self.asked.append((op, after or agent_id))
        if op == "procs":
            if agent_id not in self.agents:
                raise NotFound("not registered")
            return {"count": self.agents[agent_id], "best_effort": self.doubts.get(agent_id, "")}
        if self.is_old:
            raise UsageProblem("This socket has no operation 'counts'.")
        rest = sorted(name for name in self.agents if name > after)
        page = rest[: self.page]
        return {
            "counts": {name: self.agents[name] for name in page},
            "best_effort": {name: self.doubts[name] for name in page if name in self.doubts},
            "next": page[-1] if len(rest) > len(page) else None,
        }

    def count(self) -> None:
        asyncio.run(Counting(self.parts.core, self.parts.guard, self.parts.notice, 30.0).count())


def test_many_are_counted_in_few_answers_and_only_changes_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(monkeypatch, {"a": 1, "b": 2, "c": 3, "canary-1": 1}, {"a", "b", "c"})
    house.doubts["b"] = "it may leave"
    house.count()
    assert house.asked == [("counts", ""), ("counts", "b")]
    assert house.state.pids == {"a": 1, "b": 2, "c": 3} and house.state.best_effort["b"] == "it may leave"
    assert house.parts.core.dirty == {"a", "b", "c"}
    house.parts.core.dirty.clear()
    house.agents["c"] = 4
    house.doubts.clear()
    house.count()
    assert house.parts.core.dirty == {"b", "c"} and house.state.pids["c"] == 4 and house.state.best_effort["b"] == ""


def test_whoever_the_guard_does_not_know_is_asked_for_by_name_and_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(monkeypatch, {"a": 1}, {"a", "x", "y"})
    house.count()
    assert house.missed == ["x", "y"] and ("procs", "x") in house.asked
    monkeypatch.setattr(process_counts, "ALONE", 1)
    house.state.held.add("z")  # those that were said already keep no other from being found out
    house.count()
    assert house.missed == ["x", "y", "z"]


def test_nobody_held_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(monkeypatch, {"canary-1": 1}, set())
    house.count()
    assert house.asked == []


def test_a_guard_of_before_is_asked_for_each_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(monkeypatch, {"a": 1, "b": 2}, {"a", "b", "x"})
    house.is_old = True
    house.count()
    assert house.state.pids == {"a": 1, "b": 2} and house.missed == ["x"]


def test_what_the_guard_cannot_say_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(monkeypatch, {}, {"a"})
    house.state.pids["a"] = 7

    def call(op: str, **_: Any) -> dict[str, Any]:
        if op == "procs":
            raise Unavailable("agents are missing from its record")
        return {"counts": {}, "best_effort": {}, "next": None}

    house.parts.guard.call = call
    house.count()
    assert house.state.pids == {"a": 7} and house.missed == []

    def gone(_op: str, **_: Any) -> dict[str, Any]:
        raise Unreachable("gone")

    house.parts.guard.call = gone
    with pytest.raises(ConsoleError):
        house.count()
    assert house.missed == []


def test_an_answer_that_never_ends_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(monkeypatch, {}, {"a"})
    house.parts.guard.call = lambda op, **_: {"counts": {"a": 1}, "next": "a"} if op == "counts" else {}
    house.count()
    assert house.state.pids == {"a": 1}


async def test_whoever_asks_is_told_of_now_and_a_slow_guard_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(monkeypatch, {"a": 1}, {"a"})
    one = Counting(house.parts.core, house.parts.guard, house.parts.notice, 30.0)
    age = await one.anew(60.0)
    assert age is not None and age < 60.0 and house.state.pids == {"a": 1}
    house.agents["a"] = 7
    await one.anew(60.0)
    assert house.state.pids == {"a": 1} or len(house.asked) > 1, "of a moment ago is as good"
    monkeypatch.setattr(process_counts, "FRESH_S", -1.0)
    await one.anew(60.0)
    assert house.state.pids == {"a": 7}
    slow, call = threading.Event(), house.call

    def waits(op: str, **fields: str) -> dict[str, Any]:
        slow.wait()
        return call(op, **fields)

    house.parts.guard.call = waits
    house.agents["a"] = 9
    ages = [await one.anew(0.0), await one.anew(0.0)]
    assert None not in ages and house.state.pids == {"a": 7}, "the last count, and how old it is"
    slow.set()
    await one.anew(60.0)
    assert house.state.pids == {"a": 9}


async def test_a_guard_that_was_never_counted_by_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(monkeypatch, {"a": 1}, {"a"})

    def silent(op: str, **fields: str) -> dict[str, Any]:
        raise Unreachable("no", "")

    house.parts.guard.call = silent
    assert await Counting(house.parts.core, house.parts.guard, house.parts.notice, 30.0).anew(60.0) is None
