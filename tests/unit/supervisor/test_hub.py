"""A console that comes back misses nothing, or is told to read everything again."""

from __future__ import annotations

import asyncio

from console.supervisor.hub import KEEP, QUEUE, Hub


async def first(hub: Hub, after: int | None, count: int) -> list[tuple[int, str]]:
    found = []
    async for delta in hub.listen(after):
        assert delta is not None
        found.append((delta.seq, delta.kind))
        if len(found) == count:
            break
    return found


async def test_what_was_missed_comes_first_in_order() -> None:
    hub = Hub()
    for number in range(5):
        hub.publish(f"k{number}", {})
    assert await first(hub, 2, 3) == [(3, "k2"), (4, "k3"), (5, "k4")]


async def test_a_gap_says_resync() -> None:
    hub = Hub()
    for _ in range(KEEP + 10):
        hub.publish("k", {})
    assert (await first(hub, 3, 1))[0][1] == "resync"
    assert (await first(hub, KEEP + 999, 1))[0][1] == "resync"  # a number from before a restart


async def test_a_listener_that_lags_is_cut_off_and_the_others_go_on() -> None:
    hub = Hub()
    lazy = hub.listen(None)
    waiting = asyncio.ensure_future(anext(lazy))
    await asyncio.sleep(0)
    for _ in range(QUEUE + 2):
        hub.publish("k", {})
    assert hub.listeners == 0
    assert (await waiting) is not None
    seen = [d async for d in lazy]
    assert len(seen) < QUEUE + 2


async def test_closing_ends_every_stream() -> None:
    hub = Hub()
    stream = hub.listen(None)
    waiting = asyncio.ensure_future(anext(stream, None))
    await asyncio.sleep(0)
    hub.close()
    assert await waiting is None
