"""Fault 7 for whoever asks how things are: an engine that hangs delays nobody, and takes one thread."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest

from console.domain.agent import AgentId
from console.domain.ids import ControlLevel
from console.sandbox.interface import Availability
from console.supervisor.status_service import PartLooks, panic_targets
from tests.fakes.playbook import Playbook


async def test_a_part_that_hangs_is_said_to_and_is_asked_once() -> None:
    answers, asked = threading.Event(), list[str]()

    def hangs() -> Availability:
        asked.append("docker")
        answers.wait(60)
        return Availability(True, "it is back")

    looks = PartLooks({"docker": hangs, "managed": lambda: Availability(False, "no namespaces")}, 0.05)
    try:
        for _ in range(5):
            assert await looks.words() == {
                "docker": "not available, because it did not answer within 0.05 s",
                "managed": "not available, because no namespaces",
            }
        assert asked == ["docker"]
    finally:
        answers.set()
    async with asyncio.timeout(60):
        while (await looks.words())["docker"]:
            await asyncio.sleep(0.01)


async def test_whoever_asks_meanwhile_gets_the_same_look() -> None:
    asked = list[int]()

    def answers() -> Availability:
        asked.append(1)
        return Availability(True, "it answers")

    looks = PartLooks({"docker": answers}, 60)
    assert list(await asyncio.gather(looks.words(), looks.words())) == [{"docker": ""}] * 2 and asked == [1]
    assert await looks.words() == {"docker": ""} and asked == [1, 1]


async def test_a_mistake_of_ours_is_not_called_an_absent_part() -> None:
    def broken() -> Availability:
        raise RuntimeError("oops")

    with pytest.raises(RuntimeError):
        await PartLooks({"docker": broken}).words()


def test_observed_agents_that_a_panic_leaves_alone_are_counted() -> None:
    book = Playbook()
    for name in ("ours", "o-1", "o-2"):
        book.run(name)
    for name in ("o-1", "o-2"):
        book.state.put(replace(book.agent(name), control_level=ControlLevel.OBSERVED))
    assert panic_targets(book.state) == {
        "managed": {"agents": 1, "processes": 1},
        "observed": {"agents": 2, "processes": 2, "left_alone": 2},
    }
    book.state.press_observed = {AgentId("o-1")}
    assert panic_targets(book.state)["observed"]["left_alone"] == 1
