"""A program's end: only what the guard has seen is one; a turn is waited for, a kill that comes first is said, nobody knowing is said."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.api.agents.programs import EndBody, EndedView
from console.domain.agent import AgentState
from console.domain.errors import Denied, NotFound, NotRecorded, TimedOut, Unreachable
from console.services.conversation.messaging import ended_key
from console.services.launch import program_ending
from console.services.launch.program_ending import Endings
from tests.fakes.patched import patch
from tests.fakes.program_stage import ID, Stage

Answer = Callable[[], dict[str, Any]]


class House:
    """A program of which the guard says what ``procs`` says."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(program_ending, "GRACE_S", 0.3)
        monkeypatch.setattr(program_ending, "LOOK_S", 0.01)
        self.stage, self.folder = Stage(folder), folder
        self.stage.listen()
        self.procs: Answer = lambda: {"alive": True, "count": 3, "best_effort": ""}
        guard: Any = SimpleNamespace(call=lambda _op, **_: self.procs())
        self.talk = self.stage.talk()
        self.talk.prepare(self.stage.agent(), folder, os.geteuid(), os.getegid())
        self.busy = False
        patch(self.talk, is_busy=lambda _agent: self.busy)
        it = self.stage.parts
        self.endings = Endings(it.core, guard, it.scribe, it.notice, self.talk)

    async def end(self, within: float = 0.3) -> EndedView:
        return await self.endings.end(ID, EndBody(reason="enough", within_s=within), "operator:0")

    def is_told(self) -> bool:
        channel = self.talk.channel_of(ID)
        return channel is not None and not channel.is_open

    def becomes(self, state: AgentState) -> None:
        agents = self.stage.core.state
        agents.put(replace(agents.agents[ID], state=state))

    def close(self) -> None:
        self.talk.end(ID)
        self.talk.close()


@pytest.fixture
async def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    it = House(tmp_path, monkeypatch)
    yield it
    it.close()


async def test_whoever_still_runs_is_counted_and_nothing_more_is_said_to_it(house: House) -> None:
    view = await house.end()
    assert (view.done, view.processes) == ("runs", 3) and "3 processes" in view.words and "watchfloor kill a-1" in view.words
    assert house.is_told() and house.stage.scribe.kept[ended_key(ID)] == "operator:0"
    first, last = house.stage.scribe.records
    assert (first.kind, first.verdict, first.data["within_s"]) == ("agent.end", "allow", 0.3) and "enough" in first.what
    assert last.data == {"done": "runs", "processes": 3}
    with pytest.raises(Denied, match="ended by operator:0: no more comes"):
        await house.talk.say(ID, "one more", "operator:0")
    assert "no more comes" in house.talk.why_not(ID) and house.talk.why_not(ID, to_end=True) == ""
    house.procs = lambda: {"alive": False, "count": 0, "best_effort": "odd"}
    view = await house.end()  # asked again
    assert (view.done, view.best_effort) == ("ended", "odd")


async def test_a_turn_under_way_is_waited_for_but_not_for_ever(house: House) -> None:
    house.busy = True
    asked = asyncio.create_task(house.end(60.0))
    while not house.talk.why_not(ID):
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    assert not house.is_told(), "its turn goes on"
    house.busy = False
    house.procs = lambda: {"alive": False}
    while not house.is_told():
        await asyncio.sleep(0.01)
    house.becomes(AgentState.ENDED)
    assert (await asked).done == "ended"


async def test_one_whose_turn_never_ends_is_told_at_the_deadline(house: House) -> None:
    house.busy = True
    assert (await house.end(0.05)).done == "runs" and house.is_told()


async def test_whoever_asked_may_hang_up(house: House) -> None:
    house.busy = True
    asked = asyncio.create_task(house.end(60.0))
    while not house.talk.why_not(ID):
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    asked.cancel()
    house.busy = False
    while not house.is_told():
        await asyncio.sleep(0.01)


def unreachable() -> dict[str, Any]:
    raise Unreachable("The guard does not answer.", "")


def forgotten() -> dict[str, Any]:
    raise NotFound("a-1 is not registered.", "")


async def test_what_nobody_knows_is_not_called_an_end(house: House) -> None:
    for answer in (unreachable, forgotten, dict):
        house.procs = answer
        if answer is dict:  # it says nothing of whether anybody is alive
            assert (await house.end(0)).done == "runs"
        else:
            with pytest.raises(TimedOut, match="not known"):
                await house.end(0)
    house.procs = forgotten
    house.becomes(AgentState.LOST)
    with pytest.raises(TimedOut, match="not known"):
        await house.endings._seen(ID, 0)
    house.becomes(AgentState.ENDED)
    assert (await house.endings._seen(ID, 0)).done == "ended", "the guard vouched for it before, and has forgotten it since"


async def test_a_kill_that_comes_first_is_no_end(house: House) -> None:
    asked = asyncio.create_task(house.end(60.0))
    while not house.is_told():
        await asyncio.sleep(0.01)
    house.procs = lambda: {"alive": False}
    house.becomes(AgentState.KILLED)
    view = await asked
    assert view.done == "killed" and "killed" in view.words


async def test_who_cannot_be_talked_to_is_refused_and_what_is_not_on_record_is_not_done(house: House) -> None:
    for state, why in (
        (AgentState.FROZEN, "frozen"),
        (AgentState.OVER_BUDGET, "over its budget"),
        (AgentState.STARTING, "not started yet"),
    ):
        house.becomes(state)
        with pytest.raises(Denied, match=why):
            await house.end()
    house.becomes(AgentState.RUNNING)
    house.stage.scribe.refuse = NotRecorded("full", "")
    with pytest.raises(NotRecorded):
        await house.end()
    assert not house.is_told() and house.talk.why_not(ID) == ""
    assert [r.verdict for r in house.stage.scribe.records] == ["deny"] * 3


async def test_after_a_restart_it_stays_ended(house: House) -> None:
    await house.end(0)
    house.talk.close()
    again = house.stage.talk()
    again.again(house.stage.core.state.agents[ID], house.folder)
    assert "ended by operator:0" in again.why_not(ID)
    again.end(ID)
    again.close()
    assert house.stage.scribe.kept[ended_key(ID)] == ""
