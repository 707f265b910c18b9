"""The followers: when a canary of the armed light flies."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from console.settings.options import Options
from console.supervisor import follow
from console.supervisor.light import Flight
from console.supervisor.parts import Parts
from console.supervisor.stop import StopDesk


def test_after_a_rearm_a_canary_flies_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    state = SimpleNamespace(killed=True, soft_stop="")
    parts: Any = SimpleNamespace(options=Options(canary_s=3600.0), core=SimpleNamespace(state=state))
    flown: list[bool] = []

    def fly(_: Parts) -> Flight:
        flown.append(state.killed)
        return Flight(True, "dead", tick=time.monotonic())

    async def story() -> None:
        follower = follow.Follower(parts, cast(StopDesk, None))
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

    monkeypatch.setattr(follow, "fly_canary", fly)
    asyncio.run(story())
    assert flown == [False]
