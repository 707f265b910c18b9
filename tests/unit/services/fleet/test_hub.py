"""A console that comes back misses nothing, or is told to read everything again."""

from __future__ import annotations

import asyncio

from console.services.fleet.hub import KEEP, QUEUE, Hub


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


def of_agents(hub: Hub, count: int) -> None:
    hub.publish("agents", {"upsert": [], "patch": [(f"a-{number}", {"cost_usd": 1.0}) for number in range(count)], "remove": []})


async def test_what_is_kept_is_bounded_by_the_agents_in_it_not_by_the_number_of_deltas() -> None:
    hub = Hub()
    for _ in range(100):
        of_agents(hub, 100)
    missed = await first(hub, 100 - 5, 5)
    assert [kind for _, kind in missed] == ["agents"] * 5
    assert (await first(hub, 10, 1))[0][1] == "resync", "100 deltas of 100 agents each are five times what is kept"
    of_agents(hub, KEEP * 3)
    of_agents(hub, 1)
    assert (await first(hub, 101, 1)) == [(102, "agents")], "one large delta does not stay behind for ever"


async def test_a_listener_that_lags_by_few_large_deltas_is_cut_off_and_one_that_reads_never_is() -> None:
    hub = Hub()
    lazy, eager = hub.listen(None), hub.listen(None)
    waiting, reading = asyncio.ensure_future(anext(lazy)), asyncio.ensure_future(anext(eager))
    await asyncio.sleep(0)
    for _ in range(QUEUE // 1000 * 3):
        of_agents(hub, 1000)
        assert (await reading) is not None
        reading = asyncio.ensure_future(anext(eager))
        await asyncio.sleep(0)
    assert hub.listeners == 1
    await waiting
    reading.cancel()


async def test_closing_ends_every_stream() -> None:
    hub = Hub()
    stream = hub.listen(None)
    waiting = asyncio.ensure_future(anext(stream, None))
    await asyncio.sleep(0)
    hub.close()
    assert await waiting is None
