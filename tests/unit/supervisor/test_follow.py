"""The followers: when a canary of the armed light flies."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.domain.agent import AgentId
from console.services.stop import self_test
from console.services.stop.readiness import Flight
from console.settings.options import Options
from console.supervisor import follow


def follower_of(options: Options, core: Any, guard: Any = None) -> follow.Follower:
    """One whose loops do not run."""
    unused: Any = None
    return follow.Follower(
        core,
        unused,
        guard,
        unused,
        options,
        unused,
        unused,
        remote=None,
        sources=(),
        spend=unused,
        own_agents=unused,
        engine=unused,
        rotator=unused,
        witness=unused,
        light=lambda _view: None,
    )


def test_after_a_rearm_a_canary_flies_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    state = SimpleNamespace(killed=True, soft_stop="")
    flown: list[bool] = []

    def fly(*_: object) -> Flight:
        flown.append(state.killed)
        return Flight(True, "dead", tick=time.monotonic())

    async def story() -> None:
        follower = follower_of(Options(canary_s=3600.0), SimpleNamespace(state=state))
        follower.gauges.flight = Flight(True, "before the kill")
        canaries = asyncio.create_task(follower._canaries())
        await asyncio.sleep(0.6)
        assert flown == [], "none flies while killed"
        state.killed = False
        deadline = time.monotonic() + 60
        while not flown and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        canaries.cancel()
        await asyncio.gather(canaries, return_exceptions=True)

    monkeypatch.setattr(self_test, "fly_canary", fly)
    asyncio.run(story())
    assert flown == [False]


def test_a_freeze_that_nobody_saw_is_doubted_until_it_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    doubts = {"a-1": "its cgroup does not say that it is frozen"}

    def look(_call: object, ids: list[str]) -> dict[str, str]:
        asked.append(ids)
        return dict(doubts)

    monkeypatch.setattr(follow, "unconfirmed", look)
    follower = follower_of(Options(), None, SimpleNamespace(call=None))
    causes: dict[AgentId, tuple[str, ...]] = {AgentId("a-1"): ("operator",)}

    async def story() -> None:
        assert await follower._doubts_of(causes, False) == {"a-1": doubts["a-1"]}  # new: looked at, whoever froze it and how
        doubts.clear()
        assert await follower._doubts_of(causes, False) == {}  # in doubt: looked at again
        assert await follower._doubts_of(causes, False) == {} and len(asked) == 2  # seen: not at every look
        assert await follower._doubts_of({**causes, AgentId("a-2"): ("lease",)}, False) == {} and asked[-1] == ["a-1", "a-2"]
        follower._doubts_at -= 2 * follow.FREEZE_LOOK_S
        await follower._doubts_of({**causes, AgentId("a-2"): ("lease",)}, False)
        assert len(asked) == 4
        assert await follower._doubts_of({}, False) == {} and len(asked) == 4

    asyncio.run(story())


def test_with_no_agents_the_guard_is_asked_less_and_at_once_when_it_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "GUARD_S", 0.05)
    monkeypatch.setattr(follow, "IDLE_GUARD_S", 3600.0)
    state, asked = SimpleNamespace(held=set(), killed=False), list[str]()

    async def look() -> None:
        asked.append("status")

    async def until(is_so: Callable[[], bool]) -> None:
        end = time.monotonic() + 60
        while not is_so():
            assert time.monotonic() < end
            await asyncio.sleep(0.02)

    async def story() -> None:
        follower = follower_of(Options(), SimpleNamespace(state=state, dirty=set()), SimpleNamespace(call=lambda _op: {}))
        monkeypatch.setattr(follower, "_places", SimpleNamespace(guard_dir=tmp_path))
        monkeypatch.setattr(follower, "look_at_guard", look)
        following = asyncio.create_task(follower._follow_guard())
        await until(lambda: bool(asked))
        await asyncio.sleep(0.5)
        assert len(asked) == 1, "nothing asks for another look"
        (tmp_path / "latch.json").write_text("{}")
        await until(lambda: len(asked) > 1)
        await asyncio.sleep(0.5)
        state.held.add("a-1")
        (tmp_path / "registry.json").write_text("{}")
        count = len(asked)
        await until(lambda: len(asked) > count + 5)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)

    asyncio.run(story())
